//! Limits of a host in an interval.

use std::fmt;

use serde::Serialize;

use crate::Alert;
use crate::report::activity::Activity;

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
    pub(super) fn judge(&self, activity: &Activity) -> Vec<Alert> {
        let time = activity.end;
        let interval_ns = u128::from((activity.end.0 - activity.start.0).max(1));
        let per_second = |number: u64| {
            (u128::from(number) * 1_000_000_000 / interval_ns).min(u64::MAX.into()) as u64
        };
        let reached = |limit: Option<u64>, number| limit.is_some_and(|limit| number >= limit);
        let mut alerts = Vec::new();
        for target in &activity.targets {
            let packets = per_second(target.lower);
            if reached(self.dst_pps, packets) {
                let share = 100 * u128::from(target.of_protocol) / u128::from(target.lower.max(1));
                let (protocol, percent) = (target.protocol, share.min(100) as u8);
                let target = target.address;
                alerts.push(Alert::Packets {
                    target,
                    per_second: packets,
                    protocol,
                    percent,
                    time,
                });
            }
        }
        for row in &activity.receivers {
            let bits = per_second(row.lower.saturating_mul(8));
            if reached(self.dst_bps, bits) {
                alerts.push(Alert::Bits { target: row.address, per_second: bits, time });
            }
        }
        for row in activity.spreaders.iter().filter(|row| reached(self.src_peers, row.lower)) {
            alerts.push(Alert::Spreads { source: row.address, targets: row.lower, time });
        }
        for row in activity.attractors.iter().filter(|row| reached(self.dst_peers, row.lower)) {
            alerts.push(Alert::Attracts { target: row.address, sources: row.lower, time });
        }
        alerts
    }
}

/// A name that is not a limit.
#[derive(Debug, PartialEq, Eq)]
pub struct UnknownLimit(pub String);

impl fmt::Display for UnknownLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown alert {:?}: use dst-pps, dst-bps, src-peers or dst-peers", self.0)
    }
}

impl std::error::Error for UnknownLimit {}
