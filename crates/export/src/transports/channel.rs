//! A connection as a channel for octets.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};

/// The channel for messages. Each call waits at most one slice; written octets are sent when it is flushed.
pub(crate) trait Channel: Read + Write + Send {
    /// The underlying connection.
    fn socket(&self) -> &TcpStream;

    /// Closes the sending side.
    fn end(&mut self) -> io::Result<()>;
}

impl Channel for TcpStream {
    fn socket(&self) -> &TcpStream {
        self
    }

    fn end(&mut self) -> io::Result<()> {
        self.shutdown(Shutdown::Write)
    }
}

/// Whether an error is only the end of a wait.
pub(crate) fn is_slice_over(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}
