//! The two ends of a flow as an entry keeps them, by IP version: eight bytes for IPv4, thirty-two for IPv6.

use ringtap_wire::PacketRecord;

use crate::IpVersion;

/// Source and destination address.
pub(crate) trait Ends: Copy + Eq + std::hash::Hash + Send {
    /// Their IP version.
    const VERSION: IpVersion;

    /// A type with the alignment of an entry with these ends.
    type Align: Copy + std::fmt::Debug + Send;

    /// The ends of a packet, in its direction.
    fn of(packet: &PacketRecord) -> Self;

    /// 0 if these are the same ends.
    fn differs(self, other: Self) -> u64;

    /// The ends swapped.
    fn reversed(self) -> Self;

    /// Source and destination, laid out as in [`crate::FlowKey::src`].
    fn addresses(self) -> ([u8; 16], [u8; 16]);

    /// Whether the source is the lower end.
    fn ascending(self) -> bool;
}

/// Aligned as a cache line.
#[repr(align(64))]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line;

/// The source in the upper half.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct V4(u64);

impl Ends for V4 {
    const VERSION: IpVersion = IpVersion::V4;

    type Align = Line;

    #[inline(always)]
    fn of(packet: &PacketRecord) -> Self {
        let word = |a: &[u8; 16]| u64::from(u32::from_ne_bytes([a[0], a[1], a[2], a[3]]));
        Self(word(&packet.src) << 32 | word(&packet.dst))
    }

    #[inline(always)]
    fn differs(self, other: Self) -> u64 {
        self.0 ^ other.0
    }

    #[inline(always)]
    fn reversed(self) -> Self {
        Self(self.0.rotate_left(32))
    }

    #[inline(always)]
    fn addresses(self) -> ([u8; 16], [u8; 16]) {
        let wide = |word: u32| {
            let mut bytes = [0; 16];
            bytes[..4].copy_from_slice(&word.to_ne_bytes());
            bytes
        };
        (wide((self.0 >> 32) as u32), wide(self.0 as u32))
    }

    #[inline(always)]
    fn ascending(self) -> bool {
        self.0 <= self.reversed().0
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct V6([[u64; 2]; 2]);

impl Ends for V6 {
    const VERSION: IpVersion = IpVersion::V6;

    // The alignment of a cache line would cost 40 bytes a flow.
    type Align = u64;

    #[inline(always)]
    fn of(packet: &PacketRecord) -> Self {
        let words = |a: &[u8; 16]| {
            let wide = u128::from_ne_bytes(*a);
            [wide as u64, (wide >> 64) as u64]
        };
        Self([words(&packet.src), words(&packet.dst)])
    }

    #[inline(always)]
    fn differs(self, other: Self) -> u64 {
        let [[a, b], [c, d]] = self.0;
        let [[e, f], [g, h]] = other.0;
        a ^ e | b ^ f | c ^ g | d ^ h
    }

    #[inline(always)]
    fn reversed(self) -> Self {
        let [src, dst] = self.0;
        Self([dst, src])
    }

    #[inline(always)]
    fn addresses(self) -> ([u8; 16], [u8; 16]) {
        let wide = |[low, high]: [u64; 2]| (u128::from(low) | u128::from(high) << 64).to_ne_bytes();
        (wide(self.0[0]), wide(self.0[1]))
    }

    #[inline(always)]
    fn ascending(self) -> bool {
        self.0[0] <= self.0[1]
    }
}
