//! How messages get to a collector: datagrams, a connection, plain or encrypted, a file. Everything that can go wrong outside is here.
//!
//! Invariant: no call takes much longer than [`Shared::over`] allows, except for writing to a pipe that is not read.

mod file;
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
pub(crate) use tcp::TcpLink;
pub(crate) use tls::TlsClient;
pub(crate) use udp::UdpLink;

/// With which certificates TLS is spoken; all in PEM files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// Authorities that may vouch for collectors; without it, those of the system.
    pub authorities: Option<PathBuf>,
    /// Our certificate, and any between it and an authority's, and its private key: who we are.
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// One way to a collector.
pub(crate) trait Link: Send {
    /// Makes sure that messages can be sent.
    fn open(&mut self, shared: &Shared) -> Opened;

    /// Sends a message.
    fn send(&mut self, message: &[u8], shared: &Shared) -> Result<Delivery, Trouble>;

    /// Everything was sent, for good or to this file.
    fn close(&mut self, shared: &Shared) -> Delivery;

    /// Whether an earlier message was refused. May wait a little for the answer to the last one.
    fn settle(&mut self, _shared: &Shared) -> Delivery {
        Delivery::Taken
    }

    /// From now on (or no longer) a message that cannot be written is given up at once. Files only.
    fn hurry(&mut self, _on: bool) {}

    /// Whether it is a regular file, which can be finished and begun anew.
    fn is_file(&self) -> bool {
        false
    }

    /// Whether collectors may miss or forget templates, so that they are repeated.
    fn forgets(&self) -> bool {
        false
    }

    /// Whether there is one session from first to last message, at whose end templates are withdrawn.
    fn is_connection(&self) -> bool {
        false
    }
}

/// What [`Link::open`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opened {
    /// As before.
    Still,
    /// A new connection or file: it knows no templates.
    Anew,
    /// Not any more, or not in time.
    Never(Reason),
}

/// How a message was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// Nothing is known against it.
    Taken,
    /// The one before was refused.
    EarlierRefused,
}

/// Why a message was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The connection is gone; open it again.
    Broken,
    /// This message will never be sent.
    Lost(Reason),
}

/// Addresses of a host, or why there are none.
pub(crate) fn resolve(host: &str, port: u16) -> io::Result<Vec<std::net::SocketAddr>> {
    let found: Vec<_> = std::net::ToSocketAddrs::to_socket_addrs(&(host, port))?.collect();
    if found.is_empty() { Err(io::ErrorKind::AddrNotAvailable.into()) } else { Ok(found) }
}
