//! Addresses in rows of tables: four bytes for IPv4, sixteen for IPv6.

use std::fmt::Debug;
use std::hash::Hash;
use std::net::IpAddr;

use ringtap_flow::IpVersion;
use ringtap_wire::HashKey;

/// An address of one IP version.
pub(crate) trait Address: Copy + Debug + Default + Ord + Hash + Send {
    /// The IP version.
    const VERSION: IpVersion;

    /// Reads 16 bytes laid out as in [`PacketRecord::src`](ringtap_wire::PacketRecord::src).
    fn of(bytes: &[u8; 16]) -> Self;

    /// The same 16 bytes.
    fn wide(self) -> [u8; 16];

    /// For reports.
    fn ip(self) -> IpAddr;

    /// A keyed hash; its upper half is better distributed.
    #[inline(always)]
    fn hash(self, key: &HashKey) -> u64 {
        key.address(&self.wide())
    }
}

impl Address for [u8; 4] {
    const VERSION: IpVersion = IpVersion::V4;

    #[inline(always)]
    fn of(&[a, b, c, d, ..]: &[u8; 16]) -> Self {
        [a, b, c, d]
    }

    #[inline(always)]
    fn wide(self) -> [u8; 16] {
        u128::from(u32::from_le_bytes(self)).to_le_bytes()
    }

    fn ip(self) -> IpAddr {
        self.into()
    }
}

impl Address for [u8; 16] {
    const VERSION: IpVersion = IpVersion::V6;

    #[inline(always)]
    fn of(bytes: &[u8; 16]) -> Self {
        *bytes
    }

    #[inline(always)]
    fn wide(self) -> [u8; 16] {
        self
    }

    fn ip(self) -> IpAddr {
        self.into()
    }
}
