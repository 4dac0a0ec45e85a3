//! What is counted of packets: by kind, by layer, and in intervals.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::time::Time;

/// Packets by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Packets {
    /// Packets that reached the analyses.
    pub handled: u64,
    /// IPv4.
    pub ipv4: u64,
    /// IPv6.
    pub ipv6: u64,
    /// Neither IPv4 nor IPv6.
    pub non_ip: u64,
    /// IPv4 with MF or an offset, IPv6 with a fragment header.
    pub fragments: u64,
    /// Packets with fewer bytes captured than on the wire.
    pub truncated: u64,
    /// Packets within tunnels, in addition to the counts above, which are of outermost IP headers.
    #[serde(skip_serializing_if = "is_zero")]
    pub inner: u64,
}

/// Octets by layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Octets {
    /// Sum of original lengths, never less than captured ones.
    pub wire: u64,
    /// Sum of layer 3 lengths: IPv4 total length, or 40 + payload length for IPv6.
    pub ip: u64,
}

/// Packets and layer 3 octets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Volume {
    /// Packets.
    pub packets: u64,
    /// Layer 3 octets.
    pub octets: u64,
}

impl Volume {
    pub(crate) fn add(&mut self, other: Self) {
        self.packets += other.packets;
        self.octets += other.octets;
    }
}

/// One measurement interval; only those with packets are listed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Interval {
    /// Its beginning (for the whole run: the earliest packet).
    pub start: Time,
    /// Its end, exclusive (for the whole run: the latest packet).
    pub end: Time,
    /// All packets.
    pub packets: Packets,
    /// All octets.
    pub octets: Octets,
    /// By IP protocol number.
    pub protocols: BTreeMap<u8, Volume>,
    /// Conversations with a packet in this interval.
    pub conversations: Conversations,
}

/// Distinct unordered pairs of (address, port).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Conversations {
    /// TCP.
    pub tcp: u64,
    /// UDP.
    pub udp: u64,
    /// False if memory ran short and the numbers are estimates.
    pub exact: bool,
}

impl Default for Conversations {
    fn default() -> Self {
        Self { tcp: 0, udp: 0, exact: true }
    }
}

/// Whether a number is left out of JSON.
pub(crate) fn is_zero(n: &u64) -> bool {
    *n == 0
}
