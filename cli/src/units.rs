//! Durations, counts and sizes as people write them.
//!
//! | kind | examples | unit letters |
//! |---|---|---|
//! | duration | `30`, `30s`, `500ms`, `1h30m`, `1.5s` | ns us ms s m h d; a bare number is seconds |
//! | count | `4096`, `100k`, `1.5M` | k M G: powers of 1000 |
//! | size | `512M`, `4G`, `64KiB` | k M G, also with B or iB: powers of 1024 |

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use ringtap_export::Refresh;
use ringtap_plan::{Limits, Timeouts};

const SECOND: f64 = 1e9;

/// Nanoseconds.
pub(crate) fn duration_ns(text: &str) -> Result<u64, String> {
    let example = || format!("{text:?} is no duration; write 30, 30s, 500ms or 1h30m");
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
pub(crate) fn count(text: &str) -> Result<u64, String> {
    let error = || format!("{text:?} is no count; write 4096, 100k, 5M or 1G");
    scaled(text, 1_000.0, &["", "k", "M", "G", "T"]).ok_or_else(error)
}

/// Where to listen: `127.0.0.1:9464`, `[::]:9464`, or a port of this machine alone, `9464`.
pub(crate) fn listening(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix(':').unwrap_or(text).parse();
    let local = |port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    port.map(local).or_else(|_| text.parse()).map_err(|_| {
        format!("{text:?} is no place to listen at; write a port, 9464, or an address and a port, 0.0.0.0:9464")
    })
}

/// One packet in so many: `1:100`, or `100`.
pub(crate) fn sample(text: &str) -> Result<u32, String> {
    let given = count(text.strip_prefix("1:").unwrap_or(text)).ok();
    given
        .and_then(|count| u32::try_from(count).ok())
        .filter(|&count| count > 0)
        .ok_or_else(|| format!("{text:?} is no sampling; write 1:100 for one packet in a hundred"))
}

/// As [`count`], for what is indexed.
pub(crate) fn index_count(text: &str) -> Result<usize, String> {
    usize::try_from(count(text)?).map_err(|_| format!("{text} is too large"))
}

/// Bytes, with powers of 1024.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let error = || format!("{text:?} is no size; write 65536, 512M or 4G");
    let bare = text.strip_suffix("iB").or_else(|| text.strip_suffix('B')).unwrap_or(text);
    scaled(bare, 1_024.0, &["", "k", "M", "G", "T"]).ok_or_else(error)
}

/// When templates are sent again: `600s`, or with a number of messages, `600s,4096`.
pub(crate) fn refresh(text: &str) -> Result<Refresh, String> {
    let (time, messages) = match text.split_once(',') {
        Some((time, messages)) => (time, count(messages)?),
        None => (text, Refresh::DEFAULT.messages),
    };
    let every = Duration::from_nanos(duration_ns(time)?);
    if every.is_zero() || messages == 0 {
        return Err(format!("{text:?} would repeat templates without end; write 600s,4096"));
    }
    Ok(Refresh { every, messages })
}

/// A preset of timeouts, and those that are set by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TimeoutList {
    pub(crate) preset: Timeouts,
    pub(crate) set: Vec<(String, u64)>,
}

/// `nfdump`, `tcp.fin=2s,udp=10s`, `zeek,maxlife=1h`.
pub(crate) fn timeouts(text: &str) -> Result<TimeoutList, String> {
    let mut list = TimeoutList::default();
    for word in text.split(',').map(str::trim) {
        let presets = Timeouts::PRESETS.map(|(name, _)| name).join(", ");
        let names = Timeouts::default().named().map(|(name, _)| format!("{name}=")).join(", ");
        let unknown =
            || format!("{word:?} is no timeout; there are the presets {presets}, and {names}");
        match word.split_once('=') {
            Some((name, "never")) if Timeouts::default().set(name, 0) => {
                list.set.push((name.into(), u64::MAX));
            }
            Some((name, time)) if Timeouts::default().set(name, 0) => {
                list.set.push((name.into(), duration_ns(time)?));
            }
            None => list.preset = Timeouts::preset(word).ok_or_else(unknown)?,
            Some(_) => return Err(unknown()),
        }
    }
    Ok(list)
}

/// A limit of `--alert`, by name.
pub(crate) type Limit = (String, u64);

/// `dst-pps=100k`.
pub(crate) fn limit(text: &str) -> Result<Limit, String> {
    let (name, number) = text.split_once('=').ok_or("say NAME=NUMBER, as in dst-pps=100k")?;
    Limits::default().set(name, 0).map_err(|error| error.to_string())?;
    Ok((name.into(), count(number)?))
}

/// Arguments of another program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Words(pub(crate) Vec<String>);

/// Words between blanks.
pub(crate) fn words(text: &str) -> Result<Words, String> {
    Ok(Words(text.split_whitespace().map(str::to_owned).collect()))
}

/// Core numbers, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cores(pub(crate) Vec<usize>);

/// `0,2` and `0-3`.
pub(crate) fn cores(text: &str) -> Result<Cores, String> {
    let error = || format!("{text:?} is no list of cores; write 0,1 or 0-3");
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

/// A decimal number and what follows it.
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
    fn samplings() {
        assert_eq!((sample("1:100"), sample("100"), sample("1:2k")), (Ok(100), Ok(100), Ok(2_000)));
        for wrong in ["", "1:", "0", "1:0", "2:3", "1:5G", "1:1:1"] {
            assert!(sample(wrong).is_err(), "{wrong}");
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

    #[test]
    fn timeouts_by_preset_and_by_name() {
        let list = timeouts("zeek, udp=10s,maxlife=never").unwrap();
        assert_eq!(Some(list.preset), Timeouts::preset("zeek"));
        let set = [("udp".to_owned(), 10_000_000_000), ("maxlife".to_owned(), u64::MAX)];
        assert_eq!(list.set, set);
        for (wrong, words) in
            [("", "nprobe"), ("tcp", "tcp.fin="), ("sctp=3", "general="), ("tcp=x", "1h30m")]
        {
            let error = timeouts(wrong).unwrap_err();
            assert!(error.contains(words), "{wrong}: {error}");
        }
    }
}
