//! A port: the frames of one EtherType of an interface, received and sent with AF_XDP.
//!
//! ```text
//!  interface ─▶ program ─┬─ this EtherType ─▶ socket of the queue ─▶ Receiver
//!                        └─ others ─▶ the host's network stack
//!  interface ◀──────────────────────────── socket of queue 0 ◀─ PortSender
//! ```
//!
//! A frame with a VLAN tag in it has the EtherType of the tag.

use super::error::OpenError;
use super::options::Options;
use super::port_sender::PortSender;
use super::receiver::{Receiver, open_port};

/// An interface open for the frames of one EtherType.
pub struct Port {
    /// One receiver for each receive queue. The first holds the notices.
    pub receivers: Vec<Receiver>,
    /// Sends on queue 0.
    pub sender: PortSender,
}

impl Port {
    /// Opens the interface called `name` for the frames of `ethertype`, with AF_XDP; the host gets
    /// all others. [`Options::method`] is not used.
    ///
    /// # Errors
    /// As for [`open`](super::open).
    pub fn open(name: &str, ethertype: u16, options: &Options) -> Result<Self, OpenError> {
        let (receivers, sender) = open_port(name, ethertype, options)?;
        Ok(Self { receivers, sender })
    }
}
