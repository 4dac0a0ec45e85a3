//! Durations, counts, sizes, lists of cores and listen addresses as text.
//!
//! | kind | examples | unit letters |
//! |---|---|---|
//! | duration | `30`, `30s`, `500ms`, `1h30m`, `1.5s` | ns us ms s m h d; a bare number is seconds |
//! | count | `4096`, `100k`, `1.5M` | k M G: powers of 1000 |
//! | size | `512M`, `4G`, `64KiB` | k M G, also with B or iB: powers of 1024 |
//! | cores | `0,2`, `0-3` | |
//! | listen address | `9464`, `0.0.0.0:9464` | |

use std::fmt::Display;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;

const SECOND: f64 = 1e9;

/// The largest size: more than the address space of a process.
const MOST_BYTES: u64 = 256 << 40;

/// Nanoseconds.
pub fn duration_ns(text: &str) -> Result<u64, String> {
    let example = || format!("invalid duration {text:?}: use 30, 30s, 500ms or 1h30m");
    let mut rest = text;
    let mut total = 0.0;
    while !rest.is_empty() {
        let (number, after) = decimal(rest).ok_or_else(example)?;
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
    // Digits other than 0 are not nothing.
    let vanishes = total < 0.5 && text.contains(|letter| matches!(letter, '1'..='9'));
    if text.is_empty() || vanishes { Err(example()) } else { whole(total).ok_or_else(example) }
}

/// As [`duration_ns`], but not 0.
pub fn positive_duration_ns(text: &str) -> Result<u64, String> {
    positive(duration_ns(text)?, || {
        format!("invalid duration {text:?}: use more than 0, as in 30s")
    })
}

/// A number of things, with powers of 1000.
pub fn count(text: &str) -> Result<u64, String> {
    let error = || format!("invalid count {text:?}: use 4096, 100k, 5M or 1G");
    let exact = |number: f64| (number - number.round()).abs() <= number * 1e-9;
    scaled(text, 1_000.0, &["", "k", "M", "G", "T"], exact).ok_or_else(error)
}

/// As [`count`], but not 0.
pub fn positive_count(text: &str) -> Result<u64, String> {
    positive(count(text)?, || format!("invalid count {text:?}: use 1 or more"))
}

/// A number of this range; as [`count`], it may have a unit letter.
pub fn number_in<T: TryFrom<u64> + PartialOrd + Display>(
    range: RangeInclusive<T>,
) -> impl Fn(&str) -> Result<T, String> + Clone
where
    RangeInclusive<T>: Clone,
{
    move |text| {
        let number = count(text).ok().and_then(|count| T::try_from(count).ok());
        number.filter(|number| range.contains(number)).ok_or_else(|| {
            format!("invalid number {text:?}: use {} to {}", range.start(), range.end())
        })
    }
}

/// A share of a total, more than 0 and at most 1.
pub fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| *share > 0.0 && *share <= 1.0);
    share.ok_or_else(|| {
        format!("invalid share {text:?}: use more than 0 and at most 1, as in 0.001")
    })
}

/// As [`count`], for indices.
pub fn index_count(text: &str) -> Result<usize, String> {
    usize::try_from(count(text)?).map_err(|_| format!("{text} is too large"))
}

/// Bytes, with powers of 1024.
pub fn bytes(text: &str) -> Result<u64, String> {
    let error = || format!("invalid size {text:?}: use 65536, 512M or 4G, at most 256T");
    let bare = text.strip_suffix("iB").or_else(|| text.strip_suffix('B')).unwrap_or(text);
    let some = |number: f64| number == 0.0 || number >= 1.0;
    let size = scaled(bare, 1_024.0, &["", "k", "M", "G", "T"], some);
    size.filter(|&bytes| bytes <= MOST_BYTES).ok_or_else(error)
}

/// As [`bytes`], but not 0.
pub fn positive_bytes(text: &str) -> Result<u64, String> {
    positive(bytes(text)?, || format!("invalid size {text:?}: use more than 0, as in 512M"))
}

fn positive(number: u64, error: impl Fn() -> String) -> Result<u64, String> {
    if number == 0 { Err(error()) } else { Ok(number) }
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

/// A number with a letter for its unit, if the product `is_valid`.
fn scaled(text: &str, step: f64, letters: &[&str], is_valid: impl Fn(f64) -> bool) -> Option<u64> {
    if let Ok(exact) = text.parse() {
        return Some(exact);
    }
    let (number, letter) = decimal(text)?;
    let power = letters.iter().position(|known| known.eq_ignore_ascii_case(letter))?;
    let product = number * step.powi(power as i32);
    if is_valid(product) { whole(product) } else { None }
}

/// A decimal number and the text after it.
fn decimal(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

/// Exact up to 2^53, and to 16 digits beyond.
fn whole(value: f64) -> Option<u64> {
    (value < u64::MAX as f64).then_some(value.round() as u64)
}

/// A listen address: `127.0.0.1:9464`, `[::]:9464`, or a port of the loopback address, `9464` or `localhost:9464`.
pub fn listening(text: &str) -> Result<SocketAddr, String> {
    let text = text.strip_prefix("localhost").unwrap_or(text);
    let port = text.strip_prefix(':').unwrap_or(text).parse();
    let local = |port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    port.map(local).or_else(|_| text.parse()).map_err(|_| {
        format!("invalid listen address {text:?}: use a port, 9464, or an address and a port, 0.0.0.0:9464")
    })
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
        for wrong in
            ["", "s", "1x", "-1", "1h30", "1 s", "..", "99999999999d", "0.1ns", "0.0000000001"]
        {
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
        assert_eq!((count("1.1M"), bytes("1.3G")), (Ok(1_100_000), Ok(1_395_864_371)));
        for wrong in ["0.0000001", "1.5", "0.0001k"] {
            assert!(count(wrong).is_err_and(|e| e.contains("100k")), "{wrong}");
        }
        for wrong in ["0.1", "257T", "18446744073709551615"] {
            assert!(bytes(wrong).is_err_and(|e| e.contains("at most 256T")), "{wrong}");
        }
    }
    #[test]
    fn values_without_a_meaning_are_refused() {
        assert_eq!((positive_count("1"), number_in(1..=64_u16)("64")), (Ok(1), Ok(64)));
        assert_eq!(number_in(0..=u64::MAX)("18446744073709551615"), Ok(u64::MAX));
        assert_eq!((share("1"), share("0.001")), (Ok(1.0), Ok(0.001)));
        for wrong in ["0", "", "-1"] {
            assert!(positive_count(wrong).is_err_and(|error| error.contains("use ")), "{wrong}");
            assert!(positive_bytes(wrong).is_err_and(|error| error.contains("use ")), "{wrong}");
            assert!(positive_duration_ns(wrong).is_err_and(|error| error.contains("30s")));
        }
        for wrong in ["0", "", "65", "65536", "18446744073709551616"] {
            assert!(number_in(1..=64_u16)(wrong).is_err_and(|e| e.ends_with("use 1 to 64")));
        }
        for wrong in ["0", "", "1.1", "-0.1", "nan", "inf"] {
            assert!(share(wrong).is_err_and(|error| error.contains("at most 1")), "{wrong}");
        }
    }
}
