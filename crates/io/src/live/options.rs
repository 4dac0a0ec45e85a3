//! Options for opening an interface.

use std::time::Duration;

/// Capture method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// AF_PACKET: copies every frame, like tcpdump. The host's network stack is not affected.
    #[default]
    Packet,
    /// AF_XDP: redirects received frames before the host's network stack, **which does not get them**. Use it for
    /// interfaces that serve monitoring only. Frames that the host sends are not captured.
    Xdp,
    /// DPDK: receives the frames of a device that DPDK controls. **The host does not get them.** Requires the feature
    /// `dpdk`. Cannot send.
    Dpdk,
}

/// Place where the XDP program runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Attach {
    /// In the driver. If the driver refuses, in the kernel's network stack.
    #[default]
    Auto,
    /// In the driver (native mode).
    Native,
    /// In the kernel's network stack (generic or SKB mode). Works with any driver, but is slower.
    Generic,
}

/// Options of [`open`](crate::live::open).
///
/// ```
/// use ringtap_io::live::{Method, Options};
///
/// let options = Options { method: Method::Xdp, memory: 256 << 20, ..Options::default() };
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Capture method; AF_PACKET by default.
    pub method: Method,
    /// Number of receivers. AF_PACKET: 1 to 256, 1 by default. Frames are distributed by a hash of their two IP
    /// addresses; frames that are not IP go to the first receiver. AF_XDP: must equal the number of receive queues of
    /// the interface; the network card distributes (RSS). DPDK: must equal the number of queues of a virtual device; a
    /// network card with RSS opens as many as requested.
    pub queues: Option<u16>,
    /// Memory for waiting frames of all queues, in bytes. 64 MiB by default. AF_XDP rounds down to a power of two per
    /// queue. DPDK uses up to 19 MiB per queue.
    pub memory: usize,
    /// Snapshot length: most bytes to capture of a frame. `None` captures whole frames.
    pub snap: Option<u32>,
    /// Whether to receive frames for other hosts; true by default.
    pub promiscuous: bool,
    /// AF_PACKET: whether to capture frames that the host sends, too; true by default. On the loopback interface each
    /// frame is captured once, with either value.
    pub outgoing: bool,
    /// Whether to report work that the sender left to the network card, in
    /// [`Frame::offload`](crate::live::Frame::offload). False by default. Only callers that forward frames need it.
    pub offload: bool,
    /// AF_PACKET: whether the network card timestamps frames. If it cannot, the kernel's timestamps are used and the
    /// receiver has a notice. False by default.
    pub hardware_time: bool,
    /// AF_PACKET: longest time that a frame waits for its block to fill. 1 ms to 10 s, 10 ms by default.
    pub block_timeout: Duration,
    /// AF_PACKET with several queues: seed of the address hash. Keep it secret from senders that can choose addresses.
    pub seed: u64,
    /// AF_XDP: place where the program runs.
    pub attach: Attach,
    /// AF_XDP: whether a capable driver writes frames directly to the receiver's memory; true by default.
    pub zero_copy: bool,
    /// AF_XDP: longest time of one busy poll, in which the receiving thread runs the driver when no frame waits. `None`
    /// turns busy polling off.
    pub busy_poll: Option<Duration>,
    /// AF_XDP: whether each queue can send, too: [`Receiver::take_sender`](crate::live::Receiver::take_sender). False by
    /// default. A [`Sender`](crate::live::Sender) of its own cannot use a queue that receives.
    pub sends: bool,
    /// DPDK: arguments of its environment (EAL). They replace the default memory arguments.
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
            sends: false,
            dpdk_arguments: Vec::new(),
        }
    }
}
