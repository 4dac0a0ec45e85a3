//! The path of a flow in the direction of its key.
//!
//! A record has the path of the flow's first packet. If that packet was an answer, the key was reversed, and the fields
//! of the path that have a direction must be reversed, too.

use ringtap_flow::{FlowRecord, Initiator, IpVersion, Path, Tunnel, TunnelKind};

/// The path of the initiator's packets: link and tunnel addresses in the direction of the key.
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

/// The known VLAN identifiers, outermost first.
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
