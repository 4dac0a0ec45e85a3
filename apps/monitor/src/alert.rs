//! Alerts during a run.

use std::net::IpAddr;

use ringtap_enrich::{EntryKind, Stage};
use ringtap_flow::FlowKey;

use crate::report::Time;

/// An event to report during the run: a scan that crossed the threshold since the last mark (later answers may withdraw it), a host that
/// reached a limit in an interval, or a watched entry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Alert {
    /// One source, one target, many ports.
    Vertical {
        /// The scanner.
        source: IpAddr,
        /// The target.
        target: IpAddr,
        /// Failed ports so far.
        ports: u32,
        /// Packet time.
        time: Time,
    },
    /// One source, one port, many targets.
    Horizontal {
        /// The scanner.
        source: IpAddr,
        /// The TCP port.
        port: u16,
        /// Failed targets so far.
        targets: u32,
        /// Packet time.
        time: Time,
    },
    /// Packets to one host.
    Packets {
        /// The receiver.
        target: IpAddr,
        /// Average, a lower bound.
        per_second: u64,
        /// The most frequent IP protocol.
        protocol: u8,
        /// Its share.
        percent: u8,
        /// End of the interval.
        time: Time,
    },
    /// Layer 3 bits to one host.
    Bits {
        /// The receiver.
        target: IpAddr,
        /// Average, a lower bound.
        per_second: u64,
        /// End of the interval.
        time: Time,
    },
    /// One source, many destinations.
    Spreads {
        /// The sender.
        source: IpAddr,
        /// Distinct destinations, a lower bound.
        targets: u64,
        /// End of the interval.
        time: Time,
    },
    /// One destination, many sources.
    Attracts {
        /// The receiver.
        target: IpAddr,
        /// Distinct sources, a lower bound.
        sources: u64,
        /// End of the interval.
        time: Time,
    },
    /// The first time that a host reached a watched entry.
    Watched {
        /// The host.
        host: IpAddr,
        /// The entry.
        entry: String,
        /// What it is.
        kind: EntryKind,
        /// Its label; may be empty.
        label: String,
        /// What matched: the name of a field.
        field: &'static str,
        /// The flow, in the direction of the packet.
        flow: FlowKey,
        /// Packet time.
        time: Time,
    },
}

impl Alert {
    /// As outputs get it.
    pub(crate) fn pass(&mut self, stage: &mut Stage) {
        match self {
            Self::Vertical { source, target, .. } => {
                stage.replace(source);
                stage.replace(target);
            }
            Self::Horizontal { source, .. } | Self::Spreads { source, .. } => {
                stage.replace(source);
            }
            Self::Packets { target, .. }
            | Self::Bits { target, .. }
            | Self::Attracts { target, .. } => stage.replace(target),
            Self::Watched { host, entry, kind, flow, .. } => {
                stage.replace(host);
                stage.replace_key(flow);
                stage.replace_entry(*kind, entry);
            }
        }
    }

    /// Packet time.
    pub fn time(&self) -> Time {
        match self {
            Self::Vertical { time, .. }
            | Self::Horizontal { time, .. }
            | Self::Packets { time, .. }
            | Self::Bits { time, .. }
            | Self::Spreads { time, .. }
            | Self::Attracts { time, .. }
            | Self::Watched { time, .. } => *time,
        }
    }
}
