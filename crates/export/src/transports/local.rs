//! Datagrams to a local socket, which may appear later and again.

use std::io::{self, ErrorKind};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::time::Duration;

use super::link::{Delivery, Link, Opened, Trouble};
use super::pauses::Pauses;
use super::transport::{Address, PATH, Transport};
use crate::shared::Shared;
use crate::summary::Reason;

/// A datagram is longer than the socket's buffer: the error of Linux.
const EMSGSIZE: i32 = 90;

/// One wait, after which the end is checked.
const SLICE: Duration = Duration::from_millis(50);

/// The socket of a path.
pub(crate) static LOCAL: Transport = Transport {
    name: "local",
    is_stream: false,
    is_encrypted: false,
    is_built: true,
    form: PATH,
    address: |path, _| path.starts_with('/').then(|| Address { host: path.to_owned(), port: 0 }),
    link: |to, _| Ok(Box::new(LocalLink::new(to.host.clone().into()))),
};

/// Datagrams to a local socket.
struct LocalLink {
    path: PathBuf,
    socket: Option<UnixDatagram>,
    pauses: Pauses,
}

impl LocalLink {
    fn new(path: PathBuf) -> Self {
        Self { path, socket: None, pauses: Pauses::new() }
    }

    fn connect(&self) -> io::Result<UnixDatagram> {
        let socket = UnixDatagram::unbound()?;
        socket.connect(&self.path)?;
        socket.set_write_timeout(Some(SLICE))?;
        Ok(socket)
    }
}

impl Link for LocalLink {
    fn open(&mut self, shared: &Shared) -> Opened {
        if self.socket.is_some() {
            return Opened::Still;
        }
        self.pauses.broke();
        while !shared.over() {
            shared.pause(self.pauses.left());
            match self.connect() {
                Ok(socket) => {
                    self.socket = Some(socket);
                    self.pauses.opened();
                    return Opened::Anew;
                }
                Err(error) => shared.fails(&error),
            }
            self.pauses.failed();
        }
        Opened::Never(Reason::TooLate)
    }

    fn send(&mut self, message: &[u8], shared: &Shared) -> Result<Delivery, Trouble> {
        let Some(socket) = &self.socket else { return Err(Trouble::Broken) };
        loop {
            match socket.send(message) {
                Ok(_) => return Ok(Delivery::Taken),
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    shared.fails(&"it does not read");
                    if shared.over() {
                        return Err(Trouble::Lost(Reason::TooLate));
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // It would be too long again.
                Err(error) if error.raw_os_error() == Some(EMSGSIZE) => {
                    shared.fails(&error);
                    return Err(Trouble::Lost(Reason::Failed));
                }
                Err(error) => {
                    shared.fails(&error);
                    self.socket = None;
                    return Err(Trouble::Broken);
                }
            }
        }
    }

    fn close(&mut self, _shared: &Shared) -> Delivery {
        Delivery::Taken
    }
}
