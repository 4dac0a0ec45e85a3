//! The remote end of a face, and its text form in NFD's syntax.
//!
//! | text | remote end |
//! |---|---|
//! | `udp://192.0.2.1:6363`, `udp://[2001:db8::1]` | a neighbour over UDP; the default port is 6363 |
//! | `udp://224.0.23.170:56363/eth0` | all neighbours on an interface, by UDP multicast; the default port is 56363 |
//! | `udp://224.0.23.170` | the same, on the first interface that has the group |
//! | `tcp://192.0.2.1:6363`, `tcp://[2001:db8::1]` | a neighbour over TCP; the default port is 6363 |
//! | `ether://eth0` | all neighbours on an Ethernet, by the group address 01:00:5e:00:17:aa |
//! | `ether://eth0/02:00:00:00:00:01` | one neighbour on an Ethernet |

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::str::FromStr;

use crate::packets::UDP_PORT;

/// An Ethernet address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// The group address of all NDN forwarders on an Ethernet.
    pub const NDN_GROUP: Self = Self([0x01, 0x00, 0x5e, 0x00, 0x17, 0xaa]);

    /// Whether it is the address of a group, or of all.
    pub(crate) fn is_group(self) -> bool {
        self.0[0] & 1 != 0
    }
}

/// The remote end of a face.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Remote {
    /// A neighbour over UDP.
    Udp(SocketAddr),
    /// All neighbours on an interface, by UDP multicast.
    Multicast {
        /// The address and port of the group.
        group: SocketAddr,
        /// The name or address of the interface; `None`: the first that has the group.
        interface: Option<String>,
    },
    /// A neighbour over TCP.
    Tcp(SocketAddr),
    /// A neighbour that has connected by WebSocket.
    WebSocket(SocketAddr),
    /// Neighbours on an Ethernet: one, or all of them.
    Ethernet {
        /// The name of the interface.
        interface: String,
        /// The neighbour's address; `None`: the group.
        to: Option<Mac>,
    },
    /// A program on this machine, over a Unix socket. Programs are numbered in order of connection.
    Program(u64),
}

/// The IPv4 multicast group of NDN forwarders.
pub const MULTICAST_GROUP: Ipv4Addr = Ipv4Addr::new(224, 0, 23, 170);
/// The port of multicast groups of NDN forwarders.
pub const MULTICAST_PORT: u16 = 56363;

impl Remote {
    /// Parses a remote end with a numeric address. Does not block, as parsing a host name may.
    pub fn from_numeric(text: &str) -> Result<Self, RemoteError> {
        parse(text, numeric).ok_or_else(|| RemoteError { text: text.into() })
    }
}

/// The text is not a valid remote end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid remote {text:?}: use udp://192.0.2.1:6363, tcp://192.0.2.1:6363, ether://eth0 or ether://eth0/02:00:00:00:00:01"
)]
pub struct RemoteError {
    /// The invalid text.
    pub text: String,
}

impl FromStr for Remote {
    type Err = RemoteError;

    /// Parses a remote end. Resolves host names, which may block.
    fn from_str(text: &str) -> Result<Self, RemoteError> {
        parse(text, resolved).ok_or_else(|| RemoteError { text: text.into() })
    }
}

/// Returns the addresses of a text with host and port.
type Resolve = fn(&str) -> Vec<SocketAddr>;

/// The addresses of a host name or a numeric address.
fn resolved(text: &str) -> Vec<SocketAddr> {
    text.to_socket_addrs().map(Iterator::collect).unwrap_or_default()
}

/// The address, if it is numeric.
fn numeric(text: &str) -> Vec<SocketAddr> {
    text.parse().into_iter().collect()
}

fn parse(text: &str, resolve: Resolve) -> Option<Remote> {
    let (scheme, rest) = text.split_once("://")?;
    match scheme {
        "udp" | "udp4" | "udp6" => udp(&scheme[3..], rest, resolve),
        "tcp" | "tcp4" | "tcp6" => address(&scheme[3..], rest, UDP_PORT, resolve).map(Remote::Tcp),
        "ether" => {
            let (interface, to) = match rest.split_once('/') {
                Some((interface, mac)) => (interface, Some(mac.parse::<Mac>().ok()?)),
                None => (rest, None),
            };
            let to = to.filter(|&mac| mac != Mac::NDN_GROUP);
            (!interface.is_empty()).then(|| Remote::Ethernet { interface: interface.into(), to })
        }
        _ => None,
    }
}

/// A neighbour or a group over UDP.
fn udp(version: &str, text: &str, resolve: Resolve) -> Option<Remote> {
    let (host, interface) = match text.split_once('/') {
        Some((host, interface)) => (host, Some(interface)),
        None => (text, None),
    };
    let one = address(version, host, UDP_PORT, resolve)?;
    match (one.ip().is_multicast(), interface) {
        (false, None) => Some(Remote::Udp(one)),
        (false, Some(_)) | (true, Some("")) => None,
        (true, interface) => {
            let group = address(version, host, MULTICAST_PORT, resolve)?;
            Some(Remote::Multicast { group, interface: interface.map(Into::into) })
        }
    }
}

/// The address of a host and port. `version` is the IP version, or empty for any.
fn address(version: &str, host: &str, port: u16, resolve: Resolve) -> Option<SocketAddr> {
    let has_port =
        host.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && !port.ends_with(']'))
            && (!host.starts_with('[') || host.contains("]:"));
    let whole = if has_port { host.to_owned() } else { format!("{host}:{port}") };
    let fits =
        |address: &SocketAddr| version.is_empty() || version == ip_version(address).to_string();
    resolve(&whole).into_iter().find(fits).filter(|address| address.port() != 0)
}

impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Udp(address) => write!(f, "udp{}://{address}", ip_version(address)),
            Self::Multicast { group, .. } => write!(f, "udp{}://{group}", ip_version(group)),
            Self::Tcp(address) => write!(f, "tcp{}://{address}", ip_version(address)),
            Self::WebSocket(address) => write!(f, "wsclient://{address}"),
            Self::Ethernet { to, .. } => write!(f, "ether://[{}]", to.unwrap_or(Mac::NDN_GROUP)),
            Self::Program(number) => write!(f, "fd://{number}"),
        }
    }
}

/// The IP version of an address, which is part of a scheme in NFD's syntax: 4 or 6.
pub(crate) fn ip_version(address: &SocketAddr) -> u8 {
    if address.is_ipv4() { 4 } else { 6 }
}

impl FromStr for Mac {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut mac = Self([0; 6]);
        let mut parts = text.split(':');
        for byte in &mut mac.0 {
            let part = parts.next().filter(|part| part.len() == 2).ok_or(())?;
            *byte = u8::from_str_radix(part, 16).map_err(|_| ())?;
        }
        if parts.next().is_none() { Ok(mac) } else { Err(()) }
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remotes_are_parsed_and_written_in_nfd_syntax() {
        for (text, shown) in [
            ("udp://192.0.2.1:7000", "udp4://192.0.2.1:7000"),
            ("udp4://192.0.2.1", "udp4://192.0.2.1:6363"),
            ("udp://[2001:db8::1]", "udp6://[2001:db8::1]:6363"),
            ("udp6://[2001:db8::1]:9", "udp6://[2001:db8::1]:9"),
            ("udp://224.0.23.170", "udp4://224.0.23.170:56363"),
            ("udp6://[ff02::1234]:7/eth0", "udp6://[ff02::1234]:7"),
            ("tcp://192.0.2.1", "tcp4://192.0.2.1:6363"),
            ("tcp6://[2001:db8::1]:9", "tcp6://[2001:db8::1]:9"),
            ("ether://eth0", "ether://[01:00:5e:00:17:aa]"),
            ("ether://eth0/02:00:00:00:00:0F", "ether://[02:00:00:00:00:0f]"),
        ] {
            assert_eq!(text.parse::<Remote>().unwrap().to_string(), shown, "{text}");
            assert_eq!(Remote::from_numeric(text).unwrap().to_string(), shown, "{text}");
        }
    }

    #[test]
    fn host_names_are_resolved_only_on_request() {
        for text in ["udp://localhost:7000", "tcp://localhost"] {
            let remote = text.parse::<Remote>().unwrap();
            assert!(Remote::from_numeric(text).is_err(), "{text}");
            // What a client sends after it has resolved the name.
            assert_eq!(Remote::from_numeric(&remote.to_string()), Ok(remote));
        }
    }

    #[test]
    fn invalid_remotes_are_errors() {
        for text in [
            "",
            "192.0.2.1",
            "udp://",
            "udp://:6363",
            "udp://192.0.2.1:99999",
            "udp://192.0.2.1:0",
            "udp6://192.0.2.1",
            "udp://192.0.2.1/eth0",
            "udp://224.0.23.170/",
            "tcp6://192.0.2.1",
            "tcp5://192.0.2.1",
            "sctp://192.0.2.1",
            "ether://",
            "ether://eth0/2:0:0:0:0:1",
            "ether://eth0/02:00:00:00:00:01:02",
        ] {
            let error = text.parse::<Remote>().unwrap_err();
            assert!(error.to_string().contains("use udp://"), "{text}");
        }
    }
}
