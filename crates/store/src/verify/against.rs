//! What arrived elsewhere, compared with what the manifests have, by interval.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use ringtap_base::greatest_divisor;
use ringtap_export::sums::Sum;
use ringtap_terminal::numbers::count;
use serde::Serialize;

use super::gap::{Gap, GapKind};
use crate::arrived;
use crate::layout::Kind;
use crate::manifest::{Line, What};

/// The longest interval that is compared. If files of many lengths have no shorter one in common, all is one interval.
const LONGEST_S: u64 = 7 * 86_400;

/// The sums of the records of all manifests.
#[derive(Default)]
pub(super) struct Made {
    /// By begin, seconds since 1970, and length of the interval.
    sums: BTreeMap<(u64, u64), Sum>,
    /// Rows in files with more intervals than a line has.
    others: Sum,
}

impl Made {
    /// A line of a manifest.
    pub(super) fn take(&mut self, line: &Line) {
        let What::File(file) = &line.what else { return };
        let Some(sums) = &file.sums else { return };
        self.others += *sums.others();
        for (&begin, &sum) in sums.intervals() {
            *self.sums.entry((begin, file.interval.max(1))).or_default() += sum;
        }
    }

    /// The shortest interval of which all lengths are divisors.
    fn interval(&self) -> u64 {
        let mut all = 1_u64;
        for &(_, interval) in self.sums.keys() {
            match (all / greatest_divisor(all, interval)).checked_mul(interval) {
                Some(common) if common <= LONGEST_S => all = common,
                _ => return u64::MAX,
            }
        }
        all
    }
}

/// What arrived elsewhere.
#[derive(Debug, Serialize)]
pub struct Arrived {
    /// Files, without those of other kinds.
    pub files: u64,
    /// Records, as they arrived.
    pub records: u64,
    /// Lines or rows that are no records.
    pub invalid: u64,
    /// Files of other kinds, in folders.
    pub skipped: u64,
    /// Intervals of the store that were compared.
    pub intervals: u64,
    /// Whether all fields were compared, or those that collectors of NetFlow and IPFIX have.
    pub all_fields: bool,
}

/// Compares with what arrived at these paths.
///
/// # Errors
/// What arrived cannot be read.
pub(super) fn compare(made: &Made, paths: &[PathBuf], gaps: &mut Vec<Gap>) -> io::Result<Arrived> {
    let interval = made.interval();
    let mut pairs = BTreeMap::<u64, [Sum; 2]>::new();
    for (&(begin, _), &sum) in &made.sums {
        pairs.entry(begin / interval * interval).or_default()[0] += sum;
    }
    // Of intervals that the manifests do not have one by one.
    let mut rest = [made.others, Sum::default()];
    let (mut files, mut records, mut skipped) = (0, 0, 0);
    let (mut invalid, mut first_invalid) = (0, None);
    let mut all_fields = true;
    for path in paths {
        let counts = arrived::read(path, &mut |row| {
            all_fields &= row.is_whole;
            let begin = row.sum.end_ms / 1_000 / interval * interval;
            pairs.get_mut(&begin).unwrap_or(&mut rest)[1] += Sum::from(&row.sum);
        });
        let counts = counts.map_err(io::Error::other)?;
        files += counts.files;
        records += counts.rows;
        skipped += counts.skipped;
        invalid += counts.invalid;
        first_invalid = first_invalid.or(counts.first_invalid.map(|line| line.to_string()));
    }
    let intervals = pairs.len() as u64;
    for (begin, pair) in pairs {
        let interval = (interval < u64::MAX).then(|| [begin, begin.saturating_add(interval)]);
        gaps.extend(differs(pair, all_fields).map(|gap| gap.interval(interval)));
    }
    gaps.extend(differs(rest, all_fields).map(|gap| Gap {
        text: format!("{}, in other intervals than the files of the store", gap.text),
        ..gap
    }));
    if let Some(first) = &first_invalid {
        let text = format!("{} lines or rows are not records, the first: {first}", count(invalid));
        gaps.push(Gap::new("", GapKind::ArrivedInvalid, text).count(invalid));
    }
    Ok(Arrived { files, records, skipped, invalid, intervals, all_fields })
}

/// The gap between records made and records that arrived.
fn differs([made, arrived]: [Sum; 2], all_fields: bool) -> Option<Gap> {
    // Collectors have a record for each direction.
    let counted =
        |sum: &Sum| if all_fields { (sum.rows, sum.all) } else { (sum.directions, sum.core) };
    let ((made, sum), (arrived, other)) = (counted(&made), counted(&arrived));
    let what = if all_fields { "records" } else { "records of one direction" };
    let numbers = format!("made {}, arrived {}", count(made), count(arrived));
    let (kind, number, text) = if made > arrived {
        let missing = made - arrived;
        let text = format!("{} {what} did not arrive: {numbers}", count(missing));
        (GapKind::NotArrived, missing, text)
    } else if made < arrived {
        let more = arrived - made;
        let text = format!("{} {what} more arrived: {numbers}", count(more));
        (GapKind::ArrivedTwice, more, text)
    } else if sum != other {
        (GapKind::ArrivedChanged, made, format!("as many {what} arrived, but others: {numbers}"))
    } else {
        return None;
    };
    Some(Gap::new("", kind, text).output(Kind::Flows.folder()).count(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(rows: u64, all: u128, directions: u64, core: u128) -> Sum {
        Sum { rows, all, directions, core, ..Sum::default() }
    }

    #[test]
    fn a_difference_has_its_kind_and_number() {
        let made = sum(10, 100, 15, 7);
        for (arrived, all_fields, kind, number) in [
            (sum(10, 100, 15, 8), true, None, 0),
            (sum(7, 90, 0, 0), true, Some(GapKind::NotArrived), 3),
            (sum(12, 90, 0, 0), true, Some(GapKind::ArrivedTwice), 2),
            (sum(10, 101, 15, 7), true, Some(GapKind::ArrivedChanged), 10),
            (sum(15, 0, 15, 7), false, None, 0),
            (sum(15, 0, 14, 7), false, Some(GapKind::NotArrived), 1),
            (sum(15, 0, 15, 8), false, Some(GapKind::ArrivedChanged), 15),
        ] {
            let gap = differs([made, arrived], all_fields);
            assert_eq!(gap.as_ref().map(|gap| gap.kind), kind);
            assert_eq!(gap.and_then(|gap| gap.count).unwrap_or(0), number);
        }
    }

    #[test]
    fn files_of_several_lengths_are_compared_by_their_common_interval() {
        let made = |lengths: &[u64]| {
            let sums = lengths.iter().map(|&length| ((0, length), Sum::default())).collect();
            Made { sums, others: Sum::default() }
        };
        assert_eq!(made(&[]).interval(), 1);
        assert_eq!(made(&[300, 300]).interval(), 300);
        assert_eq!(made(&[300, 420, 60]).interval(), 2_100);
        assert_eq!(made(&[86_399, 86_398]).interval(), u64::MAX);
    }
}
