//! The network layer: fills a record from an IP header, and says what lies behind it.
//!
//! Invariant: addresses and pair hash are written together or not at all
//! ([`Flags::BAD_HEADER`](crate::Flags::BAD_HEADER)).

pub(crate) mod v4;
pub(crate) mod v6;

use crate::fragments::{DatagramKey, FirstFragment, FragmentTable};
use crate::hash::HashKey;
use crate::record::{Flags, PacketRecord};
use crate::transport;
use crate::tunnel::Watched;

/// What one header is decoded with.
pub(crate) struct Context<'a> {
    pub(crate) key: &'a HashKey,
    pub(crate) fragments: &'a mut FragmentTable,
    /// UDP ports that are no common case.
    pub(crate) watched: &'a Watched,
    /// Tells the datagrams of one tunnel from those of another; 0 outside of any.
    pub(crate) scope: u32,
}

/// Where a fragment lies in its datagram.
#[derive(Clone, Copy)]
struct Fragment {
    key: DatagramKey,
    /// Not at the datagram's start.
    later: bool,
    /// Others follow it.
    more: bool,
}

/// Reads the ports of a first fragment, or finds those of a later one through the first.
/// `out.protocol` is that of `payload`, of which the header says that it has `len` bytes.
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
