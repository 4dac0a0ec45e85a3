//! How a device is opened.

/// How a device is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// How many receive queues; `None`: what the device has, or 1 where it would share out over any number.
    pub queues: Option<u16>,
    /// Bytes for frames that wait, over all queues. 64 MiB by default; more than 8,192 buffers a queue are never used.
    pub memory: usize,
    /// Whether frames for other hosts are received; true by default.
    pub promiscuous: bool,
    /// Arguments for DPDK's environment, in place of ours for memory; they count when the process opens its first
    /// device.
    pub arguments: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self { queues: None, memory: 64 << 20, promiscuous: true, arguments: Vec::new() }
    }
}
