//! A received frame, and the room for one.

use ringtap_wire::LinkType;

use crate::live::offload::Offload;

/// One received frame, borrowed in place from the memory of the kernel or the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Arrival time in nanoseconds since 1970-01-01 UTC. AF_PACKET: timestamp of the frame by the kernel or the network
    /// card. AF_XDP and DPDK: time of the `burst` call.
    pub ts_ns: u64,
    /// Link type of `data`.
    pub link: LinkType,
    /// Length on the wire in bytes, without the frame check sequence, with a restored VLAN tag.
    pub original_len: u32,
    /// Captured bytes.
    pub data: &'a [u8],
    /// Work to do before the frame can be sent. [`Offload::Done`] unless
    /// [`Options::offload`](crate::live::Options::offload) is set.
    pub offload: Offload,
}

/// Room for a received frame, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Room {
    /// Of AF_PACKET: longer frames may be truncated.
    Block(usize),
    /// Of AF_XDP: longer frames are dropped.
    Buffer(usize),
}
