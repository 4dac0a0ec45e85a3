//! Numbers of the ways met lately, so that hardly any packet asks [`Paths`].
//!
//! ```text
//!  links    512 slots:   12 bytes of MAC addresses → number     what nearly every packet needs
//!  others   1024 slots:  a whole way → number                   VLAN tags, MPLS labels, tunnels
//! ```
//!
//! A way has one slot, picked by a keyed hash; whoever comes there last stands there. Every slot is compared whole, so
//! a number is never wrong. A way without a number is not kept: each of its packets counts as lost.
//!
//! Invariants: no lock and no allocation but for ways that were not met lately.

use std::sync::Arc;

use crate::hash::HashKey;
use crate::path::{Path, Paths, Tunnel};

const LINKS: usize = 512;
const OTHERS: usize = 1024;

/// MAC addresses as they stand in a frame, in two words.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Macs(u64, u32);

impl Macs {
    #[inline(always)]
    fn of(header: &[u8; 14]) -> Self {
        let [a, b, c, d, e, f, g, h, i, j, k, l, ..] = *header;
        Self(u64::from_ne_bytes([a, b, c, d, e, f, g, h]), u32::from_ne_bytes([i, j, k, l]))
    }
}

pub(crate) struct PathCache {
    key: HashKey,
    paths: Arc<Paths>,
    // A slot that nobody has used says that number 0 is the way of which nothing is known, which is true.
    links: Box<[(Macs, u16); LINKS]>,
    others: Box<[(Path, u16)]>,
}

impl PathCache {
    pub(crate) fn new(key: HashKey, paths: Arc<Paths>) -> Self {
        let links = Box::new([(Macs::default(), 0); LINKS]);
        let others = vec![(Path::default(), 0); OTHERS].into_boxed_slice();
        Self { key, paths, links, others }
    }

    /// The number of the way of an Ethernet frame of which only the MAC addresses are known.
    #[inline(always)]
    pub(crate) fn of_link(&mut self, header: &[u8; 14]) -> u16 {
        let macs = Macs::of(header);
        let at = (self.key.words(macs.0, u64::from(macs.1)) >> 32) as usize % LINKS;
        let (known, number) = self.links[at];
        if known == macs { number } else { self.new_link(header, at) }
    }

    /// The number of any way.
    pub(crate) fn of(&mut self, path: &Path) -> u16 {
        let [src, dst] = path.macs;
        if (Path { macs: [src, dst], ..Path::default() }) == *path {
            let [a, b, c, d, e, f] = dst;
            let [g, h, i, j, k, l] = src;
            return self.of_link(&[a, b, c, d, e, f, g, h, i, j, k, l, 0, 0]);
        }
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
    fn new_link(&mut self, header: &[u8; 14], at: usize) -> u16 {
        let [d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5, ..] = *header;
        let macs = [[s0, s1, s2, s3, s4, s5], [d0, d1, d2, d3, d4, d5]];
        let number = self.paths.number(&Path { macs, ..Path::default() });
        if number != 0 {
            self.links[at] = (Macs::of(header), number);
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
        let label = path.mpls_label.map_or(0, |label| u64::from(label) + 1) << 40;
        let link = self.key.words(macs, rest ^ tags ^ label);
        path.tunnel.as_ref().map_or(link, |tunnel| self.tunnel(tunnel, link))
    }

    /// Hash of a tunnel within `around`, which is the hash of what lies around it. Both directions differ.
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

    fn header(number: u32) -> [u8; 14] {
        let [a, b, c, d] = number.to_be_bytes();
        [2, 0, 0, 0, 0, 1, 2, 0, a, b, c, d, 8, 0]
    }

    fn path(number: u32) -> Path {
        let [a, b, c, d] = number.to_be_bytes();
        Path { macs: [[2, 0, a, b, c, d], [2, 0, 0, 0, 0, 1]], ..Path::default() }
    }

    #[test]
    fn each_way_has_the_number_that_names_it_however_often_it_is_displaced() {
        let paths = Arc::new(Paths::new());
        let mut cache = PathCache::new(HashKey::from_seed(1), Arc::clone(&paths));
        assert_eq!((cache.of_link(&[0; 14]), cache.of(&Path::default())), (0, 0));
        let tunnel =
            |id| Tunnel { kind: TunnelKind::Gre, ipv6: false, src: [1; 16], dst: [2; 16], id };
        for _ in 0..2 {
            for n in 0..5_000 {
                let (link, plain) = (cache.of_link(&header(n)), path(n));
                assert_eq!((paths.get(link), cache.of(&plain)), (plain, link));
                for other in [
                    Path { vlan_tags: 1, vlans: [n as u16 % 4096, 0], ..plain },
                    Path { mpls_label: Some(0), ..plain },
                    Path { tunnel: Some(tunnel(n)), ..Path::default() },
                ] {
                    let number = cache.of(&other);
                    assert_eq!((paths.get(number), cache.of(&other)), (other, number));
                }
            }
        }
        assert_eq!(paths.lost(), 0);
    }

    #[test]
    fn a_flood_of_ways_is_counted_and_those_known_stay_so() {
        let paths = Arc::new(Paths::new());
        let mut cache = PathCache::new(HashKey::from_seed(1), Arc::clone(&paths));
        let first = cache.of_link(&header(0));
        for n in 0..Paths::MOST as u32 + 10_000 {
            let number = cache.of_link(&header(n));
            assert_eq!(number == 0, n >= Paths::MOST as u32, "{n}");
        }
        assert_eq!((cache.of_link(&header(0)), paths.lost()), (first, 10_000));
        // Without a number nothing is remembered: each packet counts.
        assert_eq!((cache.of_link(&header(70_000)), cache.of_link(&header(70_000))), (0, 0));
        assert_eq!(paths.lost(), 10_002);
    }
}
