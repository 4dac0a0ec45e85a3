//! What a transport is, and where a URL leads.

use std::fmt;
use std::io;

use super::host::host_and_port;
use super::link::Link;
use crate::settings::Tls;

/// A transport, as a row of the list.
pub(crate) struct Transport {
    /// The name in URLs, behind the protocol: `ipfix+tcp://`.
    pub(crate) name: &'static str,
    /// Messages arrive whole, in order, or the link breaks. Else each is a datagram, which may be lost.
    pub(crate) is_stream: bool,
    pub(crate) is_encrypted: bool,
    /// False in a program without its feature.
    pub(crate) is_built: bool,
    /// What an address is, for errors.
    pub(crate) form: &'static str,
    /// Reads the address behind `://`, with a default port.
    pub(crate) address: fn(&str, Option<u16>) -> Option<Address>,
    /// Prepares a link.
    pub(crate) link: fn(&Address, &Tls) -> io::Result<Box<dyn Link>>,
}

/// The form of hosts.
pub(super) const HOST: &str =
    "HOST:PORT, as in ipfix://collector.example:4739 or netflow9://[::1]:2055";

/// The form of paths.
pub(super) const PATH: &str = "an absolute path, as in ipfix+local:///run/collector";

/// A host and its port, or a path with port 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl Address {
    /// Reads `HOST:PORT`.
    pub(super) fn of_host(text: &str, default: Option<u16>) -> Option<Self> {
        host_and_port(text, default).map(|(host, port)| Self { host, port })
    }
}

/// Where a URL leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) transport: &'static Transport,
    pub(crate) address: Address,
}

impl Route {
    /// Reads an address; `None` if the transport has none like it.
    pub(crate) fn new(
        transport: &'static Transport,
        text: &str,
        default: Option<u16>,
    ) -> Option<Self> {
        (transport.address)(text, default).map(|address| Self { transport, address })
    }

    pub(crate) fn link(&self, tls: &Tls) -> io::Result<Box<dyn Link>> {
        (self.transport.link)(&self.address, tls)
    }
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Transport {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Transport {}
