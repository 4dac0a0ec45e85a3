//! How a queue of an interface is received, in words.

use std::fmt;

/// What a receiver turned out to be; shows itself in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// The interface's name when it was opened.
    pub interface: String,
    /// Which queue this is, from 0.
    pub queue: u16,
    /// How many there are.
    pub queues: u16,
    /// How it receives.
    pub path: Path,
    /// Bytes for waiting frames, of this queue.
    pub memory: usize,
}

/// How frames come to us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Path {
    /// AF_PACKET.
    Packet {
        /// Whether the network card stamps frames.
        hardware_time: bool,
    },
    /// AF_XDP.
    Xdp {
        /// The program runs in the driver, not in the stack.
        native: bool,
        /// The network card writes to our memory itself.
        zero_copy: bool,
        /// That memory lies in reserved huge pages.
        huge_pages: bool,
    },
    /// DPDK.
    Dpdk {
        /// The driver's name.
        driver: String,
    },
}

impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { interface, queue, queues, path, memory } = self;
        write!(f, "{interface}, queue {} of {queues}: ", queue + 1)?;
        match path {
            Path::Packet { hardware_time } => {
                let clock = if *hardware_time { "hardware" } else { "kernel" };
                write!(f, "AF_PACKET, {clock} time")?;
            }
            Path::Xdp { native, zero_copy, huge_pages } => {
                let mode = if *native { "native" } else { "generic" };
                let copy = if *zero_copy { "zero-copy" } else { "copy" };
                let pages = if *huge_pages { ", huge pages" } else { "" };
                write!(f, "AF_XDP, {mode}, {copy}{pages}")?;
            }
            Path::Dpdk { driver } => write!(f, "DPDK, {driver}")?,
        }
        write!(f, ", {} KiB", memory >> 10)
    }
}
