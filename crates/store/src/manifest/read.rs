//! Reading manifests.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::Line;
use crate::layout::{Layout, MANIFEST};

/// Most bytes of a line.
const MOST_LINE: u64 = 1 << 20;

/// The hash of a line, in hexadecimal digits.
pub(crate) fn hash(line: &str) -> String {
    hex(&Sha256::digest(line.as_bytes()))
}

/// Hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The manifests of a store, by probe, in the order of days.
pub(crate) struct Manifests(pub(crate) BTreeMap<String, Vec<PathBuf>>);

impl Manifests {
    /// # Errors
    /// The folder cannot be read.
    pub(crate) fn of(root: &Path) -> io::Result<Self> {
        let mut all = BTreeMap::<_, Vec<_>>::new();
        for entry in fs::read_dir(root.join(MANIFEST))? {
            let entry = entry?;
            let name = entry.file_name();
            if let Some((_, probe)) = name.to_str().and_then(parse)
                && entry.file_type()?.is_file()
            {
                all.entry(probe.to_owned()).or_default().push(entry.path());
            }
        }
        all.values_mut().for_each(|paths| paths.sort());
        Ok(Self(all))
    }
}

impl Manifests {
    /// The probe of a manifest with this name.
    pub(crate) fn probe(name: &str) -> Option<&str> {
        parse(name).map(|(_, probe)| probe)
    }
}

/// The manifests of a probe, with their days since 1970, in order.
pub(crate) fn files(layout: &Layout) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut all = Manifests::of(&layout.root)?.0;
    let paths = all.remove(&layout.probe).unwrap_or_default();
    let day = |path: &PathBuf| Some(parse(path.file_name()?.to_str()?)?.0);
    Ok(paths.into_iter().filter_map(|path| Some((day(&path)?, path))).collect())
}

/// The day and the probe of a manifest.
fn parse(name: &str) -> Option<(u64, &str)> {
    let (date, probe) = (name.get(..10)?, name.get(10..)?);
    let probe = probe.strip_prefix('-')?.strip_suffix(".jsonl")?;
    let mut parts = date.split('-').map(|part| part.parse::<u32>().ok());
    let date = (parts.next()??, parts.next()??, parts.next()??);
    Some((day(date)?, probe)).filter(|(_, probe)| !probe.is_empty())
}

/// The day since 1970 of a date; `None` if there is none such.
fn day(date: (u32, u32, u32)) -> Option<u64> {
    // The days before a year, at most; the right one is close.
    let (year, month, _) = date;
    let guess = u64::from(year.checked_sub(1970)?) * 365 + u64::from(month.checked_sub(1)?) * 28;
    (guess..guess + 31 * 12 + u64::from(year)).find(|day| ringtap_base::civil(*day) == date)
}

/// The number of lines of a manifest.
///
/// # Errors
/// That of the system.
pub(crate) fn count_lines(path: &Path) -> io::Result<u64> {
    let mut file = BufReader::new(File::open(path)?);
    let mut lines = 0;
    while let piece @ [_, ..] = file.fill_buf()? {
        let len = piece.len();
        lines += piece.iter().filter(|&&byte| byte == b'\n').count() as u64;
        file.consume(len);
    }
    Ok(lines)
}

/// Reads the lines of a manifest. `found` gets the number of the line in its file, its text, and the line or why it is
/// none. A last line without its end is left out; then true is returned.
///
/// # Errors
/// That of the system.
pub(crate) fn each_line(
    path: &Path,
    mut found: impl FnMut(u64, &str, Result<Line, String>),
) -> io::Result<bool> {
    let mut file = BufReader::new(File::open(path)?);
    let mut bytes = Vec::new();
    for number in 1.. {
        bytes.clear();
        file.by_ref().take(MOST_LINE).read_until(b'\n', &mut bytes)?;
        if bytes.is_empty() {
            break;
        }
        if bytes.pop_if(|byte| *byte == b'\n').is_none() {
            if bytes.len() as u64 == MOST_LINE {
                found(number, "", Err("the line is too long".into()));
                return Ok(false);
            }
            return Ok(true);
        }
        match str::from_utf8(&bytes) {
            Err(error) => found(number, "", Err(error.to_string())),
            Ok(text) => {
                found(number, text, serde_json::from_str(text).map_err(|error| error.to_string()));
            }
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_has_a_day_and_a_probe() {
        for (name, found) in [
            ("1970-01-01-a.jsonl", Some((0, "a"))),
            ("2026-11-26-edge-1.jsonl", Some((20_783, "edge-1"))),
            ("2024-02-29-a.jsonl", Some((19_782, "a"))),
            ("2026-02-29-a.jsonl", None),
            ("2026-13-01-a.jsonl", None),
            ("2026-00-01-a.jsonl", None),
            ("2026-11-26-.jsonl", None),
            ("2026-11-26.jsonl", None),
            ("x", None),
        ] {
            assert_eq!(parse(name), found, "{name}");
        }
    }
}
