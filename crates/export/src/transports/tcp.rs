//! A connection, opened again when it breaks, with pauses that double. It may be encrypted.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::channel::{Channel, is_slice_over};
use super::host::resolve;
use super::link::{Delivery, Link, Opened, Trouble};
use super::pauses::Pauses;
use super::tls::TlsClient;
use super::transport::{Address, HOST, Transport};
use crate::shared::Shared;
use crate::summary::Reason;

/// One wait, after which the end is checked.
const SLICE: Duration = Duration::from_millis(50);
/// Most waits for a collector to close its side at the end.
const CLOSING: u32 = 20;
const CONNECT: Duration = Duration::from_secs(2);

/// A connection.
pub(super) static TCP: Transport = Transport {
    name: "tcp",
    is_stream: true,
    is_encrypted: false,
    is_built: true,
    form: HOST,
    address: Address::of_host,
    link: |to, _| Ok(Box::new(TcpLink::new(resolve(&to.host, to.port)?, None))),
};

/// An encrypted connection; the host must be in the collector's certificate.
pub(super) static TLS: Transport = Transport {
    name: "tls",
    is_stream: true,
    is_encrypted: true,
    is_built: cfg!(feature = "tls"),
    form: HOST,
    address: Address::of_host,
    link: |to, tls| {
        let client = TlsClient::new(&to.host, tls)?;
        Ok(Box::new(TcpLink::new(resolve(&to.host, to.port)?, Some(client))))
    },
};

struct TcpLink {
    addresses: Vec<SocketAddr>,
    tls: Option<TlsClient>,
    channel: Option<Box<dyn Channel>>,
    pauses: Pauses,
}

impl TcpLink {
    const fn new(addresses: Vec<SocketAddr>, tls: Option<TlsClient>) -> Self {
        Self { addresses, tls, channel: None, pauses: Pauses::new() }
    }

    fn connect(&mut self, shared: &Shared) -> Option<Box<dyn Channel>> {
        for &address in &self.addresses {
            match connect(address, self.tls.as_ref(), shared) {
                Ok(channel) => return Some(channel),
                // An attempt that the end interrupted has no better error than those before it.
                Err(_) if shared.last_error().is_some() && shared.over() => {}
                Err(error) => shared.fails(&error),
            }
        }
        None
    }
}

/// Opens a channel to an address.
pub(crate) fn connect(
    address: SocketAddr,
    tls: Option<&TlsClient>,
    shared: &Shared,
) -> io::Result<Box<dyn Channel>> {
    let timeout = CONNECT.min(shared.left()).max(Duration::from_millis(1));
    let stream = TcpStream::connect_timeout(&address, timeout)?;
    stream.set_write_timeout(Some(SLICE))?;
    stream.set_read_timeout(Some(SLICE))?;
    stream.set_nodelay(true)?;
    match tls {
        None => Ok(Box::new(stream)),
        Some(client) => Ok(Box::new(client.shake_hands(stream, shared)?)),
    }
}

/// Returns true if the collector has closed its side; a collector that still reads does not.
fn is_closed(channel: &mut dyn Channel) -> io::Result<bool> {
    channel.socket().set_nonblocking(true)?;
    let read = channel.read(&mut [0; 256]);
    channel.socket().set_nonblocking(false)?;
    match read {
        Ok(octets) => Ok(octets == 0),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
        Err(error) => Err(error),
    }
}

impl Link for TcpLink {
    fn open(&mut self, shared: &Shared) -> Opened {
        if self.channel.is_some() {
            return Opened::Still;
        }
        self.pauses.broke();
        while !shared.over() {
            shared.pause(self.pauses.left());
            self.channel = self.connect(shared);
            if self.channel.is_some() {
                self.pauses.opened();
                return Opened::Anew;
            }
            self.pauses.failed();
        }
        Opened::Never(Reason::TooLate)
    }

    fn send(&mut self, message: &[u8], shared: &Shared) -> Result<Delivery, Trouble> {
        // If this ends early, the stream ends within a message, so it is not used again.
        let Some(mut channel) = self.channel.take() else { return Err(Trouble::Broken) };
        let fail = |error: io::Error| {
            shared.fails(&error);
            Err(Trouble::Broken)
        };
        match is_closed(&mut *channel) {
            Ok(false) => {}
            Ok(true) => return fail(ErrorKind::ConnectionReset.into()),
            Err(error) => return fail(error),
        }
        let mut rest = message;
        loop {
            let step =
                if rest.is_empty() { channel.flush().map(|()| 0) } else { channel.write(rest) };
            match step {
                Ok(_) if rest.is_empty() => break,
                Ok(written) => {
                    rest = &rest[written..];
                    shared.note_progress();
                }
                Err(error) if is_slice_over(&error) => {
                    if shared.over() {
                        return Err(Trouble::Lost(Reason::TooLate));
                    }
                }
                Err(error) => return fail(error),
            }
        }
        self.channel = Some(channel);
        Ok(Delivery::Taken)
    }

    fn close(&mut self, shared: &Shared) -> Delivery {
        if let Some(mut channel) = self.channel.take()
            && channel.end().is_ok()
        {
            // A collector that has read everything closes its side, too. The wait for it is limited.
            let mut slices = CLOSING;
            while slices > 0 && !shared.over() {
                match channel.read(&mut [0; 256]) {
                    Ok(1..) => {}
                    Err(error) if is_slice_over(&error) => slices -= 1,
                    Ok(0) | Err(_) => break,
                }
            }
        }
        Delivery::Taken
    }

    fn is_connection(&self) -> bool {
        true
    }
}
