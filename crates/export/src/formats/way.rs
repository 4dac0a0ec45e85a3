//! The way of a flow in the direction of its key.
//!
//! A record has the way of the flow's first packet. Where that packet was the answer to one not seen, the key was
//! turned round, and what has a direction in the way must be turned with it.

use ringtap_flow::{FlowRecord, Initiator, IpVersion, Path, Tunnel, TunnelKind};

/// The way of the initiator's packets: addresses of the link and of the tunnel as those of the key.
pub(crate) fn way(record: &FlowRecord) -> Path {
    let mut path = record.path;
    if record.initiator == Initiator::SynAck {
        path.macs.swap(0, 1);
        if let Some(tunnel) = &mut path.tunnel {
            std::mem::swap(&mut tunnel.src, &mut tunnel.dst);
        }
    }
    path
}

/// Both Ethernet addresses, if the link has any.
pub(crate) fn macs(path: &Path) -> Option<&[[u8; 6]; 2]> {
    (path.macs != [[0; 6]; 2]).then_some(&path.macs)
}

/// The identifiers of the VLAN tags that are known, outermost first.
pub(crate) fn vlans(path: &Path) -> &[u16] {
    &path.vlans[..usize::from(path.vlan_tags).min(path.vlans.len())]
}

pub(crate) const fn outer_version(tunnel: &Tunnel) -> IpVersion {
    if tunnel.ipv6 { IpVersion::V6 } else { IpVersion::V4 }
}

/// The protocol of a tunnel's outer header.
pub(crate) const fn outer_protocol(kind: TunnelKind) -> u8 {
    match kind {
        TunnelKind::IpIp => 4,
        TunnelKind::SixInFour => 41,
        TunnelKind::Gre | TunnelKind::Erspan => 47,
        TunnelKind::Vxlan | TunnelKind::Geneve | TunnelKind::GtpU | TunnelKind::Teredo => 17,
    }
}
