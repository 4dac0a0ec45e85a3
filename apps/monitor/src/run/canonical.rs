//! The part of a report that is equal in any two runs over the same packets, and its digest.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::report::{self, Report, Sections};
use crate::state::Counts;

/// The part of the report that is equal in any two runs over the same packets.
#[derive(Serialize)]
pub(crate) struct Canonical<'a> {
    packets: Packets<'a>,
    octets: Octets<'a>,
    non_ip: &'a BTreeMap<String, u64>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    payload_messages: &'a BTreeMap<String, u64>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    unread_payloads: &'a BTreeMap<String, u64>,
    #[serde(flatten)]
    findings: Findings<'a>,
}

#[derive(Serialize)]
struct Packets<'a> {
    received: u64,
    dropped: &'a BTreeMap<String, u64>,
    #[serde(flatten)]
    kinds: &'a report::Packets,
}

#[derive(Serialize)]
struct Octets<'a> {
    captured: u64,
    #[serde(flatten)]
    layers: &'a report::Octets,
}

/// The report without the contents of [`Packets`] and [`Octets`].
#[derive(Serialize)]
struct Findings<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    intervals: Option<&'a Vec<report::Interval>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    packets_in_further_intervals: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    protocols: Option<&'a BTreeMap<u8, report::Volume>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    conversations: Option<&'a report::Conversations>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flows: Option<Cow<'a, report::Flows>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    facts: Option<&'a report::Facts>,
    #[serde(flatten)]
    sections: Sections,
}

impl<'a> Canonical<'a> {
    /// Returns the canonical form of a report.
    pub(crate) fn of(counts: &'a Counts, report: &'a Report) -> Self {
        Self {
            packets: Packets {
                received: counts.received,
                dropped: &counts.dropped,
                kinds: &report.packets,
            },
            octets: Octets { captured: counts.captured_octets, layers: &report.octets },
            non_ip: &counts.non_ip,
            payload_messages: &counts.payload_messages,
            unread_payloads: &counts.unread_payloads,
            findings: Findings {
                intervals: report.intervals.as_ref(),
                packets_in_further_intervals: Some(report.packets_in_further_intervals)
                    .filter(|&n| n > 0),
                protocols: report.protocols.as_ref(),
                conversations: report.conversations.as_ref(),
                flows: report.flows.as_ref().map(Cow::Borrowed),
                facts: report.facts.as_ref(),
                sections: report.sections.exact(),
            },
        }
    }
}

/// `sha256:…` over the canonical report; without the peak of live flows, which depends on how traffic was split,
/// and the number of parts, so that cuts do not change it.
pub(crate) fn digest(counts: &Counts, report: &Report) -> Option<String> {
    let mut canonical = Canonical::of(counts, report);
    if let Some(flows) = &mut canonical.findings.flows {
        let flows = flows.to_mut();
        (flows.active_peak, flows.parts) = (None, None);
    }
    let hash = Sha256::digest(serde_json::to_vec(&canonical).ok()?);
    let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    Some(format!("sha256:{hex}"))
}
