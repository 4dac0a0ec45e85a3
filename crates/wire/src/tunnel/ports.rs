//! The UDP ports of tunnels: those that are assigned, and those that a user adds.
//!
//! ```text
//!  dst_port ─┐
//!            ├─▶ suspects: a filter of 2048 bits ─▶ kind: a sorted list ─▶ a parser
//!  src_port ─┘   in the common case              else                     nothing
//! ```
//!
//! The filter is looked at for every packet, so it is small and has no branch: each port sets one bit, chosen by its low bits. A
//! further port that has the same bit costs time, never correctness.

use std::fmt;
use std::str::FromStr;

use super::{PortKind, Tunnels};
use crate::transport::{PLAIN_LEN, UDP};

/// Most ports that a user may add.
const ADDED_MAX: usize = 64;
/// Of the filter, 64 bits each.
const WORDS: usize = 32;

/// Assigned ports, in order; 8472 is the one that Linux used for VXLAN before one was assigned.
const ASSIGNED: [(u16, PortKind); 12] = [
    (1701, PortKind::L2tp),
    (2152, PortKind::GtpU),
    (3544, PortKind::Teredo),
    (4341, PortKind::Lisp),
    (4754, PortKind::Gre),
    (4789, PortKind::Vxlan),
    (4790, PortKind::VxlanGpe),
    (5247, PortKind::Capwap),
    (6080, PortKind::Gue),
    (6081, PortKind::Geneve),
    (6635, PortKind::Mpls),
    (8472, PortKind::Vxlan),
];

/// The UDP ports on which tunnels are opened. Written as the ports beyond the assigned ones, `PORT=KIND,…`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TunnelPorts {
    /// In order of the ports.
    kinds: Vec<(u16, PortKind)>,
    watched: Watched,
}

/// A text that is no list of ports of tunnels, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidTunnelPorts(String);

impl fmt::Display for InvalidTunnelPorts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidTunnelPorts {}

impl Default for TunnelPorts {
    fn default() -> Self {
        Self::of(ASSIGNED.to_vec())
    }
}

impl TunnelPorts {
    fn of(kinds: Vec<(u16, PortKind)>) -> Self {
        let watched = Watched::of(kinds.iter().map(|(port, _)| *port));
        Self { kinds, watched }
    }

    /// The filter for packets whose tunnels are opened or not.
    pub(crate) fn watched(&self, tunnels: Tunnels) -> Watched {
        match tunnels {
            Tunnels::Outer => Watched::of([]),
            Tunnels::Inner | Tunnels::Both => self.watched,
        }
    }

    /// The filter for packets whose tunnels are opened.
    #[inline(always)]
    pub(crate) fn filter(&self) -> &Watched {
        &self.watched
    }

    /// The tunnels of a port.
    pub(super) fn kind(&self, port: u16) -> Option<PortKind> {
        let at = self.kinds.binary_search_by_key(&port, |(own, _)| *own).ok()?;
        self.kinds.get(at).map(|(_, kind)| *kind)
    }

    /// True if a port may be that of a tunnel.
    pub(crate) fn has(&self, port: u16) -> bool {
        self.kind(port).is_some()
    }

    /// The ports that a user added or changed, in order.
    fn added(&self) -> impl Iterator<Item = &(u16, PortKind)> {
        self.kinds.iter().filter(|own| !ASSIGNED.contains(own))
    }

    /// True if there are none but the assigned ports.
    pub fn is_default(&self) -> bool {
        self.added().next().is_none()
    }
}

impl FromStr for TunnelPorts {
    type Err = InvalidTunnelPorts;

    fn from_str(list: &str) -> Result<Self, InvalidTunnelPorts> {
        let mut kinds = ASSIGNED.to_vec();
        for (number, item) in list.split(',').enumerate() {
            if number == ADDED_MAX {
                return Err(InvalidTunnelPorts(format!("more than {ADDED_MAX} ports of tunnels")));
            }
            let invalid = || {
                let valid = "use PORT=KIND with a port from 1 to 65535, such as 8473=vxlan";
                InvalidTunnelPorts(format!("invalid port of a tunnel {item:?}: {valid}"))
            };
            let (port, kind) = item.split_once('=').ok_or_else(invalid)?;
            let port = port.parse().ok().filter(|&port| port > 0).ok_or_else(invalid)?;
            let kind = kind.parse::<PortKind>().map_err(|e| InvalidTunnelPorts(e.to_string()))?;
            match kinds.binary_search_by_key(&port, |(own, _)| *own) {
                Ok(at) => kinds[at].1 = kind,
                Err(at) => kinds.insert(at, (port, kind)),
            }
        }
        Ok(Self::of(kinds))
    }
}

impl fmt::Display for TunnelPorts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (port, kind)) in self.added().enumerate() {
            let comma = if number > 0 { "," } else { "" };
            write!(f, "{comma}{port}={kind}")?;
        }
        Ok(())
    }
}

/// The filter: one bit for each port, or for several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Watched([u64; WORDS]);

impl Watched {
    fn of(ports: impl IntoIterator<Item = u16>) -> Self {
        let mut words = [0; WORDS];
        for port in ports {
            let (word, bit) = place(port);
            words[word] |= 1 << bit;
        }
        Self(words)
    }

    /// Returns true if a TCP or UDP packet may be a tunnel's: UDP, and one of its ports is watched, or its data have the shape
    /// of IPv6 ([`has_ipv6`]). Without a branch between the two protocols, so with integers: of `bool`s the compiler makes one.
    #[inline(always)]
    pub(crate) fn suspects(&self, protocol: u8, ports: [u16; 2], header: &[u8; PLAIN_LEN]) -> bool {
        let (src, dst) = (self.bit(ports[0]), self.bit(ports[1]));
        // Only bit 0 counts.
        let may_be_tunnel = src | dst | u64::from(has_ipv6(header));
        may_be_tunnel & u64::from(protocol == UDP) != 0
    }

    #[inline(always)]
    fn bit(&self, port: u16) -> u64 {
        let (word, bit) = place(port);
        self.0[word] >> bit
    }
}

/// The word and the bit of a port.
#[inline(always)]
fn place(port: u16) -> (usize, u32) {
    (usize::from(port >> 6) % WORDS, u32::from(port) & 63)
}

/// Whether the data behind a UDP header begin with an IPv6 header and have exactly the length that it says: Teredo, whose
/// clients choose any port. `header` is the start of the UDP header and 6 bytes of data.
#[inline(always)]
pub(crate) fn has_ipv6(header: &[u8; PLAIN_LEN]) -> bool {
    /// Of the headers of UDP and IPv6.
    const HEADERS: u16 = 8 + 40;
    let &[_, _, _, _, l0, l1, _, _, version, _, _, _, p0, p1] = header;
    let (len, payload_len) = (u16::from_be_bytes([l0, l1]), u16::from_be_bytes([p0, p1]));
    (version >> 4 == 6) & (payload_len.wrapping_add(HEADERS) == len)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ports(text: &str) -> TunnelPorts {
        text.parse().unwrap()
    }

    #[test]
    fn every_port_of_a_tunnel_is_watched_and_few_others() {
        let nothing = [0; PLAIN_LEN];
        let suspected = |ports: &TunnelPorts, tunnels| {
            let watched = ports.watched(tunnels);
            let is = |&port: &u16| {
                let dst = watched.suspects(UDP, [1, port], &nothing);
                assert_eq!(watched.suspects(UDP, [port, 1], &nothing), dst);
                assert!(!watched.suspects(6, [1, port], &nothing));
                dst
            };
            (0..=u16::MAX).filter(is).collect::<Vec<_>>()
        };
        for ports in [TunnelPorts::default(), ports("9=gre,1812=gue,65535=vxlan,4789=lisp")] {
            assert_eq!(suspected(&ports, Tunnels::Outer), [0; 0]);
            let all = suspected(&ports, Tunnels::Inner);
            assert_eq!(suspected(&ports, Tunnels::Both), all);
            assert!(ports.kinds.iter().all(|(port, _)| all.contains(port)));
            assert!(all.len() < 65_536 / 100, "{}", all.len());
        }
        // The busiest ports are not among those.
        let busy = [53, 67, 68, 123, 161, 443, 500, 514, 1194, 1812, 1900, 2055, 3478, 3702, 4500];
        let all = suspected(&TunnelPorts::default(), Tunnels::Inner);
        assert_eq!(busy.map(|port| all.contains(&port)), [false; 15]);
        assert!(!all.contains(&5060) && !all.contains(&5353) && !all.contains(&51_820));
    }

    #[test]
    fn added_ports_are_read_and_printed() {
        let own = ports("8473=vxlan,53=geneve,4789=vxlan-gpe");
        assert_eq!((own.kind(53), own.kind(8473)), (Some(PortKind::Geneve), Some(PortKind::Vxlan)));
        assert_eq!((own.kind(4789), own.kind(80)), (Some(PortKind::VxlanGpe), None));
        assert_eq!(own.to_string(), "53=geneve,4789=vxlan-gpe,8473=vxlan");
        assert_eq!(ports(&own.to_string()), own);
        assert!(!own.is_default() && ports("4789=vxlan").is_default());
        assert!(TunnelPorts::default().kinds.is_sorted_by_key(|(port, _)| *port));
        for wrong in ["", "1", "0=gre", "65536=gre", "gre=1", "1=gre,", "1=grey"] {
            assert!(wrong.parse::<TunnelPorts>().is_err(), "{wrong}");
        }
        let many: Vec<_> = (1..=65).map(|port| format!("{port}=gre")).collect();
        assert!(many[..64].join(",").parse::<TunnelPorts>().is_ok());
        assert!(many.join(",").parse::<TunnelPorts>().is_err());
    }

    #[test]
    fn only_data_of_the_length_in_the_header_are_like_ipv6() {
        let header = |len: u16, version: u8, payload_len: u16| {
            let mut header = [0; PLAIN_LEN];
            header[4..6].copy_from_slice(&len.to_be_bytes());
            header[8] = version << 4 | 5;
            header[12..].copy_from_slice(&payload_len.to_be_bytes());
            header
        };
        assert!(has_ipv6(&header(48, 6, 0)) && has_ipv6(&header(1048, 6, 1000)));
        assert!(!has_ipv6(&header(48, 4, 0)) && !has_ipv6(&header(1049, 6, 1000)));
    }
}
