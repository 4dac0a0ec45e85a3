//! Text description of an open receiver.

use std::fmt;

/// Properties of an open receiver. `Display` writes them as one line of text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// Name of the interface when it was opened.
    pub interface: String,
    /// Index of the queue, from 0.
    pub queue: u16,
    /// Number of queues.
    pub queues: u16,
    /// Capture path and its properties.
    pub path: Path,
    /// Memory of this queue for waiting frames, in bytes.
    pub memory: usize,
}

/// Path of the frames from the interface to the receiver. `Display` writes it as words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Path {
    /// AF_PACKET.
    Packet {
        /// Whether the network card timestamps frames; otherwise the kernel does.
        hardware_time: bool,
    },
    /// AF_XDP.
    Xdp {
        /// Whether the program runs in the driver; otherwise in the kernel's network stack.
        native: bool,
        /// Whether the network card writes frames directly to the receiver's memory.
        zero_copy: bool,
        /// Whether that memory is in reserved huge pages.
        huge_pages: bool,
    },
    /// DPDK.
    Dpdk {
        /// Name of the driver.
        driver: String,
    },
}

impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { interface, queue, queues, path, memory } = self;
        write!(f, "{interface}, queue {} of {queues}: {path}, {} KiB", queue + 1, memory >> 10)
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packet { hardware_time } => {
                let clock = if *hardware_time { "hardware" } else { "kernel" };
                write!(f, "AF_PACKET, {clock} time")
            }
            Self::Xdp { native, zero_copy, huge_pages } => {
                let mode = if *native { "native" } else { "generic" };
                let copy = if *zero_copy { "zero-copy" } else { "copy" };
                let pages = if *huge_pages { ", huge pages" } else { "" };
                write!(f, "AF_XDP, {mode}, {copy}{pages}")
            }
            Self::Dpdk { driver } => write!(f, "DPDK, {driver}"),
        }
    }
}
