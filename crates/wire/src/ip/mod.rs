//! The network layer: fills the record from the outermost IP header.

pub(crate) mod v4;
pub(crate) mod v6;

use crate::fragments::{DatagramKey, FirstFragment, FragmentTable};
use crate::record::{Flags, PacketRecord};
use crate::transport;

/// Where a fragment lies in its datagram.
#[derive(Clone, Copy)]
pub(crate) struct Fragment {
    pub(crate) key: DatagramKey,
    /// Not at the datagram's start.
    pub(crate) later: bool,
    /// Others follow it.
    pub(crate) more: bool,
}

/// Reads the ports of a fragment, or finds them through the first one.
#[cold]
pub(crate) fn fragment(
    table: &mut FragmentTable,
    fragment: Fragment,
    payload: &[u8],
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
        }
        return;
    }
    let known = transport::read(payload, out);
    if !more {
        return;
    }
    if known {
        let (src_port, dst_port) = (out.src_port, out.dst_port);
        table.insert(key, out.ts_ns, FirstFragment { src_port, dst_port, protocol: out.protocol });
    } else {
        table.remove(key);
    }
}
