//! Hosts in URLs, and their addresses.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

/// Splits `HOST:PORT`.
pub(crate) fn host_and_port(place: &str, default: Option<u16>) -> Option<(String, u16)> {
    let place = place.strip_suffix('/').unwrap_or(place);
    let (host, rest) = if let Some(bracketed) = place.strip_prefix('[') {
        bracketed.split_once(']')?
    } else {
        let at = place.find(':').unwrap_or(place.len());
        place.split_at(at)
    };
    let port = match rest.strip_prefix(':') {
        Some(port) => port.parse().ok().filter(|&port| port > 0)?,
        None if rest.is_empty() => default?,
        None => return None,
    };
    let ok = !host.is_empty() && !host.contains(['/', '@', '?', '#', ' ']);
    ok.then(|| (host.to_owned(), port))
}

/// The addresses of a host; an error if there are none.
pub(crate) fn resolve(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    let found: Vec<_> = (host, port).to_socket_addrs()?.collect();
    if found.is_empty() { Err(io::ErrorKind::AddrNotAvailable.into()) } else { Ok(found) }
}
