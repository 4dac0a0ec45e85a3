//! How messages get to a collector: datagrams, a connection, plain or encrypted, a file. Everything that can go wrong outside is here.
//!
//! Invariant: no call takes much longer than [`Until`] allows, but for writing to a pipe that nobody empties.

mod file;
mod tcp;
mod tls;
mod udp;

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::LINGER;
use crate::Reason;
use crate::shared::Shared;

pub(crate) use file::FileLink;
pub use file::Store;
pub(crate) use tcp::TcpLink;
pub use tls::Tls;
pub(crate) use tls::TlsClient;
pub(crate) use udp::UdpLink;

/// One way to a collector.
pub(crate) trait Link: Send {
    /// Makes sure that messages can be sent.
    fn open(&mut self, until: &mut Until) -> Opened;

    /// Sends a message.
    fn send(&mut self, message: &[u8], until: &mut Until) -> Result<Delivery, Trouble>;

    /// Everything was sent.
    fn close(&mut self, until: &mut Until) -> Delivery;

    /// A file begins anew under the same name; others do nothing.
    fn renew(&mut self) {}

    /// Whether collectors may miss or forget templates, so that they are repeated.
    fn forgets(&self) -> bool {
        false
    }

    /// Whether there is one session from first to last message, at whose end templates are withdrawn.
    fn is_connection(&self) -> bool {
        false
    }

    /// What went wrong last, and whether that is a failure even if something got through.
    fn trouble(&self) -> Option<(String, bool)>;
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
    /// Without a word.
    Taken,
    /// With the news that the one before was refused.
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

/// Until when waiting makes sense: without end during the run, [`LINGER`] from its end.
pub(crate) struct Until {
    shared: Arc<Shared>,
    end: Option<Instant>,
}

impl Until {
    pub(crate) const fn new(shared: Arc<Shared>) -> Self {
        Self { shared, end: None }
    }

    /// Whether the time is over.
    pub(crate) fn over(&mut self) -> bool {
        self.left().is_zero()
    }

    /// The time there is.
    pub(crate) fn left(&mut self) -> Duration {
        // Relaxed: it says when, it hands over nothing.
        if self.end.is_none() && self.shared.ending.load(Ordering::Relaxed) {
            self.end = Some(now() + LINGER);
        }
        self.end.map_or(Duration::MAX, |end| end.saturating_duration_since(now()))
    }

    /// Sleeps for `time`, but not beyond the end.
    pub(crate) fn sleep(&mut self, time: Duration) {
        let until = now() + time;
        while !self.over() && now() < until {
            std::thread::sleep(Duration::from_millis(20).min(time));
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "how long a collector is waited for is no packet time"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Addresses of a host, or why there are none.
pub(crate) fn resolve(host: &str, port: u16) -> io::Result<Vec<std::net::SocketAddr>> {
    let found: Vec<_> = std::net::ToSocketAddrs::to_socket_addrs(&(host, port))?.collect();
    if found.is_empty() { Err(io::ErrorKind::AddrNotAvailable.into()) } else { Ok(found) }
}
