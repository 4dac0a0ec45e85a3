//! `Stack`: what the removed headers say, and their number.

use crate::path::Path;
use crate::reason::NonIp;

/// State of the headers removed so far.
#[derive(Clone, Copy, Default)]
pub(crate) struct Stack {
    /// Destination and source of the outermost Ethernet header; zeros without one.
    pub(crate) macs: [u8; 12],
    /// Number of VLAN tags.
    pub(crate) vlan_tags: u8,
    /// Identifiers of the outermost two tags.
    vlans: [u16; 2],
    /// The top MPLS label.
    pub(crate) mpls_label: Option<u32>,
    /// The label below it.
    mpls_second_label: Option<u32>,
    pub(super) depth: u32,
    in_tunnel: bool,
    /// Number of headers that contain the link type of the next header.
    wrappers: u32,
}

impl Stack {
    /// Most nested tags, labels and inner frames; real networks have fewer.
    const DEPTH_MAX: u32 = 32;
    /// Most headers that capture programs put in front of a frame.
    const WRAPPERS_MAX: u32 = 4;

    /// Headers in a tunnel, where a frame may be behind others.
    pub(crate) fn in_tunnel() -> Self {
        Self { in_tunnel: true, ..Self::default() }
    }

    /// Stores Ethernet addresses, only those of the outermost header; in a tunnel those of the first frame.
    #[inline(always)]
    pub(super) fn ethernet(&mut self, header: &[u8; 14]) {
        let [macs @ .., _, _] = header;
        let is_outermost = self.depth == 0 && self.vlan_tags == 0;
        if is_outermost || self.in_tunnel && self.macs == [0; 12] {
            self.macs = *macs;
        }
    }

    /// Stores a VLAN tag: the identifiers of the outermost two are kept.
    pub(super) fn tag(&mut self, tag: [u8; 2]) {
        if let Some(vlan) = self.vlans.get_mut(usize::from(self.vlan_tags)) {
            *vlan = u16::from_be_bytes(tag) & 0x0fff;
        }
        // No overflow, because the nesting is limited.
        self.vlan_tags += 1;
    }

    /// Stores an MPLS label, by its place in its stack: the upper two of the outermost stack are kept.
    pub(super) fn label(&mut self, is_outermost: bool, place: u32, label: u32) {
        match place {
            0 if is_outermost => self.mpls_label = Some(label),
            1 if is_outermost => self.mpls_second_label = Some(label),
            _ => {}
        }
    }

    /// The path, as far as the link layer defines it.
    pub(crate) fn path(&self) -> Path {
        Path {
            macs: from_to(self.macs),
            outer_macs: [[0; 6]; 2],
            vlan_tags: self.vlan_tags,
            vlans: self.vlans,
            mpls_label: self.mpls_label,
            mpls_second_label: self.mpls_second_label,
            tunnel: None,
            ingress: 0,
        }
    }

    /// Counts a further header in front of another link type.
    pub(super) fn wrapped(&mut self) -> Result<(), NonIp> {
        self.wrappers += 1;
        if self.wrappers > Self::WRAPPERS_MAX { Err(NonIp::TooDeep) } else { Ok(()) }
    }

    /// Counts a further nested header.
    pub(super) fn deeper(&mut self) -> Result<(), NonIp> {
        self.depth += 1;
        if self.depth > Self::DEPTH_MAX { Err(NonIp::TooDeep) } else { Ok(()) }
    }
}

/// Source and destination of the addresses of a frame.
pub(crate) fn from_to(macs: [u8; 12]) -> [[u8; 6]; 2] {
    let [d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5] = macs;
    [[s0, s1, s2, s3, s4, s5], [d0, d1, d2, d3, d4, d5]]
}
