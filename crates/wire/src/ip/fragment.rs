//! Ports of fragments.

use crate::fragments::{DatagramKey, FirstFragment, FragmentTable};
use crate::record::{Flags, PacketRecord};
use crate::transport;

/// The position of a fragment in its datagram.
#[derive(Clone, Copy)]
pub(super) struct Fragment {
    pub(super) key: DatagramKey,
    /// Its offset is not 0.
    pub(super) later: bool,
    /// Whether further fragments follow.
    pub(super) more: bool,
}

/// Reads the ports of a first fragment, or looks up those of a later one. `out.protocol` is that of `payload`, whose
/// length is `len` bytes according to the header.
#[cold]
pub(super) fn read(
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
        set_irregular(out);
        return;
    }
    let known = transport::read(payload, len, out);
    set_irregular(out);
    if more && known {
        let (src_port, dst_port) = (out.src_port, out.dst_port);
        table.insert(key, out.ts_ns, FirstFragment { src_port, dst_port, protocol: out.protocol });
    } else if more {
        table.remove(key);
    }
}

fn set_irregular(out: &mut PacketRecord) {
    if out.protocol == transport::UDP {
        out.flags.insert(Flags::IRREGULAR);
    }
}
