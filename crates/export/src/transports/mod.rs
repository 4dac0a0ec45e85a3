//! Transports to a collector: datagrams, a connection, plain or encrypted, a local socket. All errors of the outside
//! occur here.
//!
//! Invariant: no call takes much longer than [`Shared::over`](crate::shared::Shared::over) allows, except for writing to
//! a pipe that is not read.

mod channel;
mod host;
mod link;
mod local;
mod pauses;
mod tcp;
#[cfg(feature = "tls")]
mod tls;
#[cfg(not(feature = "tls"))]
#[path = "no_tls.rs"]
mod tls;
mod transport;
mod udp;

pub(crate) use channel::{Channel, is_slice_over};
pub(crate) use host::{host_and_port, resolve};
pub(crate) use link::{Delivery, Link, Opened, Trouble};
pub(crate) use local::LOCAL;
pub(crate) use pauses::Pauses;
pub(crate) use tcp::connect;
pub(crate) use tls::TlsClient;
#[cfg(all(feature = "kafka", feature = "tls"))]
pub(crate) use tls::client_config;
#[cfg(test)]
pub(crate) use transport::Address;
pub(crate) use transport::{Route, Transport};
pub(crate) use udp::UDP;

/// All transports. A new one is a file here and a line in this list.
static TRANSPORTS: &[&Transport] = &[&UDP, &tcp::TCP, &tcp::TLS, &LOCAL];

/// The transport with this name.
pub(crate) fn named(name: &str) -> Option<&'static Transport> {
    TRANSPORTS.iter().copied().find(|transport| transport.name == name)
}
