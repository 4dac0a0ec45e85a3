//! A cache of the numbers of recent paths, so that few packets need a lookup in [`Paths`].
//!
//! ```text
//!  links    1024 slots:  12 bytes of MAC addresses → number     what nearly every packet needs
//! others   1024 slots:  a whole path → number                  VLAN tags, MPLS labels, tunnels
//! ```
//!
//! A path has one slot, chosen by a keyed hash; a new path replaces the old one. Slots are compared in full, so a
//! number is never wrong. A path without a number is not cached: each of its packets counts as lost.
//!
//! Invariants: locks and allocations occur only for paths that are not cached.

use std::sync::Arc;

use crate::hash::HashKey;
use crate::link::Stack;
use crate::path::{Path, Paths, Tunnel};

const LINK_BITS: u32 = 10;
const LINKS: usize = 1 << LINK_BITS;
const OTHERS: usize = 1024;

/// MAC addresses in the order of a frame, in two words, the receiving port, and the number of their path.
#[derive(Clone, Copy, Default)]
struct Link {
    first: u64,
    last: u32,
    port: u16,
    number: u16,
}

impl Link {
    #[inline(always)]
    fn of(macs: &[u8; 12], port: u16) -> Self {
        let [a, b, c, d, e, f, g, h, i, j, k, l] = *macs;
        let first = u64::from_ne_bytes([a, b, c, d, e, f, g, h]);
        Self { first, last: u32::from_ne_bytes([i, j, k, l]), port, number: 0 }
    }
}

pub(crate) struct PathCache {
    key: HashKey,
    paths: Arc<Paths>,
    // An unused slot maps the unknown path to number 0, which is correct.
    links: Box<[Link; LINKS]>,
    others: Box<[(Path, u16)]>,
    /// Interfaces by port; port 0 is none.
    ports: Vec<u32>,
    /// The current port.
    port: u16,
}

impl PathCache {
    /// Memory of a cache.
    pub(crate) const BYTES: u64 =
        (LINKS * size_of::<Link>() + OTHERS * size_of::<(Path, u16)>()) as u64;

    pub(crate) fn new(key: HashKey, paths: Arc<Paths>) -> Self {
        let links = Box::new([Link::default(); LINKS]);
        let others = vec![(Path::default(), 0); OTHERS].into_boxed_slice();
        Self { key, paths, links, others, ports: vec![0], port: 0 }
    }

    /// Sets the interfaces of the frames. Unused slots belong to port 0, so other ports find nothing there.
    pub(crate) fn set_interfaces(&mut self, interfaces: &[u32]) {
        let numbered = interfaces.iter().copied().take(usize::from(u16::MAX));
        self.ports = std::iter::once(0).chain(numbered).collect();
        self.port = 0;
    }

    /// Sets the port of the following frames: the interface at this position of the list; none if there is no such
    /// position.
    #[inline(always)]
    pub(crate) fn set_port(&mut self, place: usize) {
        let port = place + 1;
        self.port = if port < self.ports.len() { port as u16 } else { 0 };
    }

    /// The path with the current interface.
    pub(crate) fn by_port(&self, path: Path) -> Path {
        Path { ingress: self.ports[usize::from(self.port)], ..path }
    }

    /// The number of a path that has only MAC addresses (destination first), if it is cached.
    #[inline(always)]
    pub(crate) fn met(&self, macs: &[u8; 12]) -> Option<u16> {
        let link = Link::of(macs, self.port);
        let known = self.links[self.slot(&link)];
        let same = (known.first == link.first) & (known.last == link.last);
        (same & (known.port == link.port)).then_some(known.number)
    }

    /// The number of the path with any MAC addresses. Call it once for each packet, because it may count a loss.
    fn of_macs(&mut self, macs: &[u8; 12]) -> u16 {
        self.met(macs).unwrap_or_else(|| self.new_link(macs))
    }

    #[inline(always)]
    fn slot(&self, link: &Link) -> usize {
        let rest = u64::from(link.last) << 32 ^ u64::from(link.port);
        self.key.bits::<LINK_BITS>(link.first ^ rest)
    }

    /// The number of a path that has only link-layer fields.
    #[inline(always)]
    pub(crate) fn of_link(&mut self, stack: &Stack) -> u16 {
        if stack.vlan_tags == 0 && stack.mpls_label.is_none() {
            self.of_macs(&stack.macs)
        } else {
            self.of(&self.by_port(stack.path()))
        }
    }

    /// The number of any other path.
    pub(crate) fn of(&mut self, path: &Path) -> u16 {
        let at = (self.hash(path) >> 32) as usize % OTHERS;
        let (known, number) = self.others[at];
        if known == *path {
            return number;
        }
        let number = self.paths.number(path);
        if number != 0 {
            self.others[at] = (*path, number);
        }
        number
    }

    #[cold]
    #[inline(never)]
    fn new_link(&mut self, macs: &[u8; 12]) -> u16 {
        let mut stack = Stack::default();
        stack.macs = *macs;
        let number = self.paths.number(&self.by_port(stack.path()));
        if number != 0 {
            let link = Link { number, ..Link::of(macs, self.port) };
            self.links[self.slot(&link)] = link;
        }
        number
    }

    fn hash(&self, path: &Path) -> u64 {
        let [[a, b, c, d, e, f], [g, h, i, j, k, l]] = path.macs;
        let macs = u64::from_ne_bytes([a, b, c, d, e, f, g, h]);
        let [m, n, o, p] = [i, j, k, l].map(u64::from);
        let rest = m << 56 | n << 48 | o << 40 | p << 32;
        let [outer, inner] = path.vlans.map(u64::from);
        let tags = u64::from(path.vlan_tags) << 32 | outer << 16 | inner;
        let [label, second] = [path.mpls_label, path.mpls_second_label]
            .map(|label| label.map_or(0, |label| u64::from(label) + 1));
        let label = label << 40 ^ second << 12;
        // Paths from files have no interface, so their hashes do not change.
        let ingress = u64::from(path.ingress).rotate_right(16);
        let link = self.key.words(macs, rest ^ tags ^ label ^ ingress);
        // Outer addresses follow from the tunnel, except for a few.
        path.tunnel.as_ref().map_or(link, |tunnel| self.tunnel(tunnel, link))
    }

    /// Hash of a tunnel inside `around`, the hash of the outer headers. It depends on the direction.
    pub(crate) fn tunnel(&self, tunnel: &Tunnel, around: u64) -> u64 {
        let Tunnel { kind, ipv6, src, dst, id } = tunnel;
        let facts = u64::from(*id) << 16 | (*kind as u64) << 8 | u64::from(*ipv6);
        let ends = self.key.words(self.key.address(src), self.key.address(dst).rotate_left(32));
        self.key.words(ends ^ around, facts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TunnelKind;

    fn macs(number: u32) -> [u8; 12] {
        let [a, b, c, d] = number.to_be_bytes();
        [2, 0, 0, 0, 0, 1, 2, 0, a, b, c, d]
    }

    fn path(number: u32) -> Path {
        let [a, b, c, d] = number.to_be_bytes();
        Path { macs: [[2, 0, a, b, c, d], [2, 0, 0, 0, 0, 1]], ..Path::default() }
    }

    #[test]
    fn each_path_keeps_its_number_when_slots_are_replaced() {
        let paths = Arc::new(Paths::new());
        let mut cache = PathCache::new(HashKey::from_seed(1), Arc::clone(&paths));
        assert_eq!((cache.of_macs(&[0; 12]), cache.of(&Path::default())), (0, 0));
        let tunnel =
            |id| Tunnel { kind: TunnelKind::Gre, ipv6: false, src: [1; 16], dst: [2; 16], id };
        for _ in 0..2 {
            for n in 0..5_000 {
                let (link, plain) = (cache.of_macs(&macs(n)), path(n));
                assert_eq!(*paths.get(link), plain);
                for other in [
                    Path { vlan_tags: 1, vlans: [n as u16 % 4096, 0], ..plain },
                    Path { mpls_label: Some(0), ..plain },
                    Path { mpls_label: Some(0), mpls_second_label: Some(n), ..plain },
                    Path { tunnel: Some(tunnel(n)), ..Path::default() },
                ] {
                    let number = cache.of(&other);
                    assert_eq!((*paths.get(number), cache.of(&other)), (other, number));
                }
            }
        }
        assert_eq!(paths.lost(), 0);
    }

    #[test]
    fn the_same_addresses_on_another_interface_are_another_path() {
        let paths = Arc::new(Paths::new());
        let mut cache = PathCache::new(HashKey::from_seed(1), Arc::clone(&paths));
        cache.set_interfaces(&[7, 70_000, 0]);
        let mut numbers = Vec::new();
        for _ in 0..2 {
            for place in 0..4 {
                cache.set_port(place);
                let ingress = [7, 70_000, 0, 0][place];
                for n in 0..3 {
                    let link = cache.of_macs(&macs(n));
                    assert_eq!(*paths.get(link), Path { ingress, ..path(n) });
                    numbers.push(link);
                }
                // An address of zeros does not match an unused slot.
                assert_eq!(paths.get(cache.of_macs(&[0; 12])).ingress, ingress);
                let tagged = cache.by_port(Path { vlan_tags: 1, ..path(1) });
                let number = cache.of(&tagged);
                assert_eq!((tagged.ingress, *paths.get(number)), (ingress, tagged));
            }
        }
        assert_eq!(numbers[..12], numbers[12..], "a number refers to one path only");
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!((numbers.len(), paths.lost()), (9, 0));
    }

    #[test]
    fn a_flood_of_paths_is_counted_and_known_paths_keep_their_numbers() {
        let paths = Arc::new(Paths::new());
        let mut cache = PathCache::new(HashKey::from_seed(1), Arc::clone(&paths));
        let first = cache.of_macs(&macs(0));
        for n in 0..Paths::MOST as u32 + 10_000 {
            let number = cache.of_macs(&macs(n));
            assert_eq!(number == 0, n >= Paths::MOST as u32, "{n}");
        }
        assert_eq!((cache.of_macs(&macs(0)), paths.lost()), (first, 10_000));
        // A path without a number is not cached: each packet counts.
        assert_eq!((cache.of_macs(&macs(70_000)), cache.of_macs(&macs(70_000))), (0, 0));
        assert_eq!(paths.lost(), 10_002);
    }
}
