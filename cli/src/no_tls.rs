//! Stub for `tls.rs` in builds without the feature `tls`.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use crate::server::Listener;

/// Never constructed.
pub(crate) enum TlsListener {}

impl TlsListener {
    pub(crate) fn new(_: TcpListener, _certificate: &Path, _key: &Path) -> io::Result<Self> {
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
