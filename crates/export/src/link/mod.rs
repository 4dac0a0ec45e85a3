//! How messages get to a collector: datagrams, a connection, plain or encrypted, a file. Everything that can go wrong outside is here.
//!
//! Invariant: no call takes much longer than [`Until`] allows, but for writing to a pipe that nobody empties.

mod file;
mod tcp;
mod tls;
mod udp;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use crate::Reason;
use crate::shared::Shared;
pub(crate) use crate::shared::now;

pub(crate) use file::FileLink;
pub(crate) use tcp::TcpLink;
pub use tls::Tls;
pub(crate) use tls::TlsClient;
pub(crate) use udp::UdpLink;

/// One way to a collector.
pub(crate) trait Link: Send {
    /// Makes sure that messages can be sent.
    fn open(&mut self, until: &Until) -> Opened;

    /// Sends a message.
    fn send(&mut self, message: &[u8], until: &Until) -> Result<Delivery, Trouble>;

    /// Everything was sent, for good or to this file.
    fn close(&mut self, until: &Until) -> Delivery;

    /// Whether an earlier message was refused. May wait a little for the answer to the last one.
    fn settle(&mut self, _until: &Until) -> Delivery {
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

/// Until when waiting makes sense, and where errors are told while they happen.
pub(crate) struct Until(Arc<Shared>);

impl Until {
    pub(crate) const fn new(shared: Arc<Shared>) -> Self {
        Self(shared)
    }

    /// Whether the time is over.
    pub(crate) fn over(&self) -> bool {
        self.0.over()
    }

    /// The time there is.
    pub(crate) fn left(&self) -> Duration {
        self.0.left()
    }

    /// Sleeps for `time`, but not beyond the end, and not if a retry is asked for.
    pub(crate) fn sleep(&self, time: Duration) {
        self.0.pause(time);
    }

    /// Tells of an error.
    pub(crate) fn fails(&self, error: &dyn fmt::Display) {
        self.0.fails(error);
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.0
    }
}

/// Addresses of a host, or why there are none.
pub(crate) fn resolve(host: &str, port: u16) -> io::Result<Vec<std::net::SocketAddr>> {
    let found: Vec<_> = std::net::ToSocketAddrs::to_socket_addrs(&(host, port))?.collect();
    if found.is_empty() { Err(io::ErrorKind::AddrNotAvailable.into()) } else { Ok(found) }
}
