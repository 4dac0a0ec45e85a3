//! The decoder: one frame in, one record out, in a fixed order.
//!
//! ```text
//!  frame ─▶ link/ ─▶ ip/ ─▶ transport ─▶ record
//!                      └──▶ fragments (ports of later fragments)
//! ```
//!
//! The common case, untagged Ethernet with IPv4 or IPv6 and TCP or UDP, is decoded in line with one
//! length check for each header; everything else is out of line.
//!
//! Invariants: never fails, never panics, never allocates after [`Decoder::new`], reads no clock.

use crate::fragments::FragmentTable;
use crate::hash::HashKey;
use crate::ip::{v4, v6};
use std::sync::Arc;

use crate::link::{self, LinkType, Network, Stack};
use crate::path::{Path, Paths};
use crate::reason::NonIp;
use crate::record::{Flags, PacketRecord};
use crate::span::Span;

/// Turns frames into records. It remembers first fragments, so frames must come in order.
pub struct Decoder {
    key: HashKey,
    fragments: FragmentTable,
    paths: Arc<Paths>,
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
    /// Makes a decoder with all the memory it will ever use (about 300 KiB: the first fragments
    /// of 4096 datagrams, each remembered for 30 s of packet time).
    pub fn new(key: HashKey, paths: Arc<Paths>) -> Self {
        Self { key, fragments: FragmentTable::new(key), paths }
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
            let base = blank(ts_ns, frame);
            let ether_type = [header[12], header[13]];
            if ether_type == [0x08, 0x00] && v4::decode_plain(&self.key, base, packet, out) {
                return Decoded::Ipv4;
            }
            if ether_type == [0x86, 0xdd] && v6::decode_plain(&self.key, base, packet, out) {
                return Decoded::Ipv6;
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
        if stack.tags > 0 {
            let vlans = [stack.vlan, 0];
            let path = Path { vlans, vlan_tags: stack.tags as u8, ..Path::default() };
            base.path = self.paths.number(&path);
            base.flags.insert(Flags::VLAN);
        }
        match network {
            Ok(Network::Ipv4(packet)) => {
                if !v4::decode_plain(&self.key, base, packet, out) {
                    *out = base;
                    v4::decode(&self.key, &mut self.fragments, packet, out);
                }
                Decoded::Ipv4
            }
            Ok(Network::Ipv6(packet)) => {
                if v6::decode_plain(&self.key, base, packet, out) {
                    return Decoded::Ipv6;
                }
                *out = base;
                match v6::decode(&self.key, &mut self.fragments, packet, out) {
                    Ok(()) => Decoded::Ipv6,
                    Err(reason) => Decoded::NonIp(reason),
                }
            }
            Err(reason) => {
                if let NonIp::EtherType(number) = reason {
                    base.dst_port = number;
                }
                *out = base;
                Decoded::NonIp(reason)
            }
        }
    }
}

/// What is known without looking at the frame.
#[inline(always)]
fn blank(ts_ns: u64, frame: Span<'_>) -> PacketRecord {
    let truncated = (frame.bytes.len() as u32) < frame.wire;
    let flags = if truncated { Flags::TRUNCATED } else { Flags(0) };
    PacketRecord { ts_ns, wire_len: frame.wire, flags, ..PacketRecord::EMPTY }
}
