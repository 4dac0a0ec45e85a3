//! Datagrams. They are not acknowledged, but a host with a closed port reports it (ICMP port unreachable), and so do
//! routers that reject them. The socket returns that error from the *next* call: so an unavailable collector is
//! detected.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use super::host::resolve;
use super::link::{Delivery, Link, Opened, Trouble};
use super::transport::{Address, HOST, Transport};
use crate::shared::Shared;
use crate::summary::Reason;

/// Messages in a row before a pause: the default buffer of a Linux socket has room for about ninety.
const BURST: u32 = 32;
const PAUSE: Duration = Duration::from_millis(1);

/// There may be several errors about earlier messages.
const ATTEMPTS: u32 = 4;

/// How long to wait for the answer to the last message.
const SETTLE: Duration = Duration::from_millis(50);

/// Datagrams.
pub(crate) static UDP: Transport = Transport {
    name: "udp",
    is_stream: false,
    is_encrypted: false,
    is_built: true,
    form: HOST,
    address: Address::of_host,
    link: |to, _| Ok(Box::new(UdpLink::new(resolve(&to.host, to.port)?)?)),
};

struct UdpLink {
    socket: UdpSocket,
    addresses: Vec<SocketAddr>,
    at: usize,
    fresh: bool,
    since_pause: u32,
}

impl UdpLink {
    fn new(addresses: Vec<SocketAddr>) -> io::Result<Self> {
        let socket = socket(addresses[0])?;
        Ok(Self { socket, addresses, at: 0, fresh: true, since_pause: 0 })
    }

    /// Switches to the next address of the host, if it has several: the collector may use only one.
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

/// Calls `send` until it succeeds. An error that is not repeated was about an earlier message.
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

    fn repeats_templates(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ErrorKind::{ConnectionRefused, HostUnreachable, NetworkUnreachable};

    /// The result of sending a message if the first calls fail with these errors, and all others succeed.
    fn after(errors: &[ErrorKind]) -> Result<Delivery, Trouble> {
        let mut errors = errors.iter();
        attempt(|| errors.next().map_or(Ok(1), |&error| Err(error.into())))
    }

    #[test]
    fn an_error_that_is_not_repeated_is_about_an_earlier_message() {
        assert_eq!(after(&[]), Ok(Delivery::Taken));
        assert_eq!(after(&[ConnectionRefused]), Ok(Delivery::EarlierRefused));
        assert_eq!(after(&[HostUnreachable]), Ok(Delivery::EarlierRefused));
        assert_eq!(after(&[ConnectionRefused; 4]), Err(Trouble::Lost(Reason::Refused)));
        assert_eq!(after(&[NetworkUnreachable; 4]), Err(Trouble::Lost(Reason::Failed)));
    }
}
