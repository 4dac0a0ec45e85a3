//! Datagrams. Nobody acknowledges them, but a machine where nobody listens says so (ICMP port unreachable), and the
//! socket reports it with the *next* call: that is how a collector that is down is noticed.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use super::{Delivery, Link, Opened, Trouble, Until};
use crate::Reason;

/// Messages in a row before a pause: a Linux socket that was not told otherwise has room for about ninety of them.
const BURST: u32 = 32;
const PAUSE: Duration = Duration::from_millis(1);

/// Refusals of earlier messages may be several.
const ATTEMPTS: u32 = 4;

/// How long the answer to the last message is waited for.
const SETTLE: Duration = Duration::from_millis(50);

pub(crate) struct UdpLink {
    socket: UdpSocket,
    addresses: Vec<SocketAddr>,
    at: usize,
    fresh: bool,
    since_pause: u32,
}

impl UdpLink {
    pub(crate) fn new(addresses: Vec<SocketAddr>) -> io::Result<Self> {
        let socket = socket(addresses[0])?;
        Ok(Self { socket, addresses, at: 0, fresh: true, since_pause: 0 })
    }

    /// Turns to the next address of the host, if it has several: it may listen on one of them only.
    fn turn(&mut self) {
        if self.addresses.len() > 1 {
            self.at = (self.at + 1) % self.addresses.len();
            if let Ok(other) = socket(self.addresses[self.at]) {
                self.socket = other;
            }
        }
    }
}

fn socket(to: SocketAddr) -> io::Result<UdpSocket> {
    let any = match to {
        SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    };
    let socket = UdpSocket::bind(any)?;
    socket.connect(to)?;
    Ok(socket)
}

impl Link for UdpLink {
    fn open(&mut self, until: &Until) -> Opened {
        if until.over() {
            return Opened::Never(Reason::TooLate);
        }
        if std::mem::take(&mut self.fresh) { Opened::Anew } else { Opened::Still }
    }

    fn send(&mut self, message: &[u8], until: &Until) -> Result<Delivery, Trouble> {
        self.since_pause += 1;
        if self.since_pause == BURST {
            self.since_pause = 0;
            std::thread::sleep(PAUSE);
        }
        let mut delivery = Delivery::Taken;
        for _ in 0..ATTEMPTS {
            match self.socket.send(message) {
                Ok(_) => return Ok(delivery),
                // About an earlier message; this one was not yet sent.
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                    delivery = Delivery::EarlierRefused;
                    until.fails(&error);
                    self.turn();
                }
                Err(error) => {
                    until.fails(&error);
                    return Err(Trouble::Lost(Reason::Failed));
                }
            }
        }
        Err(Trouble::Lost(Reason::Refused))
    }

    fn settle(&mut self, until: &Until) -> Delivery {
        std::thread::sleep(SETTLE.min(until.left()));
        match self.socket.take_error() {
            Ok(Some(error)) => {
                until.fails(&error);
                Delivery::EarlierRefused
            }
            _ => Delivery::Taken,
        }
    }

    fn close(&mut self, until: &Until) -> Delivery {
        self.settle(until)
    }

    fn forgets(&self) -> bool {
        true
    }
}
