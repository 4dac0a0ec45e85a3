//! The vendors of network cards: names by the first bits of their addresses, from a list of the user.
//!
//! ```text
//!  IEEE's text      28-6F-B9   (hex)     NAME
//!  IEEE's table     MA-L,286FB9,"NAME",…          MA-M and MA-S with 7 and 9 digits
//!  Wireshark's      28:6F:B9   SHORT   NAME       00:1B:C5:00:10:00/36 with a length
//! ```
//!
//! Other lines of these files are skipped. The longest prefix of an address counts.

use std::path::Path;
use std::sync::Arc;

use crate::lines::{InvalidList, read};

/// The lengths of prefixes, in bits, the longest first.
const LENGTHS: [u8; 3] = [36, 28, 24];
/// Most prefixes.
const PREFIXES_MAX: usize = 1 << 20;
/// Longest name that is kept, in bytes.
const NAME_MAX: usize = 120;
/// Of the first byte: a group, or an address that was chosen locally.
const NOT_ASSIGNED: u8 = 0x03;

/// Names of vendors.
#[derive(Debug)]
pub struct Vendors {
    /// For each length the prefixes, in order, and the positions of their names.
    prefixes: [Vec<(u64, u32)>; LENGTHS.len()],
    names: Vec<Arc<str>>,
}

impl Vendors {
    /// Reads a list.
    ///
    /// # Errors
    /// [`InvalidList`].
    pub fn read(path: &Path) -> Result<Self, InvalidList> {
        Self::parse(&read(path)?)
    }

    /// Parses a list. Of equal prefixes the first one counts.
    ///
    /// # Errors
    /// [`InvalidList::Line`], also if no line has a prefix and a name.
    pub fn parse(list: &[u8]) -> Result<Self, InvalidList> {
        let invalid = |number, reason| InvalidList::Line { number, line: String::new(), reason };
        let mut prefixes: [Vec<(u64, u32)>; LENGTHS.len()] = Default::default();
        let mut names: Vec<Arc<str>> = Vec::new();
        for (number, line) in (1..).zip(list.split(|&byte| byte == b'\n')) {
            let line = String::from_utf8_lossy(line);
            let Some((prefix, len, name)) = entry(line.trim()) else { continue };
            let Some(at) = LENGTHS.iter().position(|own| *own == len) else { continue };
            if names.len() == PREFIXES_MAX {
                return Err(invalid(number, "too many vendors: 1,048,576 at most"));
            }
            prefixes[at].push((prefix, names.len() as u32));
            names.push(Arc::from(name));
        }
        if names.is_empty() {
            return Err(invalid(
                1,
                "no vendors: use oui.txt or oui.csv of IEEE, or Wireshark's manuf",
            ));
        }
        for own in &mut prefixes {
            // Stable: of equal prefixes the first one stays.
            own.sort_by_key(|(prefix, _)| *prefix);
            own.dedup_by_key(|(prefix, _)| *prefix);
        }
        Ok(Self { prefixes, names })
    }

    /// The vendor of an address.
    pub fn name(&self, mac: [u8; 6]) -> Option<&Arc<str>> {
        let [first, ..] = mac;
        if first & NOT_ASSIGNED != 0 {
            return None;
        }
        let [a, b, c, d, e, f] = mac;
        let address = u64::from_be_bytes([0, 0, a, b, c, d, e, f]);
        self.prefixes.iter().zip(LENGTHS).find_map(|(own, len)| {
            let prefix = address >> (48 - len);
            let at = own.binary_search_by_key(&prefix, |(prefix, _)| *prefix).ok()?;
            self.names.get(own[at].1 as usize)
        })
    }

    /// The number of prefixes.
    pub fn count(&self) -> usize {
        self.prefixes.iter().map(Vec::len).sum()
    }

    /// Bytes of memory.
    pub(crate) fn memory(&self) -> u64 {
        let names: usize = self.names.iter().map(|name| name.len() + 32).sum();
        (self.count() * 2 * size_of::<(u64, u32)>() + names) as u64
    }
}

/// The prefix, its length in bits and the name in a line, if it has them.
fn entry(line: &str) -> Option<(u64, u8, &str)> {
    let (prefix, len, name) = match line.split_once(',') {
        Some(("MA-L" | "MA-M" | "MA-S" | "IAB", rest)) => {
            let (digits, rest) = rest.split_once(',')?;
            let (prefix, len) = digits_of(digits)?;
            let name = match rest.strip_prefix('"') {
                Some(quoted) => quoted.split('"').next()?,
                None => rest.split(',').next()?,
            };
            (prefix, len, name)
        }
        _ => {
            let (first, rest) = line.split_once(char::is_whitespace)?;
            let (prefix, len) = written(first)?;
            let rest = rest.trim_start();
            let name = match rest.strip_prefix("(hex)") {
                Some(name) => name,
                None => rest.rsplit('\t').find(|name| !name.trim().is_empty())?,
            };
            (prefix, len, name)
        }
    };
    let name = name.trim();
    let end = (0..=name.len().min(NAME_MAX)).rev().find(|&at| name.is_char_boundary(at))?;
    (end > 0).then_some((prefix, len, &name[..end]))
}

/// A prefix of pairs of digits between colons or hyphens, perhaps with a length.
fn written(text: &str) -> Option<(u64, u8)> {
    let (pairs, len) = match text.split_once('/') {
        Some((pairs, len)) => (pairs, Some(len.parse::<u8>().ok()?)),
        None => (text, None),
    };
    let apart = pairs.get(2..3).filter(|apart| matches!(*apart, ":" | "-"))?;
    let digits: String = pairs.split(apart).collect();
    let (value, bits) = digits_of(&digits)?;
    match len {
        Some(len) if len <= bits => Some((value >> (bits - len), len)),
        Some(_) => None,
        None => Some((value, bits)),
    }
}

/// Hexadecimal digits, at most those of an address, and their bits.
fn digits_of(digits: &str) -> Option<(u64, u8)> {
    if digits.len() > 12 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    Some((u64::from_str_radix(digits, 16).ok()?, digits.len() as u8 * 4))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OF_SMALL: [u8; 6] = [0x00, 0x1b, 0xc5, 0x00, 0x12, 0x34];

    #[test]
    fn all_forms_of_lists_are_read() {
        for (list, count) in [
            (
                "OUI/MA-L  Organization\n\n28-6F-B9   (hex)\t\tNokia Bell Co., Ltd.\n286FB9     (base 16)\t\tNokia\n\t\t\t\tCN\n",
                1,
            ),
            (
                "Registry,Assignment,Organization Name,Organization Address\nMA-L,286FB9,\"Nokia Bell Co., Ltd.\",\"No.1, Road\"\r\nMA-S,001BC5001,Small,Town\n",
                2,
            ),
            (
                "# comment\n28:6F:B9\tNokia\tNokia Bell Co., Ltd.\n00:1B:C5:00:10:00/36\tSmall\n01:00:0C:CC:CC:CC/48\tGroup\n",
                2,
            ),
        ] {
            let vendors = Vendors::parse(list.as_bytes()).unwrap();
            let name = |mac| vendors.name(mac).map(|name| &**name);
            assert_eq!(name([0x28, 0x6f, 0xb9, 1, 2, 3]), Some("Nokia Bell Co., Ltd."));
            assert_eq!((name([0x2a, 0x6f, 0xb9, 1, 2, 3]), name([0; 6])), (None, None));
            assert_eq!((vendors.count(), name(OF_SMALL)), (count, (count == 2).then_some("Small")));
        }
    }

    #[test]
    fn the_longest_prefix_counts() {
        let list = b"00:1B:C5\tIEEE\tRegistration\n00:1B:C5:00:10:00/36\tSmall\n00:1B:C5\tLater\n";
        let vendors = Vendors::parse(list).unwrap();
        let name = |mac| vendors.name(mac).map(|name| &**name);
        assert_eq!(name(OF_SMALL), Some("Small"));
        assert_eq!(name([0x00, 0x1b, 0xc5, 0x10, 0, 0]), Some("Registration"));
    }

    #[test]
    fn a_file_without_vendors_is_an_error_and_no_line_panics() {
        assert!(
            Vendors::parse(b"10.0.0.0/8 office\n").unwrap_err().to_string().contains("no vendors")
        );
        for line in [
            "",
            ",",
            "MA-L,",
            "MA-L,28,",
            "2",
            "28:6\u{e9}",
            "28:6F:B9",
            "28:6F:B9/60 x",
            "28:\u{e9} a",
            "::\t\t",
        ] {
            let _ = entry(line);
        }
        let long = format!("28:6F:B9\t{}", "\u{e9}".repeat(200));
        assert_eq!(entry(&long).map(|(_, _, name)| name.len()), Some(120));
    }
}
