//! Durations, counts, sizes and lists of cores as text.
//!
//! | kind | examples | unit letters |
//! |---|---|---|
//! | duration | `30`, `30s`, `500ms`, `1h30m`, `1.5s` | ns us ms s m h d; a bare number is seconds |
//! | count | `4096`, `100k`, `1.5M` | k M G: powers of 1000 |
//! | size | `512M`, `4G`, `64KiB` | k M G, also with B or iB: powers of 1024 |
//! | cores | `0,2`, `0-3` | |

const SECOND: f64 = 1e9;

/// Nanoseconds.
pub fn duration_ns(text: &str) -> Result<u64, String> {
    let example = || format!("invalid duration {text:?}: use 30, 30s, 500ms or 1h30m");
    let mut rest = text;
    let mut total = 0.0;
    while !rest.is_empty() {
        let (number, after) = number(rest).ok_or_else(example)?;
        let letters = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let unit = match &after[..letters] {
            "ns" => 1.0,
            "us" | "µs" => 1e3,
            "ms" => 1e6,
            "s" | "sec" => SECOND,
            "m" | "min" => 60.0 * SECOND,
            "h" => 3_600.0 * SECOND,
            "d" => 86_400.0 * SECOND,
            "" if rest == text => SECOND,
            _ => return Err(example()),
        };
        total += number * unit;
        rest = &after[letters..];
    }
    if text.is_empty() { Err(example()) } else { whole(total).ok_or_else(example) }
}

/// A number of things, with powers of 1000.
pub fn count(text: &str) -> Result<u64, String> {
    let error = || format!("invalid count {text:?}: use 4096, 100k, 5M or 1G");
    scaled(text, 1_000.0, &["", "k", "M", "G", "T"]).ok_or_else(error)
}

/// As [`count`], for indices.
pub fn index_count(text: &str) -> Result<usize, String> {
    usize::try_from(count(text)?).map_err(|_| format!("{text} is too large"))
}

/// Bytes, with powers of 1024.
pub fn bytes(text: &str) -> Result<u64, String> {
    let error = || format!("invalid size {text:?}: use 65536, 512M or 4G");
    let bare = text.strip_suffix("iB").or_else(|| text.strip_suffix('B')).unwrap_or(text);
    scaled(bare, 1_024.0, &["", "k", "M", "G", "T"]).ok_or_else(error)
}

/// Core numbers, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cores(pub Vec<usize>);

/// `0,2` and `0-3`.
pub fn cores(text: &str) -> Result<Cores, String> {
    let error = || format!("invalid list of cores {text:?}: use 0,1 or 0-3");
    let mut cores = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let first: u16 = first.trim().parse().map_err(|_| error())?;
        let last: u16 = last.trim().parse().map_err(|_| error())?;
        if first > last {
            return Err(error());
        }
        cores.extend((first..=last).map(usize::from));
    }
    Ok(Cores(cores))
}

fn scaled(text: &str, step: f64, letters: &[&str]) -> Option<u64> {
    if let Ok(exact) = text.parse() {
        return Some(exact);
    }
    let (number, letter) = number(text)?;
    let power = letters.iter().position(|known| known.eq_ignore_ascii_case(letter))?;
    whole(number * step.powi(power as i32))
}

/// A decimal number and the text after it.
fn number(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

/// Exact up to 2^53, and to 16 digits beyond.
fn whole(value: f64) -> Option<u64> {
    (value < u64::MAX as f64).then_some(value.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        for (text, ns) in [
            ("30", 30_000_000_000),
            ("30s", 30_000_000_000),
            ("0.5", 500_000_000),
            ("500ms", 500_000_000),
            ("1h30m", 5_400_000_000_000),
            ("1m0.5s", 60_500_000_000),
            ("7ns", 7),
            ("1d", 86_400_000_000_000),
        ] {
            assert_eq!(duration_ns(text), Ok(ns), "{text}");
        }
        for wrong in ["", "s", "1x", "-1", "1h30", "1 s", "..", "99999999999d"] {
            assert!(duration_ns(wrong).is_err_and(|e| e.contains("1h30m")), "{wrong}");
        }
    }

    #[test]
    fn counts_and_sizes() {
        assert_eq!(count("4096"), Ok(4_096));
        assert_eq!(count("1.5M"), Ok(1_500_000));
        assert_eq!(count("2k"), Ok(2_000));
        assert_eq!(count("18446744073709551615"), Ok(u64::MAX));
        assert_eq!(bytes("2k"), Ok(2_048));
        assert_eq!(bytes("64KiB"), Ok(65_536));
        assert_eq!(bytes("1GB"), Ok(1 << 30));
        for wrong in ["", "k", "1kk", "-1", "1e9", "99999999999G", "1µ"] {
            assert!(count(wrong).is_err() && bytes(wrong).is_err(), "{wrong}");
        }
    }
}
