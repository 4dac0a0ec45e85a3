//! Errors of opening a device, with advice.

use std::io;

use thiserror::Error;

use crate::dpdk::queues::Queues;

/// Why a device could not be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The name is not that of a device.
    #[error(
        "invalid DPDK device {name:?}: use the address of a card (0000:03:00.0) or a virtual device \
         (net_pcap0,rx_pcap=FILE or net_af_packet0,iface=eth0)"
    )]
    Name {
        /// The requested name.
        name: String,
    },
    /// DPDK's environment does not start. It is not tried again in this process.
    #[error("DPDK does not start: {why}")]
    Environment {
        /// DPDK's message.
        why: String,
    },
    /// DPDK does not find the device, or no driver supports it.
    #[error("DPDK cannot take {name}: {why}")]
    Attach {
        /// The requested name.
        name: String,
        /// DPDK's message.
        why: String,
    },
    /// Unsupported number of queues.
    #[error("invalid number of queues {requested}: {name} supports {supported}")]
    Queues {
        /// Name of the device.
        name: String,
        /// Requested number.
        requested: u16,
        /// Supported numbers.
        supported: Queues,
    },
    /// Too little memory.
    #[error("{requested} bytes are too few for waiting frames: use at least {needed}")]
    TooLittleMemory {
        /// Requested bytes.
        requested: usize,
        /// Least bytes.
        needed: usize,
    },
    /// An operation of the device failed.
    #[error("{name}: {doing}: {why}")]
    Port {
        /// Name of the device.
        name: String,
        /// The operation.
        doing: &'static str,
        /// DPDK's message.
        why: String,
    },
}

/// The message of an error number, and DPDK's log lines.
pub(crate) fn words(error: &io::Error, log: &str) -> String {
    if log.is_empty() { error.to_string() } else { format!("{error} ({log})") }
}
