//! Alerts during a run.

use std::net::IpAddr;

use crate::report::Time;

/// A scan that crossed the threshold since the last mark (later answers may withdraw it), or a host
/// that reached a limit in an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
}

impl Alert {
    /// Packet time.
    pub fn time(&self) -> Time {
        match self {
            Self::Vertical { time, .. }
            | Self::Horizontal { time, .. }
            | Self::Packets { time, .. }
            | Self::Bits { time, .. }
            | Self::Spreads { time, .. }
            | Self::Attracts { time, .. } => *time,
        }
    }
}
