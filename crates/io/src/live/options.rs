//! What a receiver is asked to be.

use std::time::Duration;

/// How frames are taken from an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// AF_PACKET: a copy of every frame, as tcpdump takes it. The host goes on as before.
    #[default]
    Packet,
    /// AF_XDP: received frames, taken before the host's network stack, **which sees none of them**.
    /// For interfaces that are there for monitoring. What the host sends is not seen.
    Xdp,
    /// DPDK: frames of a device that DPDK has taken over, **of which the host sees nothing**. Only where this crate was
    /// built with it (feature `dpdk`); not for sending.
    Dpdk,
}

/// Where an XDP program runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Attach {
    /// In the driver; where that is refused, in the stack.
    #[default]
    Auto,
    /// In the driver (native).
    Native,
    /// In the stack, for any driver (generic, SKB mode). Slower.
    Generic,
}

/// How [`open`](crate::live::open) opens an interface.
///
/// ```
/// use ringtap_io::live::{Method, Options};
///
/// let options = Options { method: Method::Xdp, memory: 256 << 20, ..Options::default() };
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// By default AF_PACKET.
    pub method: Method,
    /// How many receivers share the frames. AF_PACKET: 1 unless given, at most 256; frames are shared
    /// out by their pair of IP addresses, those that are not IP go to the first. AF_XDP: one for each
    /// receive queue of the interface, no other number; the network card shares out (RSS). DPDK: one
    /// for each queue of a virtual device; of a card that shares out as many as are asked for.
    pub queues: Option<u16>,
    /// Bytes for frames that wait, over all queues. 64 MiB by default. AF_XDP rounds down to a power
    /// of two per queue, DPDK uses up to 19 MiB per queue.
    pub memory: usize,
    /// Of longer frames only so many bytes are captured; `None` takes them whole.
    pub snap: Option<u32>,
    /// Whether frames for other hosts are received; true by default.
    pub promiscuous: bool,
    /// AF_PACKET: whether frames that the host sends are seen as well; true by default. On the
    /// loopback interface frames are never seen twice, whatever this says.
    pub outgoing: bool,
    /// Whether frames tell what their sender left to the network card ([`Frame::offload`](crate::live::Frame::offload)); false
    /// by default. Only those who forward frames need it.
    pub offload: bool,
    /// AF_PACKET: whether the network card shall stamp frames. Where it does not, the kernel's
    /// stamps are used, and a notice says so.
    pub hardware_time: bool,
    /// AF_PACKET: frames wait no longer than this for others to fill a block with; at least 1 ms.
    /// 10 ms by default.
    pub block_timeout: Duration,
    /// AF_PACKET with several queues: what the hash of addresses starts from. A sender that can choose
    /// addresses should not know it.
    pub seed: u64,
    /// AF_XDP: where the program runs.
    pub attach: Attach,
    /// AF_XDP: whether a driver that can shall put frames into our memory itself; true by default.
    pub zero_copy: bool,
    /// AF_XDP: has the receiving thread do the driver's work when no frame waits, for up to so long.
    pub busy_poll: Option<Duration>,
    /// DPDK: arguments for its environment, in place of ours for memory.
    pub dpdk_arguments: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            method: Method::Packet,
            queues: None,
            memory: 64 << 20,
            snap: None,
            promiscuous: true,
            outgoing: true,
            offload: false,
            hardware_time: false,
            block_timeout: Duration::from_millis(10),
            seed: 0,
            attach: Attach::Auto,
            zero_copy: true,
            busy_poll: None,
            dpdk_arguments: Vec::new(),
        }
    }
}
