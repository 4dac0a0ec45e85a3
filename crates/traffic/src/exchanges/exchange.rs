//! An exchange: its protocol, hosts and properties.

use super::names::Name;
use crate::address::Address;

/// The protocol of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Tls,
    Quic,
    Http,
    Ssh,
    Dns,
}

/// The hosts and properties of an exchange.
#[derive(Clone, Debug)]
pub(super) struct Exchange {
    pub(super) protocol: Protocol,
    pub(super) client: Address,
    pub(super) server: Address,
    pub(super) client_port: u16,
    pub(super) vlan: u16,
    pub(super) ipv6: bool,
    pub(super) name: u32,
    /// A long hello or request; a name that does not exist.
    pub(super) special: bool,
    /// From the observer to the client and back, and to the server and back.
    pub(super) rtt_ns: [u64; 2],
    pub(super) salt: u64,
}

impl Exchange {
    pub(super) fn name(&self) -> Name {
        Name(self.name)
    }

    pub(super) fn long(&self) -> bool {
        self.special && self.protocol != Protocol::Dns
    }

    pub(super) fn is_missing(&self) -> bool {
        self.special && self.protocol == Protocol::Dns
    }

    pub(super) fn is_tcp(&self) -> bool {
        matches!(self.protocol, Protocol::Tls | Protocol::Http | Protocol::Ssh)
    }

    pub(super) fn server_port(&self) -> u16 {
        match self.protocol {
            Protocol::Tls | Protocol::Quic => 443,
            Protocol::Http => 80,
            Protocol::Ssh => 22,
            Protocol::Dns => 53,
        }
    }
}
