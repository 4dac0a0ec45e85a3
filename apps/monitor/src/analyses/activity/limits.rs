//! Limits of a host in an interval.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

use serde::Serialize;

use super::rows::{Activity, Busy};
use crate::alerts::{Flood, Reached, Subject};

/// Limits of a host; each host that reaches one is reported at the end of the interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Limits {
    /// Packets a second to one destination.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dst_pps: Option<u64>,
    /// Layer 3 bits a second to one destination.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dst_bps: Option<u64>,
    /// Distinct destinations of one source in an interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub src_peers: Option<u64>,
    /// Distinct sources of one destination in an interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dst_peers: Option<u64>,
}

impl Limits {
    /// Whether any limit is set.
    pub fn any(&self) -> bool {
        *self != Self::default()
    }

    /// Sets a limit by name.
    ///
    /// # Errors
    /// If the name is unknown.
    pub fn set(&mut self, name: &str, limit: u64) -> Result<(), UnknownLimit> {
        let which = match name {
            "dst-pps" => &mut self.dst_pps,
            "dst-bps" => &mut self.dst_bps,
            "src-peers" => &mut self.src_peers,
            "dst-peers" => &mut self.dst_peers,
            other => return Err(UnknownLimit(other.into())),
        };
        *which = Some(limit);
        Ok(())
    }

    /// Hosts that certainly reached a limit.
    pub(super) fn reached(&self, activity: &Activity) -> Vec<Reached> {
        let interval_ns = u128::from((activity.end.0 - activity.start.0).max(1));
        let per_second = |number: u64| {
            (u128::from(number) * 1_000_000_000 / interval_ns).min(u64::MAX.into()) as u64
        };
        let is_over = |limit: Option<u64>, number| limit.is_some_and(|limit| number >= limit);
        let mut floods: BTreeMap<IpAddr, Flood> = BTreeMap::new();
        for target in &activity.targets {
            let share = |part: u64, all: u64| {
                (100 * u128::from(part) / u128::from(all.max(1))).min(100) as u8
            };
            let flood = floods.entry(target.address).or_default();
            flood.packets_per_second = per_second(target.lower);
            flood.protocol = target.protocol;
            flood.percent = share(target.of_protocol, target.lower);
            flood.syn_percent = share(target.syns, target.of_protocol);
            flood
                .limits
                .extend(is_over(self.dst_pps, flood.packets_per_second).then_some("dst-pps"));
        }
        for row in &activity.receivers {
            let flood = floods.entry(row.address).or_default();
            flood.bits_per_second = per_second(row.lower.saturating_mul(8));
            flood.limits.extend(is_over(self.dst_bps, flood.bits_per_second).then_some("dst-bps"));
        }
        for row in &activity.attractors {
            let flood = floods.entry(row.address).or_default();
            flood.sources = row.lower;
            flood.limits.extend(is_over(self.dst_peers, row.lower).then_some("dst-peers"));
        }
        floods.retain(|_, flood| !flood.limits.is_empty());
        let flood = |(target, flood): (IpAddr, Flood)| Reached {
            subject: Subject::Flood { target },
            number: flood.packets_per_second,
            flood: Some(flood),
        };
        let spread = |row: &Busy| Reached {
            subject: Subject::Spread { source: row.address },
            number: row.lower,
            flood: None,
        };
        let spreaders = activity.spreaders.iter();
        let spreads = spreaders.filter(|row| is_over(self.src_peers, row.lower)).map(spread);
        floods.into_iter().map(flood).chain(spreads).collect()
    }
}

/// A name that is not a limit.
#[derive(Debug, PartialEq, Eq)]
pub struct UnknownLimit(pub String);

impl fmt::Display for UnknownLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "unknown alert {:?}: use dst-pps, dst-bps, src-peers, dst-peers, new-device, new-server-port, volume-change or \
             volume-floor",
            self.0
        )
    }
}

impl std::error::Error for UnknownLimit {}
