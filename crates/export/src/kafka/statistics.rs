//! The message with which a run says what it made, sent and lost: once a minute, and at its end.
//!
//! Its key is the probe's name, and it has these headers, as text:
//!
//! | header | is |
//! |---|---|
//! | `format` | `statistics` |
//! | `probe`, `run` | as in all other messages |
//! | `last` | `true` at the end of the run, otherwise `false` |
//! | `records` | records that the run had for this topic so far, or states |
//! | `sent`, `lost` | how many of them brokers acknowledged, and how many were lost |
//!
//! The value has the same as JSON, with the time in milliseconds since 1970, and with losses by reason; and about the probe:
//!
//! | name | is |
//! |---|---|
//! | `version` | of the program |
//! | `settings` | what identifies the settings that decide what records mean, if the run has it |
//! | `packets`, `ignoredPackets` | packets so far, and those in no flow because they were dropped; if they are counted |

use serde::Serialize;

use crate::settings::Settings;
use crate::{Meter, Reason, Status};

/// The name of the format in the header.
pub(crate) const FORMAT: &[u8] = b"statistics";

#[derive(Serialize)]
struct Value<'a> {
    probe: &'a str,
    run: &'a str,
    time: i64,
    last: bool,
    records: u64,
    sent: u64,
    lost: std::collections::BTreeMap<&'static str, u64>,
    version: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    settings: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    packets: Option<u64>,
    #[serde(rename = "ignoredPackets", skip_serializing_if = "Option::is_none")]
    ignored_packets: Option<u64>,
}

/// The probe of a run.
#[derive(Debug)]
pub(crate) struct Probe {
    pub(crate) name: Option<String>,
    settings: Option<String>,
    meter: Option<Meter>,
}

impl Probe {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            name: settings.probe.clone(),
            settings: settings.settings_id.clone(),
            meter: settings.meter.clone(),
        }
    }
}

/// The headers after `format` and `probe`, and the value.
pub(crate) fn statistics(
    probe: &Probe,
    run: &str,
    time_ms: i64,
    last: bool,
    status: &Status,
) -> ([(&'static str, String); 5], Vec<u8>) {
    let losses = || status.lost.iter().filter(|(_, number)| *number > 0);
    let name = |&(reason, number): &(Reason, u64)| (reason.name(), number);
    let (records, sent) = (status.made, status.sent);
    let lost = losses().map(name).collect();
    let metered = probe.meter.as_ref().map(Meter::read);
    let value = Value {
        probe: probe.name.as_deref().unwrap_or_default(),
        run,
        time: time_ms,
        last,
        records,
        sent,
        lost,
        version: env!("CARGO_PKG_VERSION"),
        settings: probe.settings.as_deref(),
        packets: metered.map(|metered| metered.packets),
        ignored_packets: metered.map(|metered| metered.ignored_packets),
    };
    let headers = [
        ("run", run.to_owned()),
        ("last", last.to_string()),
        ("records", records.to_string()),
        ("sent", sent.to_string()),
        ("lost", losses().map(|(_, number)| number).sum::<u64>().to_string()),
    ];
    // Names and numbers can always be written.
    (headers, serde_json::to_vec(&value).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Metered;
    use crate::shared::{Shared, WaitPolicy};

    #[test]
    fn the_value_names_the_settings_and_counts_packets_and_losses() {
        let meter = Meter::new(|| Metered { packets: 9, ignored_packets: 2, ignored_octets: 0 });
        let settings = Settings {
            probe: Some("a".into()),
            settings_id: Some("0f".into()),
            meter: Some(meter),
            ..Settings::default()
        };
        let mut status = Shared::new("topic".into(), WaitPolicy::Collector, true).status();
        (status.made, status.sent) = (7, 4);
        status.lost[Reason::NoRoom as usize].1 = 3;
        let value = |settings| {
            let (_, value) = statistics(&Probe::new(settings), "00", 5, true, &status);
            serde_json::from_slice::<serde_json::Value>(&value).unwrap()
        };
        let expected = serde_json::json!({
            "probe": "a", "run": "00", "time": 5, "last": true, "records": 7, "sent": 4,
            "lost": {"no_room": 3}, "version": env!("CARGO_PKG_VERSION"), "settings": "0f",
            "packets": 9, "ignoredPackets": 2,
        });
        assert_eq!(value(&settings), expected);
        let unknown = value(&Settings { meter: None, settings_id: None, ..settings.clone() });
        assert!(unknown.get("packets").is_none() && unknown.get("settings").is_none(), "{unknown}");
    }
}
