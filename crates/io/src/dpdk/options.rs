//! Options of opening a device.

/// Options of opening a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Number of receive queues; `None`: all queues of the device, or 1 if it can use any number.
    pub queues: Option<u16>,
    /// Bytes for waiting frames of all queues. Default 64 MiB; at most 8,192 buffers a queue are used.
    pub memory: usize,
    /// True (the default) if frames for other hosts are received.
    pub promiscuous: bool,
    /// Arguments for DPDK's environment, instead of the default ones for memory; used when the process opens its first
    /// device.
    pub arguments: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self { queues: None, memory: 64 << 20, promiscuous: true, arguments: Vec::new() }
    }
}
