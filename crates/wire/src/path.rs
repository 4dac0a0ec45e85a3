//! The path of a packet: its interface, link addresses, VLAN tags, MPLS labels, and outer tunnel.
//!
//! Millions of packets share few paths, so a record contains a two-byte number, and each path is stored once, here:
//!
//! ```text
//! record.path ─▶ Paths │ 0: unknown │ 1: aa:… → bb:…, VLAN 7 │ 2: … │      at most 65,535 paths
//! ```
//!
//! Decoders add paths; other code looks them up. Numbers are assigned in order of appearance, which may differ between
//! runs, so outputs contain the [`Path`], never its number.
//!
//! Invariant: a number always refers to the same path. Looking up a path never blocks; neither does requesting a number
//! once all numbers are assigned.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

/// Path of a packet. Missing parts are zero or `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path {
    /// Ethernet source and destination, of the frame in the tunnel if that is one; zeros if the link has none.
    pub macs: [[u8; 6]; 2],
    /// Ethernet source and destination of the frame around the tunnel, if `macs` are of the frame in it; otherwise zeros.
    pub outer_macs: [[u8; 6]; 2],
    /// Number of VLAN tags.
    pub vlan_tags: u8,
    /// Identifiers of the outermost and of the next VLAN tag, 0 to 4095.
    pub vlans: [u16; 2],
    /// The top MPLS label, 0 to 2²⁰ - 1.
    pub mpls_label: Option<u32>,
    /// The MPLS label below it, in the same stack.
    pub mpls_second_label: Option<u32>,
    /// The outermost tunnel that was opened.
    pub tunnel: Option<Tunnel>,
    /// The receiving interface, by the kernel's number (ifIndex); 0 for a file, or if it is unknown.
    pub ingress: u32,
}

impl Path {
    /// The path of an answer to a packet with this one that takes the same links back: source and destination of all
    /// addresses are swapped; the rest is equal.
    #[must_use]
    pub const fn reversed(&self) -> Self {
        let ([macs, outer_macs], tunnel) = ([self.macs, self.outer_macs], self.tunnel);
        let tunnel = match tunnel {
            Some(own) => Some(Tunnel { src: own.dst, dst: own.src, ..own }),
            None => None,
        };
        Self {
            macs: [macs[1], macs[0]],
            outer_macs: [outer_macs[1], outer_macs[0]],
            tunnel,
            ..*self
        }
    }

    /// Whether answers take the same links back. Interfaces are not compared: where two are captured, each direction
    /// arrives on its own.
    pub fn mirrors(&self, other: &Self) -> bool {
        Self { ingress: other.ingress, ..self.reversed() } == *other
    }
}

/// A tunnel by its outer header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tunnel {
    /// The kind of tunnel.
    pub kind: TunnelKind,
    /// Whether the outer header is IPv6.
    pub ipv6: bool,
    /// Outer source address; IPv4 in the first four bytes.
    pub src: [u8; 16],
    /// Outer destination address, laid out as `src`.
    pub dst: [u8; 16],
    /// GRE key, VXLAN or Geneve network identifier, GTP tunnel endpoint identifier, ERSPAN session, L2TP session (of version
    /// 2 behind the tunnel in 16 bits), LISP instance; 0 if the kind has none.
    pub id: u32,
}

/// Kinds of tunnels that are decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TunnelKind {
    /// RFC 2784 and 2890, with IP, MPLS or Ethernet inside.
    Gre,
    /// ERSPAN types I, II and III, within GRE.
    Erspan,
    /// IPv4 within IPv4 or IPv6 (protocol 4).
    IpIp,
    /// IPv6 within IPv4 or IPv6 (protocol 41).
    SixInFour,
    /// RFC 7348.
    Vxlan,
    /// RFC 8926.
    Geneve,
    /// GTP version 1, user plane (3GPP TS 29.281).
    GtpU,
    /// RFC 4380.
    Teredo,
    /// VXLAN with a protocol field (draft-ietf-nvo3-vxlan-gpe).
    VxlanGpe,
    /// GRE over UDP (RFC 8086).
    GreUdp,
    /// MPLS over UDP (RFC 7510).
    MplsUdp,
    /// L2TP over UDP (RFC 2661, RFC 3931).
    L2tp,
    /// L2TP over IP (RFC 3931).
    L2tpIp,
    /// RFC 3378.
    EtherIp,
    /// Generic UDP encapsulation (draft-ietf-intarea-gue).
    Gue,
    /// LISP data (RFC 9300).
    Lisp,
    /// CAPWAP data (RFC 5415).
    Capwap,
}

impl TunnelKind {
    /// All kinds, in order.
    pub const ALL: [Self; 17] = [
        Self::Gre,
        Self::Erspan,
        Self::IpIp,
        Self::SixInFour,
        Self::Vxlan,
        Self::Geneve,
        Self::GtpU,
        Self::Teredo,
        Self::VxlanGpe,
        Self::GreUdp,
        Self::MplsUdp,
        Self::L2tp,
        Self::L2tpIp,
        Self::EtherIp,
        Self::Gue,
        Self::Lisp,
        Self::Capwap,
    ];

    /// The name in records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gre => "gre",
            Self::Erspan => "erspan",
            Self::IpIp => "ipip",
            Self::SixInFour => "6in4",
            Self::Vxlan => "vxlan",
            Self::Geneve => "geneve",
            Self::GtpU => "gtp-u",
            Self::Teredo => "teredo",
            Self::VxlanGpe => "vxlan-gpe",
            Self::GreUdp => "gre-udp",
            Self::MplsUdp => "mpls-udp",
            Self::L2tp => "l2tp",
            Self::L2tpIp => "l2tp-ip",
            Self::EtherIp => "etherip",
            Self::Gue => "gue",
            Self::Lisp => "lisp",
            Self::Capwap => "capwap",
        }
    }

    /// The IP protocol of the outer header.
    pub const fn protocol(self) -> u8 {
        match self {
            Self::IpIp => 4,
            Self::SixInFour => 41,
            Self::Gre | Self::Erspan => 47,
            Self::EtherIp => 97,
            Self::L2tpIp => 115,
            Self::Vxlan
            | Self::Geneve
            | Self::GtpU
            | Self::Teredo
            | Self::VxlanGpe
            | Self::GreUdp
            | Self::MplsUdp
            | Self::L2tp
            | Self::Gue
            | Self::Lisp
            | Self::Capwap => 17,
        }
    }
}

const CHUNK: usize = 256;

/// The unknown path.
static UNKNOWN: Path = Path {
    macs: [[0; 6]; 2],
    outer_macs: [[0; 6]; 2],
    vlan_tags: 0,
    vlans: [0; 2],
    mpls_label: None,
    mpls_second_label: None,
    tunnel: None,
    ingress: 0,
};
type Chunk = Box<[OnceLock<Path>]>;

/// All paths that were seen, by number. Shared by decoders and readers of their records.
pub struct Paths {
    chunks: Box<[OnceLock<Chunk>]>,
    /// Paths with their numbers, while free numbers remain.
    numbers: Mutex<HashMap<Path, u16>>,
    /// All of them, once no number is free: then nothing changes.
    all: OnceLock<HashMap<Path, u16>>,
    /// Packets of new paths for which no number was free.
    lost: AtomicU64,
}

impl Paths {
    /// Most paths that get a number of their own.
    pub const MOST: usize = u16::MAX as usize;
    /// Numbers for paths with addresses of frames in tunnels, which hosts behind a tunnel can choose.
    const MOST_INNER: usize = Self::MOST / 2;

    /// Contains only number 0, the unknown path.
    pub fn new() -> Self {
        let chunks = (0..=Self::MOST / CHUNK).map(|_| OnceLock::new()).collect();
        let numbers = Mutex::new(HashMap::new());
        let paths = Self { chunks, numbers, all: OnceLock::new(), lost: AtomicU64::new(0) };
        paths.number(&Path::default());
        paths
    }

    /// Contains only number 0, which all paths get: for decoders of which no path is read. Takes no memory for paths.
    pub fn none() -> Self {
        let mut paths = Self::new();
        let numbers = paths.numbers.get_mut().unwrap_or_else(|poison| poison.into_inner());
        paths.all = OnceLock::from(std::mem::take(numbers));
        paths
    }

    /// The number of a path: a new one if necessary, 0 if none is free. Takes a lock while numbers are free; decoders
    /// call it only for paths that are not in their cache.
    #[cold]
    pub fn number(&self, path: &Path) -> u16 {
        if let Some(all) = self.all.get() {
            return self.of_all(all, path);
        }
        let mut numbers = self.numbers.lock().unwrap_or_else(|poison| poison.into_inner());
        if let Some(&number) = numbers.get(path) {
            return number;
        }
        // A thread that waited for the lock finds no free number, either.
        if numbers.len() > Self::MOST || self.all.get().is_some() {
            let all = self.all.get_or_init(|| std::mem::take(&mut numbers));
            return self.of_all(all, path);
        }
        if path.outer_macs != [[0; 6]; 2] && numbers.len() > Self::MOST_INNER {
            drop(numbers);
            // Relaxed: a counter, read at the end.
            self.lost.fetch_add(1, Ordering::Relaxed);
            return self.number(&Path { macs: path.outer_macs, outer_macs: [[0; 6]; 2], ..*path });
        }
        let number = numbers.len() as u16;
        let at = usize::from(number);
        let chunk =
            self.chunks[at / CHUNK].get_or_init(|| (0..CHUNK).map(|_| OnceLock::new()).collect());
        let _ = chunk[at % CHUNK].set(*path);
        numbers.insert(*path, number);
        number
    }

    /// The number of a path when all numbers are assigned.
    fn of_all(&self, all: &HashMap<Path, u16>, path: &Path) -> u16 {
        all.get(path).copied().unwrap_or_else(|| {
            // Relaxed: a counter, read at the end.
            self.lost.fetch_add(1, Ordering::Relaxed);
            0
        })
    }

    /// The path of this number; the unknown path if the number is not assigned.
    #[inline]
    pub fn get(&self, number: u16) -> &Path {
        let at = usize::from(number);
        let chunk = self.chunks[at / CHUNK].get();
        chunk.and_then(|chunk| chunk[at % CHUNK].get()).unwrap_or(&UNKNOWN)
    }

    /// Packets whose path got no number; their records have the unknown path, or one with the addresses around a tunnel
    /// alone.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

impl Default for Paths {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(vlan: u32) -> Path {
        Path { mpls_label: Some(vlan), ..Path::default() }
    }

    #[test]
    fn no_path_gets_a_number_if_none_is_wanted() {
        let paths = Paths::none();
        assert!((0..100_000).all(|vlan| paths.number(&path(vlan)) == 0));
        assert_eq!((paths.get(0), paths.get(1)), (&Path::default(), &Path::default()));
        let held = |paths: &Paths| {
            let chunks = paths.chunks.iter().filter(|chunk| chunk.get().is_some()).count();
            (chunks, paths.all.get().map(HashMap::len))
        };
        assert_eq!(held(&paths), (1, Some(1)));
    }

    #[test]
    fn equal_paths_have_one_number_and_too_many_are_counted() {
        let paths = Paths::new();
        assert_eq!(paths.number(&Path::default()), 0);
        for round in 0..2 {
            for n in 0..Paths::MOST as u32 {
                assert_eq!(paths.number(&path(n)), n as u16 + 1, "round {round}");
            }
        }
        assert_eq!((*paths.get(7), *paths.get(65_535)), (path(6), path(65_534)));
        for lost in 1..4 {
            assert_eq!((paths.number(&path(70_000)), paths.lost()), (0, lost));
            assert_eq!((paths.number(&path(7)), paths.number(&path(65_534))), (8, 65_535));
        }
        assert_eq!(*paths.get(0), Path::default());
    }

    #[test]
    fn addresses_in_tunnels_leave_numbers_for_other_paths() {
        let paths = Paths::new();
        let inner = |n: u32| {
            let [a, b, c, d] = n.to_be_bytes();
            Path { macs: [[2, 0, a, b, c, d]; 2], outer_macs: [[1; 6]; 2], ..Path::default() }
        };
        for n in 0..Paths::MOST as u32 {
            paths.number(&inner(n));
        }
        let outer = paths.number(&inner(70_000));
        assert_eq!(*paths.get(outer), Path { macs: [[1; 6]; 2], ..Path::default() });
        assert_eq!(*paths.get(paths.number(&inner(5))), inner(5));
        assert_eq!(paths.lost(), (Paths::MOST - Paths::MOST_INNER + 1) as u64);
        assert_eq!(*paths.get(paths.number(&path(7))), path(7));
    }
}
