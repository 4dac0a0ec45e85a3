//! One of the first packets of a flow.

use ringtap_wire::PacketRecord;

use crate::fields::Fields;

/// Most first packets of a flow.
pub const FIRST_PACKETS_MOST: u8 = u8::MAX;

/// One of the first packets of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FirstPacket {
    /// Nanoseconds since 1970, the upper half first.
    time: [u32; 2],
    /// Octets of layer 3, at most 65,535.
    pub octets: u16,
    /// The TCP control bits.
    pub tcp_flags: u8,
    /// 0: from the initiator; 1: to it.
    pub side: u8,
}

impl FirstPacket {
    /// Bytes of [`FirstPacket::save`].
    pub(super) const SAVED: usize = 12;

    pub(super) const NONE: Self = Self { time: [0; 2], octets: 0, tcp_flags: 0, side: 0 };

    #[inline(always)]
    pub(super) fn of(packet: &PacketRecord, side: usize) -> Self {
        Self {
            time: [(packet.ts_ns >> 32) as u32, packet.ts_ns as u32],
            octets: packet.ip_len.min(u32::from(u16::MAX)) as u16,
            tcp_flags: packet.tcp_flags,
            side: side as u8,
        }
    }

    /// Its time, nanoseconds since 1970.
    pub const fn ts_ns(&self) -> u64 {
        (self.time[0] as u64) << 32 | self.time[1] as u64
    }

    pub(super) fn save(&self, out: &mut Vec<u8>) {
        self.time.iter().for_each(|half| out.extend_from_slice(&half.to_le_bytes()));
        out.extend_from_slice(&self.octets.to_le_bytes());
        out.extend([self.tcp_flags, self.side]);
    }

    /// The packet of the next bytes; `None` if no packet has them.
    pub(super) fn load(from: &mut Fields<'_>) -> Option<Self> {
        let time = [u32::from_le_bytes(from.take()), u32::from_le_bytes(from.take())];
        let octets = u16::from_le_bytes(from.take());
        let [tcp_flags, side] = from.take();
        (side < 2).then_some(Self { time, octets, tcp_flags, side })
    }
}
