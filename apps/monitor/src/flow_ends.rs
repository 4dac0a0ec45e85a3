//! The ends of a flow, as rows and alerts have them.

use std::net::IpAddr;

use ringtap_flow::FlowKey;
use serde::Serialize;

/// The addresses, ports and protocol of a flow.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct FlowEnds {
    /// The sender.
    pub source: IpAddr,
    /// Its port.
    pub source_port: u16,
    /// The receiver.
    pub destination: IpAddr,
    /// Its port.
    pub destination_port: u16,
    /// IP protocol number.
    pub protocol: u8,
}

impl FlowEnds {
    pub(crate) fn of(key: &FlowKey) -> Self {
        Self {
            source: key.source(),
            source_port: key.src_port,
            destination: key.destination(),
            destination_port: key.dst_port,
            protocol: key.protocol,
        }
    }
}
