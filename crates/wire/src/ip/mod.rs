//! The network layer: fills a record from an IP header, and returns its payload.
//!
//! Invariant: addresses and pair hash are written together or not at all
//! ([`Flags::BAD_HEADER`](crate::Flags::BAD_HEADER)).

pub(crate) mod length;
pub(crate) mod v4;
pub(crate) mod v6;

use std::cell::Cell;

use crate::fragments::{DatagramKey, FirstFragment, FragmentTable};
use crate::hash::HashKey;
use crate::record::{Flags, PacketRecord};
use crate::segment::Segment;
use crate::transport;
use crate::tunnel::Watched;

/// The decoder's state that is needed for one header.
pub(crate) struct Context<'a> {
    pub(crate) key: &'a HashKey,
    pub(crate) fragments: &'a mut FragmentTable,
    /// UDP ports that need more than the common case.
    pub(crate) watched: &'a Watched,
    /// Separates the datagrams of different tunnels; 0 outside tunnels.
    pub(crate) scope: u32,
    /// Receives the segment of a TCP packet; `None` if segments are not read.
    pub(crate) segments: Option<&'a Cell<Segment>>,
}

impl Context<'_> {
    /// Reads the segment of an unfragmented TCP packet, if segments are read; `len` is the length of header and data.
    #[inline(always)]
    fn read_segment(&self, payload: &[u8], len: u32, out: &mut PacketRecord) {
        if let Some(last) = self.segments
            && out.protocol == transport::TCP
            && let Some(segment) = transport::segment(payload, len)
        {
            last.set(segment);
            out.flags.insert(Flags::SEGMENT);
        }
    }
}

/// The bytes behind the transport header, as positions.
#[derive(Clone, Copy, Default)]
pub(crate) struct Data {
    pub(crate) at: u32,
    /// The end according to the IP header.
    pub(crate) end: u32,
}

impl Data {
    /// The positions behind a header of this length.
    #[inline(always)]
    pub(crate) fn behind(self, header_len: usize) -> Self {
        Self { at: self.at + header_len as u32, end: self.end + header_len as u32 }
    }
}

/// The position of a fragment in its datagram.
#[derive(Clone, Copy)]
struct Fragment {
    key: DatagramKey,
    /// Its offset is not 0.
    later: bool,
    /// Whether further fragments follow.
    more: bool,
}

/// Reads the ports of a first fragment, or looks up those of a later one. `out.protocol` is that of `payload`, whose
/// length is `len` bytes according to the header.
#[cold]
fn fragment(
    table: &mut FragmentTable,
    fragment: Fragment,
    payload: &[u8],
    len: u32,
    out: &mut PacketRecord,
) {
    let Fragment { key, later, more } = fragment;
    out.flags.insert(Flags::FRAGMENT);
    if later {
        out.flags.insert(Flags::LATER_FRAGMENT);
        if let Some(first) = table.find(key, out.ts_ns) {
            out.src_port = first.src_port;
            out.dst_port = first.dst_port;
            out.protocol = first.protocol;
            out.flags.insert(Flags::PORTS_FROM_FIRST);
            if matches!(out.protocol, transport::TCP | transport::UDP) {
                out.flags.insert(Flags::DATA);
            }
        }
        return;
    }
    let known = transport::read(payload, len, out);
    if more && known {
        let (src_port, dst_port) = (out.src_port, out.dst_port);
        table.insert(key, out.ts_ns, FirstFragment { src_port, dst_port, protocol: out.protocol });
    } else if more {
        table.remove(key);
    }
}
