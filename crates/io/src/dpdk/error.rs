//! Why a device could not be opened, and what to do about it.

use std::io;

use thiserror::Error;

use crate::dpdk::queues::Queues;

/// Why a device could not be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// This names nothing.
    #[error(
        "invalid DPDK device {name:?}: use the address of a card (0000:03:00.0) or a virtual device \
         (net_pcap0,rx_pcap=FILE or net_af_packet0,iface=eth0)"
    )]
    Name {
        /// What was asked for.
        name: String,
    },
    /// DPDK's environment does not start. It is not tried again in this process.
    #[error("DPDK does not start: {why}")]
    Environment {
        /// What it said.
        why: String,
    },
    /// DPDK does not find the device, or no driver takes it.
    #[error("DPDK cannot take {name}: {why}")]
    Attach {
        /// What was asked for.
        name: String,
        /// What DPDK said.
        why: String,
    },
    /// Not so many queues.
    #[error("{name}: {there} can be received by, not {asked}")]
    Queues {
        /// The device.
        name: String,
        /// How many were asked for.
        asked: u16,
        /// How many there may be.
        there: Queues,
    },
    /// The memory that was given is too little for anything.
    #[error("{asked} bytes for waiting frames are too few; {needed} are the least here")]
    TooLittleMemory {
        /// What was given.
        asked: usize,
        /// The least.
        needed: usize,
    },
    /// The device does not do as it is told.
    #[error("{name}: {doing}: {why}")]
    Port {
        /// The device.
        name: String,
        /// What failed.
        doing: &'static str,
        /// What DPDK said.
        why: String,
    },
}

/// A number's meaning, and what was said beside it.
pub(crate) fn words(error: &io::Error, said: &str) -> String {
    if said.is_empty() { error.to_string() } else { format!("{error} ({said})") }
}
