//! Parsers of flag values.

use std::time::Duration;

use ringtap_export::Refresh;
use ringtap_export::formats::CommunityId;
use ringtap_flow::Timeouts;
use ringtap_monitor::{ChangeLimits, Limits};
use ringtap_store::KeepFree;
pub(crate) use ringtap_terminal::units::{
    Cores, cores, count, duration_ns, index_count, listening, number_in, positive_bytes,
    positive_count, positive_duration_ns, share,
};

/// A sampling rate: `1:100`, or `100`.
pub(crate) fn sample(text: &str) -> Result<u32, String> {
    let number = count(text.strip_prefix("1:").unwrap_or(text)).ok();
    number.and_then(|count| u32::try_from(count).ok()).filter(|&count| count > 0).ok_or_else(|| {
        format!("invalid sampling rate {text:?}: use 1:100 for one packet in a hundred")
    })
}

/// The time between two cuts: whole seconds.
pub(crate) fn cut_ns(text: &str) -> Result<u64, String> {
    let error = || format!("invalid time between cuts {text:?}: use whole seconds, as in 60s");
    whole_seconds(text)?.ok_or_else(error)
}

/// The time between two files: whole seconds.
pub(crate) fn rotate_ns(text: &str) -> Result<u64, String> {
    let error = || format!("invalid time between files {text:?}: use whole seconds, as in 5m");
    whole_seconds(text)?.ok_or_else(error)
}

/// The hash of a line of a manifest, in small letters.
pub(crate) fn line_hash(text: &str) -> Result<String, String> {
    if text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        Ok(text.to_ascii_lowercase())
    } else {
        Err("use the 64 hexadecimal digits that 'ringtap verify' prints as the last line".into())
    }
}

/// A Community ID.
pub(crate) fn community_id(text: &str) -> Result<CommunityId, String> {
    let error = || {
        format!(
            "invalid Community ID {text:?}: use 1: and 28 characters, as in the field communityId"
        )
    };
    CommunityId::parse(text).ok_or_else(error)
}

/// What stays free on a file system: a share in percent, or bytes.
pub(crate) fn keep_free(text: &str) -> Result<KeepFree, String> {
    let error = || {
        format!(
            "invalid free space {text:?}: use a share below 100%, as in 5%, or a size, as in 10G"
        )
    };
    match text.strip_suffix('%') {
        None => positive_bytes(text).map(KeepFree::Bytes).map_err(|_| error()),
        Some(percent) => {
            let percent = percent.parse::<f64>().ok().map(|percent| (percent * 1e4).round());
            let millionths = percent.filter(|share| *share >= 1.0 && *share < 1e6);
            millionths.map(|share| KeepFree::Share(share as u32)).ok_or_else(error)
        }
    }
}

/// `None` for a time that is not whole seconds, at least one.
fn whole_seconds(text: &str) -> Result<Option<u64>, String> {
    let is_whole = |&ns: &u64| ns > 0 && ns.is_multiple_of(Timeouts::SECOND);
    Ok(Some(duration_ns(text)?).filter(is_whole))
}

/// An exponent of a Zipf distribution.
pub(crate) fn exponent(text: &str) -> Result<f64, String> {
    let exponent = text.parse().ok().filter(|exponent| (0.0..=10.0).contains(exponent));
    exponent.ok_or_else(|| format!("invalid exponent {text:?}: use 0 to 10"))
}

/// Resending of templates: `600s`, or with a number of messages, `600s,4096`.
pub(crate) fn refresh(text: &str) -> Result<Refresh, String> {
    let (time, messages) = match text.split_once(',') {
        Some((time, messages)) => (time, count(messages)?),
        None => (text, Refresh::DEFAULT.messages),
    };
    let every = Duration::from_nanos(duration_ns(time)?);
    if every.is_zero() || messages == 0 {
        return Err(format!("invalid template refresh {text:?}: use 600s or 600s,4096"));
    }
    Ok(Refresh { every, messages })
}

/// The value of `--timeouts`: a preset and single timeouts by name, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TimeoutList {
    pub(crate) preset: Option<Timeouts>,
    pub(crate) set: Vec<(String, u64)>,
}

impl TimeoutList {
    /// All of several lists.
    ///
    /// # Errors
    /// If a name, or a preset, is given twice.
    pub(crate) fn join(lists: &[Self]) -> Result<Self, String> {
        let mut all = Self::default();
        for list in lists {
            if all.preset.is_some() && list.preset.is_some() {
                return Err("--timeouts has two presets: omit one".into());
            }
            all.preset = all.preset.or(list.preset);
            for (name, time) in &list.set {
                if all.set.iter().any(|(other, _)| other == name) {
                    return Err(format!("--timeouts has {name}= twice: omit one"));
                }
                all.set.push((name.clone(), *time));
            }
        }
        Ok(all)
    }
}

/// Timeouts, as in `nfdump`, `tcp.fin=2s,udp=10s` or `zeek,maxlife=1h`.
pub(crate) fn timeouts(text: &str) -> Result<TimeoutList, String> {
    let mut words = Vec::new();
    for word in text.split(',').map(str::trim) {
        let mut list = TimeoutList::default();
        let presets = Timeouts::PRESETS.map(|(name, _)| name).join(", ");
        let names = Timeouts::default().named().map(|(name, _)| format!("{name}=")).join(", ");
        let unknown =
            || format!("unknown timeout {word:?}: use a preset ({presets}) or a name ({names})");
        match word.split_once('=') {
            Some((name, "never")) if Timeouts::default().set(name, 0) => {
                list.set.push((name.into(), u64::MAX));
            }
            Some((name, time)) if Timeouts::default().set(name, 0) => {
                list.set.push((name.into(), positive_duration_ns(time)?));
            }
            None => list.preset = Some(Timeouts::preset(word).ok_or_else(unknown)?),
            Some(_) => return Err(unknown()),
        }
        words.push(list);
    }
    TimeoutList::join(&words)
}

/// A limit of `--alert`: name, and number or nanoseconds.
pub(crate) type Limit = (String, u64);

/// An alert limit, as in `dst-pps=100k` or `new-device=1h`.
pub(crate) fn limit(text: &str) -> Result<Limit, String> {
    let (name, value) = text.split_once('=').ok_or_else(|| {
        format!("invalid alert {text:?}: use NAME=NUMBER, as in dst-pps=100k, or NAME=TIME, as in new-device=1h")
    })?;
    let known = Limits::default().set(name, 0).or_else(|_| ChangeLimits::default().set(name, 0));
    known.map_err(|error| error.to_string())?;
    let read = if ChangeLimits::is_time(name) { positive_duration_ns } else { positive_count };
    Ok((name.into(), read(value)?))
}

/// A list of words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Words(pub(crate) Vec<String>);

/// Splits `text` at blanks; never an error.
pub(crate) fn words(text: &str) -> Result<Words, String> {
    Ok(Words(text.split_whitespace().map(str::to_owned).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sampling_rates_are_parsed() {
        assert_eq!((sample("1:100"), sample("100"), sample("1:2k")), (Ok(100), Ok(100), Ok(2_000)));
        for wrong in ["", "1:", "0", "1:0", "2:3", "1:5G", "1:1:1"] {
            assert!(sample(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn timeouts_are_parsed_by_preset_and_by_name() {
        let list = timeouts("zeek, udp=10s,maxlife=never").unwrap();
        assert_eq!(list.preset, Timeouts::preset("zeek"));
        let set = [("udp".to_owned(), 10_000_000_000), ("maxlife".to_owned(), u64::MAX)];
        assert_eq!(list.set, set);
        for (wrong, words) in [
            ("", "nprobe"),
            ("tcp", "tcp.fin="),
            ("sctp=3", "general="),
            ("tcp=x", "1h30m"),
            ("tcp=1,tcp=2", "omit one"),
            ("zeek,yaf", "omit one"),
        ] {
            let error = timeouts(wrong).unwrap_err();
            assert!(error.contains(words), "{wrong}: {error}");
        }
    }
}
