//! Stub for `tls.rs` in builds without the feature `tls`.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use crate::server::Listener;

/// Never constructed.
pub enum TlsListener {}

/// Never constructed.
#[derive(Clone)]
pub enum Certificate {}

impl Certificate {
    /// An error: no certificate can be used.
    pub fn read(_: (&str, &Path), _: (&str, &Path)) -> io::Result<Self> {
        Err(io::Error::other("TLS is not available: build with the feature tls"))
    }

    /// Never called.
    pub fn replace(&self, _: &Self) {
        match *self {}
    }
}

impl TlsListener {
    /// Never called.
    pub fn new(_: TcpListener, certificate: Certificate) -> Self {
        match certificate {}
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
