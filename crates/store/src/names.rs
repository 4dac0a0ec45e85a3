//! Names of files of stores as keys of a few bytes, so that a store of years is verified in little memory.
//!
//! ```text
//! flows/2026/11/26/1005-PROBE.7.parquet
//! kind  ╰──────────────┬─╯     number
//! 2 bits│1 bit: 4 or 6 digits of time│47 bits: all digits│14 bits: 0, or the number and 1
//! ```
//!
//! Invariant: two names have one key only if they are equal. A name without a key, which no run of these makes, is
//! kept whole.

use std::collections::{BTreeMap, HashMap};

use crate::layout::{Kind, numbered};

/// Bytes of a key and a number in a table that is as full as it may be.
const ENTRY_BYTES: usize = 2 * size_of::<u64>() + 1;

/// Numbers by name.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// By probe.
    keys: BTreeMap<String, HashMap<u64, u64>>,
    others: HashMap<String, u64>,
}

impl Names {
    /// How many names of a probe take at most these bytes.
    pub(crate) fn most(bytes: u64) -> u64 {
        // A table has a power of two of places, and an eighth of them stays free.
        let places = (bytes / ENTRY_BYTES as u64).max(16);
        (1 << places.ilog2()) / 8 * 7
    }

    /// With room for this many names of a probe.
    pub(crate) fn with_room(probe: &str, names: u64) -> Self {
        let table = HashMap::with_capacity(usize::try_from(names).unwrap_or(usize::MAX));
        Self { keys: BTreeMap::from([(probe.to_owned(), table)]), others: HashMap::new() }
    }

    pub(crate) fn get(&self, name: &str) -> Option<u64> {
        match key(name) {
            Some((probe, key)) => self.keys.get(probe)?.get(&key).copied(),
            None => self.others.get(name).copied(),
        }
    }

    /// Returns the number before.
    pub(crate) fn insert(&mut self, name: &str, number: u64) -> Option<u64> {
        match key(name) {
            Some((probe, key)) => match self.keys.get_mut(probe) {
                Some(keys) => keys.insert(key, number),
                None => self.keys.entry(probe.to_owned()).or_default().insert(key, number),
            },
            None => self.others.insert(name.to_owned(), number),
        }
    }

    pub(crate) fn remove(&mut self, name: &str) {
        match key(name) {
            Some((probe, key)) => self.keys.get_mut(probe).map(|keys| keys.remove(&key)),
            None => Some(self.others.remove(name)),
        };
    }
}

/// In which of some parts of all names this one is.
pub(crate) fn part(name: &str, parts: u64) -> u64 {
    // The digits of time and the number differ from name to name.
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    key(name).map_or(0, |(_, key)| (key.wrapping_mul(ODD) >> 32) % parts)
}

/// The probe and the key of a name.
fn key(name: &str) -> Option<(&str, u64)> {
    const NUMBER_BITS: u32 = 14;
    let mut parts = name.split('/');
    let folder = parts.next()?;
    let kind = Kind::ALL.into_iter().position(|kind| kind.folder() == folder)?;
    let mut digits = 0_u64;
    let mut add = |part: &str| {
        let is_number = part.bytes().all(|byte| byte.is_ascii_digit());
        part.bytes().for_each(|byte| digits = digits * 10 + u64::from(byte.wrapping_sub(b'0')));
        is_number
    };
    for len in [4, 2, 2] {
        parts.next().filter(|part| part.len() == len && add(part))?;
    }
    let file = parts.next()?.strip_suffix(Kind::ALL[kind].extension())?.strip_suffix('.')?;
    let (time, rest) = file.split_once('-')?;
    if !matches!(time.len(), 4 | 6) || !add(time) || parts.next().is_some() {
        return None;
    }
    let (probe, number) = match numbered(rest) {
        None => (rest, 0),
        Some(probe) => {
            let text = &rest[probe.len() + 1..];
            let number: u64 = text.parse().ok()?;
            // One text a number.
            let is_plain = number.to_string() == text && number + 1 < 1 << NUMBER_BITS;
            (probe, is_plain.then_some(number + 1)?)
        }
    };
    if probe.is_empty() {
        return None;
    }
    let form = u64::from(time.len() == 6);
    let key = ((kind as u64) << 1 | form) << 47 | digits;
    Some((probe, key << NUMBER_BITS | number))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;
    use crate::layout::Layout;

    #[test]
    fn names_of_runs_have_a_key() {
        for (name, probe) in [
            ("flows/2026/11/26/1005-edge.parquet", Some("edge")),
            ("flows/9999/99/99/999999-a.b.16382.parquet", Some("a.b")),
            ("events/2026/11/26/100500-edge.0.json", Some("edge")),
            ("totals/2026/11/26/1005-a-b.7.json", Some("a-b")),
            ("flows/2026/11/26/1005-edge.07.parquet", None),
            ("flows/2026/11/26/1005-edge.16383.parquet", None),
            ("flows/2026/11/26/1005-edge.99999999999999999999.parquet", None),
            ("flows/2026/11/26/1005-edge..parquet", None),
            ("flows/2026/11/26/1005-edge.json", None),
            ("flows/2026/11/26/1005-.parquet", None),
            ("flows/2026/11/26/10050-edge.parquet", None),
            ("flows/2026/11/26/x/1005-edge.parquet", None),
            ("flows//2026/11/26/1005-edge.parquet", None),
            ("other/2026/11/26/1005-edge.parquet", None),
            ("", None),
        ] {
            assert_eq!(key(name).map(|(probe, _)| probe), probe, "{name}");
        }
    }

    #[test]
    fn names_are_found_until_they_are_removed() {
        let mut names = Names::with_room("edge", 2);
        let all =
            ["flows/2026/11/26/1005-edge.parquet", "flows/2026/11/26/1005-a.parquet", "other"];
        for (number, name) in (0..).zip(all) {
            assert_eq!((names.insert(name, 9), names.insert(name, number)), (None, Some(9)));
        }
        assert_eq!(all.map(|name| names.get(name)), [Some(0), Some(1), Some(2)]);
        all.iter().for_each(|name| names.remove(name));
        assert_eq!(all.map(|name| names.get(name)), [None; 3]);
    }

    #[test]
    fn a_table_takes_no_more_than_its_bytes() {
        for bytes in [1 << 20, 3 << 20, 16 << 20] {
            let most = Names::most(bytes);
            let places =
                HashMap::<u64, u64>::with_capacity(most as usize).capacity() as u64 / 7 * 8;
            assert!(places * ENTRY_BYTES as u64 <= bytes && most * 40 > bytes, "{bytes}: {most}");
        }
    }

    proptest! {
        #[test]
        fn names_with_one_key_are_equal(
            all in prop::collection::vec((0..4_usize, "[0-9]{4}", "[0-9]{1,3}", "[0-9]{1,2}", "[0-9]{3,7}",
                "(a|a-b|a\\.b|a\\.7|)", "(|\\.[0-9]{0,6})", "(parquet|json)", "(/|//|/\\./)"), 2..60)
        ) {
            let mut found = HashMap::new();
            for (kind, year, month, day, time, probe, number, extension, slash) in all {
                let folder = Kind::ALL[kind].folder();
                let name = format!("{folder}/{year}/{month}{slash}{day}/{time}-{probe}{number}.{extension}");
                let Some((probe, key)) = key(&name) else { continue };
                // The file is one of the layout, with the same probe.
                prop_assert_eq!(Layout::parse(Path::new(&name)), Some((Kind::ALL[kind], probe)));
                let before = found.insert((probe.to_owned(), key), name.clone());
                prop_assert!(before.is_none_or(|before| before == name));
            }
        }
    }
}
