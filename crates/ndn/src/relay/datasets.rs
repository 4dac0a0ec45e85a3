//! The most recent data sets, stored so that clients can fetch their segments.

use std::collections::VecDeque;

use crate::packets::management::segment;
use crate::packets::{Name, NameBuf, component};

/// Maximum number of stored data sets.
const DATASETS_MAX: usize = 32;

/// Maximum size of a segment's content, in bytes.
const SEGMENT: usize = 7_000;

/// Time for which a data set answers further requests, in ns, unless something changes.
const CURRENT_NS: u64 = 1_000_000_000;

/// The stored data sets, the newest first.
#[derive(Debug, Default)]
pub(crate) struct Datasets(VecDeque<Dataset>);

#[derive(Debug)]
struct Dataset {
    /// The versioned name.
    name: NameBuf,
    /// The number of bytes before the version.
    prefix_len: usize,
    content: Vec<u8>,
    made: Moment,
}

/// When a data set is made: the time, and the number of changes so far of faces, routes and
/// strategies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) now_ns: u64,
    pub(crate) changes: u64,
}

impl Datasets {
    /// Stores a data set under its version, and appends its first segment to `out`.
    pub(crate) fn publish(
        &mut self,
        mut name: NameBuf,
        version: u64,
        content: Vec<u8>,
        made: Moment,
        out: &mut Vec<u8>,
    ) {
        let prefix_len = name.as_bytes().len();
        name.push_number(component::VERSION, version);
        write(&name, &content, 0, out);
        // The older version of the same data set is kept for clients that still fetch it. A data set
        // of one segment is stored, too: some clients fetch it again by its full name.
        self.0.truncate(DATASETS_MAX - 1);
        self.0.push_front(Dataset { name, prefix_len, content, made });
    }

    /// Whether a data set with this name, without a version, answers a request at this moment.
    pub(crate) fn is_current(&self, name: &NameBuf, at: Moment) -> bool {
        self.current(name, at).is_some()
    }

    /// Appends its first segment to `out`; returns false if there is none.
    pub(crate) fn answer_current(&self, name: &NameBuf, at: Moment, out: &mut Vec<u8>) -> bool {
        self.current(name, at).is_some_and(|set| write(&set.name, &set.content, 0, out))
    }

    fn current(&self, name: &NameBuf, at: Moment) -> Option<&Dataset> {
        let is_named = |set: &&Dataset| set.name.as_bytes()[..set.prefix_len] == *name.as_bytes();
        self.0.iter().find(is_named).filter(|set| {
            set.made.changes == at.changes && at.now_ns.saturating_sub(set.made.now_ns) < CURRENT_NS
        })
    }

    /// Appends the segment with this name to `out`; returns false if it is not stored.
    pub(crate) fn answer(&self, name: &Name<'_>, out: &mut Vec<u8>) -> bool {
        let Some(last) = name.components().last().filter(|one| one.kind == component::SEGMENT)
        else {
            return false;
        };
        let Ok(number) = last.number() else { return false };
        let is_requested = |set: &&Dataset| name.as_bytes().starts_with(set.name.as_bytes());
        let requested = self.0.iter().find(is_requested);
        requested.is_some_and(|set| write(&set.name, &set.content, number, out))
    }
}

/// Appends a segment to `out`; returns false if the number is out of range.
fn write(name: &NameBuf, content: &[u8], number: u64, out: &mut Vec<u8>) -> bool {
    let last = content.len().saturating_sub(1) / SEGMENT;
    let Some(at) = usize::try_from(number).ok().filter(|&at| at <= last) else { return false };
    let end = content.len().min((at + 1) * SEGMENT);
    segment(name, number, last as u64, &content[at * SEGMENT..end], out);
    true
}

#[cfg(test)]
mod tests {
    use crate::packets::Data;
    use crate::packets::management::last_segment;

    use super::*;

    const MADE: Moment = Moment { now_ns: 5, changes: 3 };

    #[test]
    fn a_data_set_answers_for_a_second_unless_something_changes() {
        let mut datasets = Datasets::default();
        let name = |text: &str| text.parse::<NameBuf>().unwrap();
        datasets.publish(name("/list"), 7, vec![1], MADE, &mut Vec::new());
        let later = |ns: u64| Moment { now_ns: MADE.now_ns + ns, ..MADE };
        assert!(datasets.is_current(&name("/list"), later(CURRENT_NS - 1)));
        assert!(!datasets.is_current(&name("/list"), later(CURRENT_NS)));
        assert!(!datasets.is_current(&name("/list"), Moment { changes: 4, ..MADE }));
        assert!(!datasets.is_current(&name("/list/v=7"), MADE));
        let mut wire = Vec::new();
        assert!(datasets.answer_current(&name("/list"), MADE, &mut wire));
        assert_eq!(Data::read(&wire).unwrap().name, name("/list/v=7/seg=0").as_name());
    }

    #[test]
    fn a_data_set_too_large_for_one_data_is_fetched_in_segments() {
        let mut datasets = Datasets::default();
        let content: Vec<u8> = (0..20_000_u32).map(|n| (n % 253) as u8).collect();
        let mut wire = Vec::new();
        datasets.publish("/list".parse().unwrap(), 7, content.clone(), MADE, &mut wire);
        let mut whole = Data::read(&wire).unwrap().content.to_vec();
        assert_eq!(last_segment(&wire), Some(2));
        for number in 1..3 {
            wire.clear();
            let name: NameBuf = format!("/list/v=7/seg={number}").parse().unwrap();
            assert!(datasets.answer(&name.as_name(), &mut wire));
            let data = Data::read(&wire).unwrap();
            assert_eq!(data.name, name.as_name());
            whole.extend_from_slice(data.content);
        }
        assert_eq!(whole, content);
        for wrong in ["/list/v=7/seg=3", "/list/v=8/seg=0", "/list/v=7", "/list"] {
            let name: NameBuf = wrong.parse().unwrap();
            assert!(!datasets.answer(&name.as_name(), &mut wire), "{wrong}");
        }
    }

    #[test]
    fn the_oldest_data_sets_are_removed() {
        let mut datasets = Datasets::default();
        for version in 0..100 {
            datasets.publish("/l".parse().unwrap(), version, vec![0; 7_001], MADE, &mut Vec::new());
        }
        let has = |version: u64| {
            let name: NameBuf = format!("/l/v={version}/seg=1").parse().unwrap();
            datasets.answer(&name.as_name(), &mut Vec::new())
        };
        assert_eq!(
            (has(99), has(68), has(67), datasets.0.len()),
            (true, true, false, DATASETS_MAX)
        );
    }
}
