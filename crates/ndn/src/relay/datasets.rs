//! The most recent data sets, stored so that clients can fetch their segments.

use std::collections::VecDeque;

use crate::packets::management::segment;
use crate::packets::{Name, NameBuf, component};

/// Maximum number of stored data sets.
const DATASETS_MAX: usize = 32;

/// Maximum size of a segment's content, in bytes.
const SEGMENT: usize = 7_000;

/// The stored data sets: versioned names and contents, the newest first.
#[derive(Debug, Default)]
pub(crate) struct Datasets(VecDeque<(NameBuf, Vec<u8>)>);

impl Datasets {
    /// Stores a data set under its version, and appends its first segment to `out`.
    pub(crate) fn publish(
        &mut self,
        mut name: NameBuf,
        version: u64,
        content: Vec<u8>,
        out: &mut Vec<u8>,
    ) {
        name.push_number(component::VERSION, version);
        write(&name, &content, 0, out);
        // A data set of one segment is stored, too: some clients fetch it again by its full name.
        self.0.truncate(DATASETS_MAX - 1);
        self.0.push_front((name, content));
    }

    /// Appends the segment with this name to `out`; returns false if it is not stored.
    pub(crate) fn answer(&self, name: &Name<'_>, out: &mut Vec<u8>) -> bool {
        let Some(last) = name.components().last().filter(|one| one.kind == component::SEGMENT)
        else {
            return false;
        };
        let Ok(number) = last.number() else { return false };
        let is_requested =
            |stored: &&(NameBuf, Vec<u8>)| name.as_bytes().starts_with(stored.0.as_bytes());
        self.0
            .iter()
            .find(is_requested)
            .is_some_and(|(name, content)| write(name, content, number, out))
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

    #[test]
    fn a_data_set_too_large_for_one_data_is_fetched_in_segments() {
        let mut datasets = Datasets::default();
        let content: Vec<u8> = (0..20_000_u32).map(|n| (n % 253) as u8).collect();
        let mut wire = Vec::new();
        datasets.publish("/list".parse().unwrap(), 7, content.clone(), &mut wire);
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
            datasets.publish("/l".parse().unwrap(), version, vec![0; 7_001], &mut Vec::new());
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
