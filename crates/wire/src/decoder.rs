//! The decoder: turns one frame into one record, and the packet inside a tunnel into another.
//!
//! ```text
//!  frame ─▶ link/ ─▶ ip/ ─▶ transport ─▶ record
//!           │  ▲       └──▶ fragments (ports of later fragments)
//!           │  └──── tunnel/ ◀──┘
//!           └──▶ path_cache (the encapsulation)
//! ```
//!
//! The common case (untagged Ethernet, IPv4 or IPv6, TCP or UDP) is decoded inline with one length check a header; all
//! other cases are out of line.
//!
//! Invariants: never fails, never panics, reads no clock. After [`Decoder::new`] it allocates only for encapsulations
//! that it has not seen before, and their number is bounded ([`Paths`]).

use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;

use crate::carried::Carried;
use crate::fragments::{BYTES_PER_DATAGRAM, FragmentTable};
use crate::hash::HashKey;
use crate::ip::{Context, Data, v4, v6};
use crate::link::{self, LinkType, Stack};
use crate::network::Network;
use crate::part::Part;
use crate::path::{Path, Paths, Tunnel};
use crate::path_cache::PathCache;
use crate::reason::NonIp;
use crate::record::{Flags, PacketRecord};
use crate::segment::Segment;
use crate::span::Span;
use crate::transport::{self, Payload};
use crate::tunnel::{self, Inside, TunnelPorts, Tunnels, Watched};

/// Default number of datagrams whose first fragments are stored; [`Decoder::with_fragments`] changes it. 2.4 MiB when
/// all are in use.
const DATAGRAMS: usize = 1 << 15;

/// Turns frames into records. It stores the ports of first fragments, so frames must come in order.
pub struct Decoder {
    key: HashKey,
    fragments: FragmentTable,
    paths: PathCache,
    tunnels: Tunnels,
    ports: TunnelPorts,
    watched: Watched,
    /// The packet inside the last opened tunnel.
    inner: PacketRecord,
    /// Byte range of the packet of `inner` in the frame.
    inside: Range<usize>,
    /// The scope of its datagram.
    scope: u32,
    /// The data of the last packet, if it was plain.
    data: Data,
    /// If it was not plain, the byte ranges in the frame of the TCP or UDP headers and data of the outermost packet, and of
    /// that in the tunnel; empty if they are not known.
    behind: [Range<usize>; 2],
    /// The last TCP segment; `None` if segments are not read.
    segments: Option<Cell<Segment>>,
}

/// The network layer of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoded {
    /// The frame declares IPv4 (see [`Flags::BAD_HEADER`]).
    Ipv4,
    /// The frame declares IPv6 (see [`Flags::BAD_HEADER`]).
    Ipv6,
    /// Not an IP packet, for this reason.
    NonIp(NonIp),
}

impl Decoder {
    /// Memory of a new decoder, besides that of its paths.
    pub const BYTES: u64 = DATAGRAMS as u64 * BYTES_PER_DATAGRAM + PathCache::BYTES;

    /// Creates a decoder with all of its memory, most of it for the first fragments of 32,768 datagrams, each valid for
    /// 30 s of packet time ([`Decoder::with_fragments`] changes the number). New paths are added to `paths`. Tunnels
    /// are opened.
    pub fn new(key: HashKey, paths: Arc<Paths>) -> Self {
        let ports = TunnelPorts::default();
        Self {
            key,
            fragments: FragmentTable::new(key, DATAGRAMS, !0),
            paths: PathCache::new(key, paths),
            tunnels: Tunnels::default(),
            watched: ports.watched(Tunnels::default()),
            ports,
            inner: PacketRecord::EMPTY,
            inside: 0..0,
            scope: 0,
            data: Data::default(),
            behind: [0..0, 0..0],
            segments: None,
        }
    }

    /// Returns this decoder with TCP segments read ([`Decoder::segment`]), or not.
    pub fn with_segments(self, read: bool) -> Self {
        Self { segments: read.then(Cell::default), ..self }
    }

    /// The segment of a packet with [`Flags::SEGMENT`]: of the frame decoded last, or of the packet in its tunnel.
    #[inline(always)]
    pub fn segment(&self, record: &PacketRecord) -> Option<Segment> {
        let read = self.segments.as_ref().filter(|_| record.flags.contains(Flags::SEGMENT));
        read.map(Cell::get)
    }

    /// Returns this decoder with tunnels opened or not.
    pub fn with_tunnels(self, tunnels: Tunnels) -> Self {
        Self { tunnels, watched: self.ports.watched(tunnels), ..self }
    }

    /// Returns this decoder with tunnels expected on these UDP ports.
    pub fn with_tunnel_ports(self, ports: TunnelPorts) -> Self {
        Self { watched: ports.watched(self.tunnels), ports, ..self }
    }

    /// Returns this decoder for frames from these interfaces, given by the kernel's numbers; see
    /// [`Decoder::from_interface`].
    pub fn with_interfaces(mut self, interfaces: &[u32]) -> Self {
        self.paths.set_interfaces(interfaces);
        self
    }

    /// Sets the interface of the following frames: a position in the list given to [`Decoder::with_interfaces`]. Their
    /// paths contain it.
    #[inline(always)]
    pub fn from_interface(&mut self, place: usize) {
        self.paths.set_port(place);
    }

    /// Returns this decoder with storage for the first fragments of at most `datagrams` (at least 1), and only for
    /// address pairs whose region ([`REGIONS`](crate::REGIONS)) has its bit set in `regions`.
    pub fn with_fragments(self, datagrams: usize, regions: u64) -> Self {
        Self { fragments: FragmentTable::new(self.key, datagrams, regions), ..self }
    }

    /// First fragments that were evicted while valid (30 s), because the table was full. Their later fragments may lack
    /// ports.
    pub fn fragments_forgotten(&self) -> u64 {
        self.fragments.evicted()
    }

    /// The record of the innermost IP packet in the tunnel of `outer`, with [`Flags::INNER`], if `outer` was decoded
    /// last. Time, bytes on the wire and path are those of the frame; the path names the outermost tunnel.
    #[inline(always)]
    pub fn inner(&self, outer: &PacketRecord) -> Option<&PacketRecord> {
        outer.flags.contains(Flags::TUNNEL).then_some(&self.inner)
    }

    /// Where the data of the last decoded frame's packet begin and end in the frame, for TCP and UDP in plain IPv4 and
    /// IPv6 in untagged Ethernet. May be beyond the captured bytes. `None` for all other frames.
    #[inline(always)]
    pub fn plain_data(&self) -> Option<(usize, usize)> {
        let Data { at, end } = self.data;
        (at > 0).then_some((at as usize, end as usize))
    }

    /// The sequence number in the TCP header of the last decoded frame, if [`Decoder::plain_data`] has the place of its
    /// data.
    #[inline(always)]
    pub fn plain_sequence(&self, frame: &[u8]) -> Option<u32> {
        const IPV4: usize = 14 + 20;
        const IPV6: usize = 14 + 40;
        const SEQUENCE: usize = 4;
        let header = if frame.get(12) == Some(&0x86) { IPV6 } else { IPV4 };
        let bytes = frame.get(header + SEQUENCE..)?.first_chunk()?;
        (self.data.at > 0).then_some(u32::from_be_bytes(*bytes))
    }

    /// What a TCP or UDP packet carries, as far as it was captured. `record` is that of the last decoded frame or of the packet in
    /// its tunnel, `link` and `frame` are the arguments of that call. `None` for other protocols, for later fragments,
    /// and if the header was not captured.
    ///
    /// Cheap unless the packet is a fragment: then the headers are parsed again.
    #[inline(always)]
    pub fn payload<'a>(
        &self,
        link: LinkType,
        frame: &'a [u8],
        record: &PacketRecord,
    ) -> Option<Payload<'a>> {
        if is_plain(link, frame, record) {
            let end = frame.len().min(record.ip_len as usize + 14);
            return transport::data(record.protocol, frame.get(34..end)?);
        }
        self.payload_of_other(link, frame, record)
    }

    /// Uses the places that decoding found.
    #[inline(never)]
    fn payload_of_other<'a>(
        &self,
        link: LinkType,
        frame: &'a [u8],
        record: &PacketRecord,
    ) -> Option<Payload<'a>> {
        let [outer, inner] = &self.behind;
        let known = match record.flags.contains(Flags::INNER) {
            true => inner.clone(),
            // Plain IPv6.
            false if self.data.at > 0 => 54..frame.len().min(self.data.end as usize),
            false => outer.clone(),
        };
        if record.flags.contains(Flags::FRAGMENT) || known.is_empty() {
            return self.payload_of_any(link, frame, record);
        }
        transport::data(record.protocol, frame.get(known)?)
    }

    /// Parses the headers again.
    #[cold]
    pub(crate) fn payload_of_any<'a>(
        &self,
        link: LinkType,
        frame: &'a [u8],
        record: &PacketRecord,
    ) -> Option<Payload<'a>> {
        if !record.flags.contains(Flags::PORTS) || record.flags.contains(Flags::BAD_HEADER) {
            return None;
        }
        let packet = self.packet(link, frame, record)?;
        let behind = if record.flags.contains(Flags::IPV4) {
            v4::behind(packet, record.ip_len)?
        } else {
            v6::behind(packet)?
        };
        transport::data(record.protocol, behind.bytes)
    }

    /// The packet of a record.
    fn packet<'a>(
        &self,
        link: LinkType,
        frame: &'a [u8],
        record: &PacketRecord,
    ) -> Option<Span<'a>> {
        if record.flags.contains(Flags::INNER) {
            return Some(Span::frame(frame.get(self.inside.clone())?, record.wire_len));
        }
        let frame = Span::frame(frame, record.wire_len);
        let (Network::Ipv4(packet) | Network::Ipv6(packet)) =
            link::strip(link, frame, &mut Stack::default()).ok()?;
        Some(packet)
    }

    /// The part of its datagram that a fragment carries, if it was captured completely. Arguments as for
    /// [`Decoder::payload`].
    #[inline(never)]
    pub fn part<'a>(
        &self,
        link: LinkType,
        frame: &'a [u8],
        record: &PacketRecord,
    ) -> Option<Part<'a>> {
        let has = |flag| record.flags.contains(flag);
        if !has(Flags::FRAGMENT) || has(Flags::BAD_HEADER) {
            return None;
        }
        let packet = self.packet(link, frame, record)?;
        let scope = if has(Flags::INNER) { self.scope } else { 0 };
        if has(Flags::IPV4) { v4::part(packet, scope) } else { v6::part(packet, scope) }
    }

    /// Decodes one frame. All 64 bytes of `out` are written.
    ///
    /// `ts_ns` is the packet's time in nanoseconds since 1970, `frame` the captured bytes, `original_len` the bytes on
    /// the wire (`frame.len()` is used if it is larger).
    #[inline]
    pub fn decode(
        &mut self,
        link: LinkType,
        ts_ns: u64,
        frame: &[u8],
        original_len: u32,
        out: &mut PacketRecord,
    ) -> Decoded {
        let frame = Span::frame(frame, original_len);
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
                if let Some(data) = v4::decode_plain(&self.context(0), base, packet, out) {
                    self.data = data.behind(header.len());
                    return Decoded::Ipv4;
                }
            }
            if ether_type == [0x86, 0xdd]
                && let Some(path) = self.paths.met(macs)
            {
                base.path = path;
                if let Some(data) = v6::decode_plain(&self.context(0), base, packet, out) {
                    self.data = data.behind(header.len());
                    return Decoded::Ipv6;
                }
            }
        }
        self.data = Data::default();
        self.decode_any(link, ts_ns, frame.bytes, frame.wire, out)
    }

    /// Handles every case. The frame comes in two parts, so that the fast path keeps it in registers.
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
        let mut behind: &[u8] = &[];
        let decoded = self.network(network, base, 0, out, &mut carried, &mut behind);
        self.behind[0] = place_of(behind, bytes);
        if self.tunnels != Tunnels::Outer
            && let Some(inside) = tunnel::open(out, &carried, &self.ports)
        {
            let [within, behind] = self.open(self.paths.by_port(stack.path()), inside, base, out);
            self.inside = place_of(within, bytes);
            self.behind[1] = place_of(behind, bytes);
            out.flags.insert(Flags::TUNNEL);
        }
        decoded
    }

    /// Decodes an IP packet. Returns its payload if that may be a tunnel, and what of it is TCP or UDP and no fragment.
    /// `scope` is 0 outside tunnels.
    #[inline(always)]
    fn network<'a>(
        &mut self,
        network: Network<'a>,
        base: PacketRecord,
        scope: u32,
        out: &mut PacketRecord,
        carried: &mut Carried<'a>,
        behind: &mut &'a [u8],
    ) -> Decoded {
        let mut context = self.context(scope);
        let decoded = match network {
            Network::Ipv4(packet) => {
                if v4::decode_plain(&context, base, packet, out).is_some() {
                    *behind = packet.limit(out.ip_len).bytes.get(20..).unwrap_or_default();
                    return Decoded::Ipv4;
                }
                *out = base;
                *carried = v4::decode(&mut context, packet, out);
                Decoded::Ipv4
            }
            Network::Ipv6(packet) => {
                if v6::decode_plain(&context, base, packet, out).is_some() {
                    *behind = packet.limit(out.ip_len).bytes.get(40..).unwrap_or_default();
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
        };
        *behind = &[];
        if matches!(carried.protocol, transport::TCP | transport::UDP)
            && !out.flags.contains(Flags::FRAGMENT)
        {
            *behind = carried.payload.bytes;
        }
        decoded
    }

    /// Decodes the tunnel that `outer` carries, and tunnels inside it. Then [`Decoder::inner`] has the innermost
    /// packet, whose bytes are returned, and what [`Decoder::network`] returns of them.
    #[inline(never)]
    fn open<'a>(
        &mut self,
        mut path: Path,
        mut inside: Inside<'a>,
        mut base: PacketRecord,
        outer: &PacketRecord,
    ) -> [&'a [u8]; 2] {
        let (mut within, mut behind): (&[u8], &[u8]) = (&[], &[]);
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
                if inside.macs != [0; 12] {
                    (path.outer_macs, path.macs) = (path.macs, link::from_to(inside.macs));
                }
                base.path = self.paths.of(&path);
            }
            // Fragments in different tunnels never match, even with equal headers.
            scope = (self.paths.tunnel(&tunnel, u64::from(scope)) >> 32) as u32 | 1;
            let mut carried = Carried::NOTHING;
            let (Network::Ipv4(packet) | Network::Ipv6(packet)) = inside.network;
            within = packet.bytes;
            self.network(inside.network, base, scope, &mut around, &mut carried, &mut behind);
            let Some(next) = tunnel::open(&around, &carried, &self.ports) else { break };
            inside = next;
        }
        self.inner = around;
        self.scope = scope;
        [within, behind]
    }

    #[inline(always)]
    fn context(&mut self, scope: u32) -> Context<'_> {
        Context {
            key: &self.key,
            fragments: &mut self.fragments,
            watched: &self.watched,
            scope,
            segments: self.segments.as_ref(),
        }
    }
}

/// Whether the frame is untagged Ethernet with IPv4 without options, and its packet no fragment and not in a tunnel.
#[inline(always)]
fn is_plain(link: LinkType, frame: &[u8], record: &PacketRecord) -> bool {
    link == LinkType::ETHERNET
        && frame.get(12..15) == Some(&[0x08, 0x00, 0x45])
        && record.flags.0 & (Flags::INNER.0 | Flags::FRAGMENT.0) == 0
}

/// The byte range of a part of a frame, or of nothing.
#[inline(always)]
fn place_of(part: &[u8], frame: &[u8]) -> Range<usize> {
    let start = (part.as_ptr() as usize).wrapping_sub(frame.as_ptr() as usize);
    start..start.wrapping_add(part.len())
}

/// The fields that do not depend on the frame's bytes.
#[inline(always)]
fn blank(ts_ns: u64, frame: Span<'_>) -> PacketRecord {
    let truncated = (frame.bytes.len() as u32) < frame.wire;
    let flags = if truncated { Flags::TRUNCATED } else { Flags(0) };
    PacketRecord { ts_ns, wire_len: frame.wire, flags, ..PacketRecord::EMPTY }
}
