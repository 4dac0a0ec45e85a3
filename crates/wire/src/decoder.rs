//! The decoder: one frame in, one record out, in a fixed order; another one for what a tunnel carries.
//!
//! ```text
//!  frame ─▶ link/ ─▶ ip/ ─▶ transport ─▶ record
//!           │  ▲       └──▶ fragments (ports of later fragments)
//!           │  └──── tunnel/ ◀──┘
//!           └──▶ path_cache (the way it came)
//! ```
//!
//! The common case, untagged Ethernet with IPv4 or IPv6 and TCP or UDP, is decoded in line with one
//! length check for each header; everything else is out of line.
//!
//! Invariants: never fails, never panics, reads no clock; allocates after [`Decoder::new`] for ways never seen before
//! only, and these are bounded ([`Paths`]).

use std::ops::Range;
use std::sync::Arc;

use crate::carried::Carried;
use crate::fragments::FragmentTable;
use crate::hash::HashKey;
use crate::ip::{Context, v4, v6};
use crate::link::{self, LinkType, Network, Stack};
use crate::path::{Path, Paths, Tunnel};
use crate::path_cache::PathCache;
use crate::reason::NonIp;
use crate::record::{Flags, PacketRecord};
use crate::span::Span;
use crate::transport;
use crate::tunnel::{self, Inside, Tunnels, Watched};

/// Datagrams whose first fragments are remembered, unless [`Decoder::with_fragments`] says otherwise: 2.4 MiB when all
/// are in use.
const DATAGRAMS: usize = 1 << 15;

/// Turns frames into records. It remembers first fragments, so frames must come in order.
pub struct Decoder {
    key: HashKey,
    fragments: FragmentTable,
    paths: PathCache,
    tunnels: Tunnels,
    watched: Watched,
    /// Of the tunnel opened last.
    inner: PacketRecord,
    /// Where the packet of `inner` lies in the frame.
    inside: Range<usize>,
}

/// What a frame turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoded {
    /// Declared to be IPv4 (see [`Flags::BAD_HEADER`]).
    Ipv4,
    /// Declared to be IPv6 (see [`Flags::BAD_HEADER`]).
    Ipv6,
    /// No IP packet, for this reason.
    NonIp(NonIp),
}

impl Decoder {
    /// Makes a decoder with all the memory it will ever use, most of it for the first fragments of 32,768 datagrams, each
    /// remembered for 30 s of packet time ([`Decoder::with_fragments`] sets another number). Paths that were not seen
    /// before are added to `paths`. Tunnels are opened.
    pub fn new(key: HashKey, paths: Arc<Paths>) -> Self {
        Self {
            key,
            fragments: FragmentTable::new(key, DATAGRAMS, !0),
            paths: PathCache::new(key, paths),
            tunnels: Tunnels::default(),
            watched: Watched::by(Tunnels::default()),
            inner: PacketRecord::EMPTY,
            inside: 0..0,
        }
    }

    /// The same, opening tunnels or not.
    pub fn with_tunnels(self, tunnels: Tunnels) -> Self {
        Self { tunnels, watched: Watched::by(tunnels), ..self }
    }

    /// The same, for frames from these interfaces, by the kernel's numbers; [`Decoder::from_interface`] says which.
    pub fn with_interfaces(mut self, interfaces: &[u32]) -> Self {
        self.paths.set_interfaces(interfaces);
        self
    }

    /// The following frames were received by the interface at this place of the list given to
    /// [`Decoder::with_interfaces`]. Their ways name it.
    #[inline(always)]
    pub fn from_interface(&mut self, place: usize) {
        self.paths.set_port(place);
    }

    /// The same, remembering the first fragments of at most `datagrams` (at least 1), of those address pairs alone whose
    /// region ([`REGIONS`](crate::REGIONS)) has its bit set in `regions`.
    pub fn with_fragments(self, datagrams: usize, regions: u64) -> Self {
        Self { fragments: FragmentTable::new(self.key, datagrams, regions), ..self }
    }

    /// First fragments that were dropped within their 30 s for lack of room, so that later ones may lack their ports.
    pub fn fragments_forgotten(&self) -> u64 {
        self.fragments.forgotten()
    }

    /// What the tunnel carried of which `outer` is the record, if `outer` was decoded last: the innermost IP packet, with
    /// [`Flags::INNER`]. Time, bytes on the wire and way are those of the frame; the way names the outermost tunnel.
    #[inline(always)]
    pub fn inner(&self, outer: &PacketRecord) -> Option<&PacketRecord> {
        outer.flags.contains(Flags::TUNNEL).then_some(&self.inner)
    }

    /// What follows the TCP or UDP header of a packet, as far as it was captured. `record` is that of the frame decoded
    /// last or of what its tunnel carried, `link` and `frame` are what was decoded. `None` of any other protocol, of a later
    /// fragment, and where its header was not captured.
    ///
    /// The headers are read again, so this is for the few packets whose payload is of interest.
    #[inline]
    pub fn payload<'a>(
        &self,
        link: LinkType,
        frame: &'a [u8],
        record: &PacketRecord,
    ) -> Option<&'a [u8]> {
        const UNUSUAL: u16 = Flags::INNER.0 | Flags::FRAGMENT.0;
        // Untagged Ethernet and IPv4 without options.
        if link == LinkType::ETHERNET
            && frame.get(12..15) == Some(&[0x08, 0x00, 0x45])
            && record.flags.0 & UNUSUAL == 0
        {
            let end = frame.len().min(record.ip_len as usize + 14);
            return transport::data(record.protocol, frame.get(34..end)?);
        }
        self.payload_of_any(link, frame, record)
    }

    #[inline(never)]
    fn payload_of_any<'a>(
        &self,
        link: LinkType,
        frame: &'a [u8],
        record: &PacketRecord,
    ) -> Option<&'a [u8]> {
        if !record.flags.contains(Flags::PORTS) || record.flags.contains(Flags::BAD_HEADER) {
            return None;
        }
        let span = |bytes: &'a [u8]| Span { bytes, wire: record.wire_len.max(bytes.len() as u32) };
        let packet = if record.flags.contains(Flags::INNER) {
            span(frame.get(self.inside.clone())?)
        } else {
            let (Network::Ipv4(packet) | Network::Ipv6(packet)) =
                link::strip(link, span(frame), &mut Stack::default()).ok()?;
            packet
        };
        let behind = if record.flags.contains(Flags::IPV4) {
            v4::behind(packet, record.ip_len)?
        } else {
            v6::behind(packet)?
        };
        transport::data(record.protocol, behind.bytes)
    }

    /// Decodes one frame. All 64 bytes of `out` are written.
    ///
    /// `ts_ns` is the packet's time in nanoseconds since 1970, `frame` the captured bytes,
    /// `original_len` the bytes on the wire (taken as `frame.len()` if it lies lower).
    #[inline]
    pub fn decode(
        &mut self,
        link: LinkType,
        ts_ns: u64,
        frame: &[u8],
        original_len: u32,
        out: &mut PacketRecord,
    ) -> Decoded {
        let captured_len = u32::try_from(frame.len()).unwrap_or(u32::MAX);
        let frame =
            Span { bytes: &frame[..captured_len as usize], wire: original_len.max(captured_len) };
        if link == LinkType::ETHERNET
            && let Some((header, packet)) = frame.take::<14>()
        {
            let mut base = blank(ts_ns, frame);
            let [macs @ .., t0, t1] = header;
            let ether_type = [*t0, *t1];
            if ether_type == [0x08, 0x00]
                && let Some(path) = self.paths.met(macs)
            {
                base.path = path;
                if v4::decode_plain(&self.context(0), base, packet, out) {
                    return Decoded::Ipv4;
                }
            }
            if ether_type == [0x86, 0xdd]
                && let Some(path) = self.paths.met(macs)
            {
                base.path = path;
                if v6::decode_plain(&self.context(0), base, packet, out) {
                    return Decoded::Ipv6;
                }
            }
        }
        self.decode_any(link, ts_ns, frame.bytes, frame.wire, out)
    }

    /// Every case. The frame comes in two parts, so that the fast path need not put it in memory.
    #[inline(never)]
    fn decode_any(
        &mut self,
        link: LinkType,
        ts_ns: u64,
        bytes: &[u8],
        wire: u32,
        out: &mut PacketRecord,
    ) -> Decoded {
        let frame = Span { bytes, wire };
        let mut base = blank(ts_ns, frame);
        let mut stack = Stack::default();
        let network = link::strip(link, frame, &mut stack);
        base.path = self.paths.of_link(&stack);
        if stack.vlan_tags > 0 {
            base.flags.insert(Flags::VLAN);
        }
        let network = match network {
            Ok(network) => network,
            Err(reason) => {
                if let NonIp::EtherType(number) = reason {
                    base.dst_port = number;
                }
                *out = base;
                return Decoded::NonIp(reason);
            }
        };
        let mut carried = Carried::NOTHING;
        let decoded = self.network(network, base, 0, out, &mut carried);
        if self.tunnels != Tunnels::Outer
            && let Some(inside) = tunnel::open(out, &carried)
        {
            let within = self.open(self.paths.by_port(stack.path()), inside, base, out);
            let start = within.as_ptr() as usize - bytes.as_ptr() as usize;
            self.inside = start..start + within.len();
            out.flags.insert(Flags::TUNNEL);
        }
        decoded
    }

    /// An IP packet, and what it carries if that may be a tunnel. `scope` is 0 outside of tunnels.
    #[inline(always)]
    fn network<'a>(
        &mut self,
        network: Network<'a>,
        base: PacketRecord,
        scope: u32,
        out: &mut PacketRecord,
        carried: &mut Carried<'a>,
    ) -> Decoded {
        let mut context = self.context(scope);
        match network {
            Network::Ipv4(packet) => {
                if !v4::decode_plain(&context, base, packet, out) {
                    *out = base;
                    *carried = v4::decode(&mut context, packet, out);
                }
                Decoded::Ipv4
            }
            Network::Ipv6(packet) => {
                if v6::decode_plain(&context, base, packet, out) {
                    return Decoded::Ipv6;
                }
                *out = base;
                match v6::decode(&mut context, packet, out) {
                    Ok(found) => {
                        *carried = found;
                        Decoded::Ipv6
                    }
                    Err(reason) => Decoded::NonIp(reason),
                }
            }
        }
    }

    /// Decodes what lies inside the tunnel that `outer` carries, and inside every tunnel there; [`Decoder::inner`] holds
    /// the innermost packet then, whose bytes are returned.
    #[inline(never)]
    fn open<'a>(
        &mut self,
        mut path: Path,
        mut inside: Inside<'a>,
        mut base: PacketRecord,
        outer: &PacketRecord,
    ) -> &'a [u8] {
        let mut within: &[u8] = &[];
        let mut around = *outer;
        let mut scope = 0;
        base.flags.insert(Flags::INNER);
        for _ in 0..tunnel::DEPTH_MAX {
            let tunnel = Tunnel {
                kind: inside.kind,
                ipv6: around.flags.contains(Flags::IPV6),
                src: around.src,
                dst: around.dst,
                id: inside.id,
            };
            if path.tunnel.is_none() {
                path.tunnel = Some(tunnel);
                base.path = self.paths.of(&path);
            }
            // Fragments in different tunnels do not meet, whatever their headers say.
            scope = (self.paths.tunnel(&tunnel, u64::from(scope)) >> 32) as u32 | 1;
            let mut carried = Carried::NOTHING;
            let (Network::Ipv4(packet) | Network::Ipv6(packet)) = inside.network;
            within = packet.bytes;
            self.network(inside.network, base, scope, &mut around, &mut carried);
            let Some(next) = tunnel::open(&around, &carried) else { break };
            inside = next;
        }
        self.inner = around;
        within
    }

    #[inline(always)]
    fn context(&mut self, scope: u32) -> Context<'_> {
        Context { key: &self.key, fragments: &mut self.fragments, watched: &self.watched, scope }
    }
}

/// What is known without looking at the frame.
#[inline(always)]
fn blank(ts_ns: u64, frame: Span<'_>) -> PacketRecord {
    let truncated = (frame.bytes.len() as u32) < frame.wire;
    let flags = if truncated { Flags::TRUNCATED } else { Flags(0) };
    PacketRecord { ts_ns, wire_len: frame.wire, flags, ..PacketRecord::EMPTY }
}
