//! The network layer: fills the record from the outermost IP header.
//!
//! Invariant: addresses and pair hash are written together or not at all
//! ([`Flags::BAD_HEADER`](crate::Flags::BAD_HEADER)).

pub(crate) mod v4;
pub(crate) mod v6;

use crate::fragments::{DatagramKey, FirstFragment, FragmentTable};
use crate::record::{Flags, PacketRecord};
use crate::transport;

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
/// `out.protocol` is that of `payload`.
#[cold]
fn fragment(table: &mut FragmentTable, fragment: Fragment, payload: &[u8], out: &mut PacketRecord) {
    let Fragment { key, later, more } = fragment;
    out.flags.insert(Flags::FRAGMENT);
    if later {
        out.flags.insert(Flags::LATER_FRAGMENT);
        if let Some(first) = table.find(key, out.ts_ns) {
            out.src_port = first.src_port;
            out.dst_port = first.dst_port;
            out.protocol = first.protocol;
            out.flags.insert(Flags::PORTS_FROM_FIRST);
        }
        return;
    }
    let known = transport::read(payload, out);
    if more && known {
        let (src_port, dst_port) = (out.src_port, out.dst_port);
        table.insert(key, out.ts_ns, FirstFragment { src_port, dst_port, protocol: out.protocol });
    } else if more {
        table.remove(key);
    }
}
