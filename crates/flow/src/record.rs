//! The flow record: what leaves when a flow ends. Names and meanings follow RFC 7011/7012 and,
//! for the two directions, RFC 5103.

use crate::FlowKey;

/// Why a flow ended (IPFIX flowEndReason, element 136).
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EndReason {
    /// Silence longer than the idle timeout.
    Idle = 1,
    /// Cut while alive.
    Active = 2,
    /// TCP FIN on both sides, RST, or a new connection with the same ports.
    EndDetected = 3,
    /// The run ended.
    Forced = 4,
    /// Evicted from a full table.
    LackOfResources = 5,
}

impl EndReason {
    /// All reasons, in order of their numbers.
    pub const ALL: [Self; 5] =
        [Self::Idle, Self::Active, Self::EndDetected, Self::Forced, Self::LackOfResources];

    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Active => "active",
            Self::EndDetected => "end_detected",
            Self::Forced => "forced",
            Self::LackOfResources => "lack_of_resources",
        }
    }
}

/// One ended biflow. Index 0 of each pair is the initiator's direction, index 1 the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowRecord {
    /// The key in the initiator's direction.
    pub key: FlowKey,
    /// Earliest packet, nanoseconds since 1970.
    pub first_ns: u64,
    /// Latest packet, nanoseconds since 1970; never before `first_ns`.
    pub last_ns: u64,
    /// Packets.
    pub packets: [u64; 2],
    /// Layer 3 octets (octetDeltaCount).
    pub octets: [u64; 2],
    /// All TCP control bits seen, or-ed.
    pub tcp_flags: [u8; 2],
    /// ICMP type and code of the first packet, `type << 8 | code`; 0 for other protocols.
    pub icmp_type_code: u16,
    /// Outermost VLAN identifier of the first packet; 0 if untagged.
    pub vlan: u16,
    /// Why it ended.
    pub end_reason: EndReason,
}

impl FlowRecord {
    /// Bytes of [`FlowRecord::canonical`].
    pub const CANONICAL_LEN: usize = 96;

    /// One fixed byte string per record, for digests: little-endian fields in a fixed order.
    pub fn canonical(&self) -> [u8; Self::CANONICAL_LEN] {
        let mut out = [0; Self::CANONICAL_LEN];
        let key = &self.key;
        out[..16].copy_from_slice(&key.src);
        out[16..32].copy_from_slice(&key.dst);
        out[32..34].copy_from_slice(&key.src_port.to_le_bytes());
        out[34..36].copy_from_slice(&key.dst_port.to_le_bytes());
        out[36] = key.protocol;
        out[37] = key.version as u8;
        out[38] = self.end_reason as u8;
        out[39] = self.tcp_flags[0];
        out[40] = self.tcp_flags[1];
        out[41..43].copy_from_slice(&self.icmp_type_code.to_le_bytes());
        out[43..45].copy_from_slice(&self.vlan.to_le_bytes());
        let numbers = [
            self.first_ns,
            self.last_ns,
            self.packets[0],
            self.packets[1],
            self.octets[0],
            self.octets[1],
        ];
        for (slot, number) in out[48..].chunks_exact_mut(8).zip(numbers) {
            slot.copy_from_slice(&number.to_le_bytes());
        }
        out
    }
}
