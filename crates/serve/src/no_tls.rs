//! Stub for `tls.rs` in builds without the feature `tls`.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use crate::server::Listener;

/// Never constructed.
pub enum TlsListener {}

impl TlsListener {
    /// An error: no certificate can be used.
    pub fn new(_: TcpListener, _: (&str, &Path), _: (&str, &Path)) -> io::Result<Self> {
        Err(io::Error::other("TLS is not available: build with the feature tls"))
    }
}

impl AsFd for TlsListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match *self {}
    }
}

impl Listener for TlsListener {
    type Stream = TcpStream;

    fn next(&self) -> io::Result<TcpStream> {
        match *self {}
    }

    fn end(_: &mut TcpStream) {}
}
