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
//! The value has the same as JSON, with the time in milliseconds since 1970, and with losses by reason.

use serde::Serialize;

use crate::{Reason, Status};

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
}

/// The headers after `format` and `probe`, and the value.
pub(crate) fn statistics(
    probe: &str,
    run: &str,
    time_ms: i64,
    last: bool,
    status: &Status,
) -> ([(&'static str, String); 5], Vec<u8>) {
    let losses = || status.lost.iter().filter(|(_, number)| *number > 0);
    let name = |&(reason, number): &(Reason, u64)| (reason.name(), number);
    let (records, sent) = (status.made, status.sent);
    let lost = losses().map(name).collect();
    let value = Value { probe, run, time: time_ms, last, records, sent, lost };
    let headers = [
        ("run", run.to_owned()),
        ("last", last.to_string()),
        ("records", records.to_string()),
        ("sent", sent.to_string()),
        ("lost", losses().map(|(_, number)| number).sum::<u64>().to_string()),
    ];
    // A name and numbers can always be written.
    (headers, serde_json::to_vec(&value).unwrap_or_default())
}
