//! What a receiver lends.

use ringtap_wire::LinkType;

use crate::live::offload::Offload;

/// One received frame, where the kernel or the driver put it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Time of arrival, nanoseconds since 1970-01-01 UTC. AF_PACKET: stamped by the kernel or the
    /// hardware, frame by frame. AF_XDP and DPDK: the clock when the burst was taken.
    pub ts_ns: u64,
    /// What the first byte of `data` begins.
    pub link: LinkType,
    /// Bytes on the wire, without the check sequence. A VLAN tag that was put back counts.
    pub original_len: u32,
    /// Captured bytes.
    pub data: &'a [u8],
    /// What is missing before the frame may be sent. [`Offload::Done`] unless
    /// [`Options::offload`](crate::live::Options::offload) asks for it.
    pub offload: Offload,
}
