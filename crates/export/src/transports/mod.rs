//! Transports to a collector: datagrams, a connection, plain or encrypted, a file. All errors of the outside occur
//! here.
//!
//! Invariant: no call takes much longer than [`Shared::over`] allows, except for writing to a pipe that is not read.

mod file;
mod pauses;
mod tcp;
#[cfg(feature = "tls")]
mod tls;
#[cfg(not(feature = "tls"))]
#[path = "no_tls.rs"]
mod tls;
mod udp;

use std::io;
use std::path::PathBuf;

use crate::Reason;
use crate::shared::Shared;
pub(crate) use crate::shared::now;

pub(crate) use file::FileLink;
pub(crate) use pauses::Pauses;
pub(crate) use tcp::{Channel, TcpLink, connect, is_slice_over};
pub(crate) use tls::TlsClient;
#[cfg(all(feature = "kafka", feature = "tls"))]
pub(crate) use tls::client_config;
pub(crate) use udp::UdpLink;

/// Certificates for TLS; all in PEM files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// Authorities that may sign collectors' certificates; `None`: those of the system.
    pub authorities: Option<PathBuf>,
    /// Our certificate with intermediate ones, and its private key.
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// A transport to one collector.
pub(crate) trait Link: Send {
    /// Makes the link ready for messages.
    fn open(&mut self, shared: &Shared) -> Opened;

    /// Sends a message.
    fn send(&mut self, message: &[u8], shared: &Shared) -> Result<Delivery, Trouble>;

    /// Everything was sent, for this file or for the run.
    fn close(&mut self, shared: &Shared) -> Delivery;

    /// Returns whether an earlier message was refused. May wait a short time for the answer to the last one.
    fn settle(&mut self, _shared: &Shared) -> Delivery {
        Delivery::Taken
    }

    /// With `true`, a message that cannot be written is dropped at once. Files only.
    fn hurry(&mut self, _on: bool) {}

    /// Returns true for a regular file, which can be finished and started again.
    fn is_file(&self) -> bool {
        false
    }

    /// Returns true if collectors may lose templates, so that they are repeated.
    fn repeats_templates(&self) -> bool {
        false
    }

    /// Returns true if there is one session from first to last message, at whose end templates are withdrawn.
    fn is_connection(&self) -> bool {
        false
    }
}

/// The result of [`Link::open`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opened {
    /// The link was open.
    Still,
    /// A new connection or file, which needs templates.
    Anew,
    /// The link cannot be opened any more, or not in time.
    Never(Reason),
}

/// The result of sending a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// The message was accepted.
    Taken,
    /// An earlier message was refused.
    EarlierRefused,
}

/// Why a message was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The connection is broken; open it again.
    Broken,
    /// The message will never be sent.
    Lost(Reason),
}

/// The addresses of a host; an error if there are none.
pub(crate) fn resolve(host: &str, port: u16) -> io::Result<Vec<std::net::SocketAddr>> {
    let found: Vec<_> = std::net::ToSocketAddrs::to_socket_addrs(&(host, port))?.collect();
    if found.is_empty() { Err(io::ErrorKind::AddrNotAvailable.into()) } else { Ok(found) }
}
