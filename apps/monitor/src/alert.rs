//! What is told at once.

use std::net::IpAddr;

use crate::report::Time;

/// A scan that has just crossed the threshold (answers that come later may take it back), or a host that reached a limit
/// in an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alert {
    /// One source, one target, many ports.
    Vertical {
        /// Who scans.
        source: IpAddr,
        /// Whom.
        target: IpAddr,
        /// Failed ports so far.
        ports: u32,
        /// Packet time.
        time: Time,
    },
    /// One source, one port, many targets.
    Horizontal {
        /// Who scans.
        source: IpAddr,
        /// Which TCP port.
        port: u16,
        /// Failed targets so far.
        targets: u32,
        /// Packet time.
        time: Time,
    },
    /// Packets to one host.
    Packets {
        /// To whom.
        target: IpAddr,
        /// On average, at least.
        per_second: u64,
        /// The IP protocol of most of them.
        protocol: u8,
        /// Its share.
        percent: u8,
        /// End of the interval.
        time: Time,
    },
    /// Layer 3 bits to one host.
    Bits {
        /// To whom.
        target: IpAddr,
        /// On average, at least.
        per_second: u64,
        /// End of the interval.
        time: Time,
    },
    /// One source, many destinations.
    Spreads {
        /// From whom.
        source: IpAddr,
        /// Distinct destinations, at least.
        targets: u64,
        /// End of the interval.
        time: Time,
    },
    /// One destination, many sources.
    Attracts {
        /// To whom.
        target: IpAddr,
        /// Distinct sources, at least.
        sources: u64,
        /// End of the interval.
        time: Time,
    },
}
