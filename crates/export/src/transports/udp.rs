//! Datagrams. They are not acknowledged, but a host with a closed port says so (ICMP port unreachable), and so do
//! routers that do not let them pass. The socket reports it with the *next* call: that is how a collector that is down is
//! noticed.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use super::{Delivery, Link, Opened, Trouble};
use crate::Reason;
use crate::shared::Shared;

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

/// Calls `send` until it succeeds. An error that does not come again was about an earlier message.
fn attempt(mut send: impl FnMut() -> io::Result<usize>) -> Result<Delivery, Trouble> {
    let (mut delivery, mut refused) = (Delivery::Taken, true);
    for _ in 0..ATTEMPTS {
        match send() {
            Ok(_) => return Ok(delivery),
            Err(error) => {
                refused &= error.kind() == ErrorKind::ConnectionRefused;
                delivery = Delivery::EarlierRefused;
            }
        }
    }
    Err(Trouble::Lost(if refused { Reason::Refused } else { Reason::Failed }))
}

impl Link for UdpLink {
    fn open(&mut self, shared: &Shared) -> Opened {
        if shared.over() {
            return Opened::Never(Reason::TooLate);
        }
        if std::mem::take(&mut self.fresh) { Opened::Anew } else { Opened::Still }
    }

    fn send(&mut self, message: &[u8], shared: &Shared) -> Result<Delivery, Trouble> {
        self.since_pause += 1;
        if self.since_pause == BURST {
            self.since_pause = 0;
            std::thread::sleep(PAUSE);
        }
        attempt(|| {
            let sent = self.socket.send(message);
            if let Err(error) = &sent {
                shared.fails(error);
                if error.kind() == ErrorKind::ConnectionRefused {
                    self.turn();
                }
            }
            sent
        })
    }

    fn settle(&mut self, shared: &Shared) -> Delivery {
        std::thread::sleep(SETTLE.min(shared.left()));
        match self.socket.take_error() {
            Ok(Some(error)) => {
                shared.fails(&error);
                Delivery::EarlierRefused
            }
            _ => Delivery::Taken,
        }
    }

    fn close(&mut self, shared: &Shared) -> Delivery {
        self.settle(shared)
    }

    fn forgets(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ErrorKind::{ConnectionRefused, HostUnreachable, NetworkUnreachable};

    /// What becomes of a message if so many calls fail, and all further ones succeed.
    fn after(errors: &[ErrorKind]) -> Result<Delivery, Trouble> {
        let mut errors = errors.iter();
        attempt(|| errors.next().map_or(Ok(1), |&error| Err(error.into())))
    }

    #[test]
    fn an_error_that_does_not_come_again_is_about_an_earlier_message() {
        assert_eq!(after(&[]), Ok(Delivery::Taken));
        assert_eq!(after(&[ConnectionRefused]), Ok(Delivery::EarlierRefused));
        assert_eq!(after(&[HostUnreachable]), Ok(Delivery::EarlierRefused));
        assert_eq!(after(&[ConnectionRefused; 4]), Err(Trouble::Lost(Reason::Refused)));
        assert_eq!(after(&[NetworkUnreachable; 4]), Err(Trouble::Lost(Reason::Failed)));
    }
}
