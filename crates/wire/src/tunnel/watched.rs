//! UDP ports of tunnels, checked for every UDP packet.
//!
//! Three bits of a port select its slot; each slot has at most one port:
//!
//! ```text
//! slot    0     1     2     3     4     5     6     7        port >> 4 & 7
//!          –    8472   –    4789  6081  3544  2152   –
//! ```

use super::Tunnels;
use crate::record::PacketRecord;
use crate::transport::UDP;

pub(crate) const GTP_PORT: u16 = 2152;
pub(crate) const TEREDO_PORT: u16 = 3544;
pub(crate) const VXLAN_PORT: u16 = 4789;
pub(crate) const GENEVE_PORT: u16 = 6081;
/// The port that Linux used for VXLAN before one was assigned.
pub(crate) const VXLAN_PORT_OLD: u16 = 8472;

/// One port for each slot; a slot without one has a number that belongs to another slot.
pub(crate) struct Watched([u16; 8]);

const fn slot(port: u16) -> usize {
    port as usize >> 4 & 7
}

impl Watched {
    const ALL: Self = Self::of([GTP_PORT, TEREDO_PORT, VXLAN_PORT, GENEVE_PORT, VXLAN_PORT_OLD]);
    const NONE: Self = Self::of([]);

    pub(crate) const fn by(tunnels: Tunnels) -> Self {
        match tunnels {
            Tunnels::Outer => Self::NONE,
            Tunnels::Inner | Tunnels::Both => Self::ALL,
        }
    }

    const fn of<const N: usize>(ports: [u16; N]) -> Self {
        // Numbers of other slots mark slots without a port: u16::MAX belongs to slot 7, 0 to slot 0.
        let mut slots = [u16::MAX; 8];
        slots[slot(u16::MAX)] = 0;
        let mut n = 0;
        while n < N {
            let at = slot(ports[n]);
            assert!(slot(slots[at]) != at, "two ports in one slot");
            slots[at] = ports[n];
            n += 1;
        }
        Self(slots)
    }

    /// Returns true if a TCP or UDP packet may be a tunnel's: UDP, and one of its ports is watched. Without a branch
    /// between the two protocols.
    #[inline(always)]
    pub(crate) fn suspects(&self, packet: &PacketRecord) -> bool {
        // A number that is never watched.
        let never = 0u16.wrapping_sub(u16::from(packet.protocol != UDP));
        self.either(packet.src_port | never, packet.dst_port | never)
    }

    #[inline(always)]
    fn either(&self, a: u16, b: u16) -> bool {
        (self.0[slot(a)] == a) | (self.0[slot(b)] == b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_the_ports_of_tunnels_are_watched() {
        let watched = |watched: Watched| {
            (0..=u16::MAX).filter(|&port| watched.either(1, port)).collect::<Vec<_>>()
        };
        let all = vec![2152, 3544, 4789, 6081, 8472];
        assert_eq!(watched(Watched::by(Tunnels::Inner)), all);
        assert_eq!(watched(Watched::by(Tunnels::Both)), all);
        assert_eq!(watched(Watched::by(Tunnels::Outer)), []);
        let suspected = |protocol, src_port, dst_port| {
            let packet = PacketRecord { protocol, src_port, dst_port, ..PacketRecord::EMPTY };
            Watched::ALL.suspects(&packet)
        };
        assert!(suspected(17, 2152, 1) && suspected(17, 1, 4789) && !suspected(17, 1, 65_535));
        assert!(!suspected(6, 2152, 4789));
    }
}
