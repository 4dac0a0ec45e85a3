//! The fields of a stored record.

use ringtap_wire::{Path, Tunnel, TunnelKind};

/// Bytes of a path.
pub(crate) const PATH_LEN: usize = 75;

/// The bytes of a path without its interface.
pub(crate) fn path_bytes(path: &Path) -> [u8; PATH_LEN] {
    let mut out = [0; PATH_LEN];
    let mut at = 0;
    let mut put = |bytes: &[u8]| {
        out[at..at + bytes.len()].copy_from_slice(bytes);
        at += bytes.len();
    };
    put(path.macs.as_flattened());
    put(&[path.vlan_tags]);
    path.vlans.iter().for_each(|vlan| put(&vlan.to_le_bytes()));
    put(&path.mpls_label.map_or(u32::MAX, |label| label).to_le_bytes());
    if let Some(tunnel) = &path.tunnel {
        put(&[tunnel.kind as u8 + 1, u8::from(tunnel.ipv6)]);
        put(&tunnel.src);
        put(&tunnel.dst);
        put(&tunnel.id.to_le_bytes());
        put(path.outer_macs.as_flattened());
    }
    let second = path.mpls_second_label.map_or(0, |label| label + 1);
    out[PATH_LEN - 4..].copy_from_slice(&second.to_le_bytes());
    out
}

/// Reads fields of fixed lengths; beyond the end there are zeros.
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl Fields<'_> {
    pub(crate) fn take<const N: usize>(&mut self) -> [u8; N] {
        let (taken, rest) = self.0.split_first_chunk().map_or(([0; N], &[][..]), |(a, b)| (*a, b));
        self.0 = rest;
        taken
    }

    /// A path, as [`path_bytes`] returned it; `None` if no path has such bytes.
    pub(crate) fn path(&mut self) -> Option<Path> {
        let mut path = Path { macs: [self.take(), self.take()], ..Path::default() };
        [path.vlan_tags] = self.take();
        path.vlans = self.words();
        let label = u32::from_le_bytes(self.take());
        path.mpls_label = (label != u32::MAX).then_some(label);
        let [kind, ipv6] = self.take();
        let tunnel = Tunnel {
            kind: *TunnelKind::ALL.get(usize::from(kind.saturating_sub(1)))?,
            ipv6: ipv6 != 0,
            src: self.take(),
            dst: self.take(),
            id: u32::from_le_bytes(self.take()),
        };
        path.tunnel = (kind > 0).then_some(tunnel);
        path.outer_macs = [self.take(), self.take()];
        path.mpls_second_label = u32::from_le_bytes(self.take()).checked_sub(1);
        Some(path)
    }

    pub(crate) fn words<const N: usize>(&mut self) -> [u16; N] {
        std::array::from_fn(|_| u16::from_le_bytes(self.take()))
    }
}
