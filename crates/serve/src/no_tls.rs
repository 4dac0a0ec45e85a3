//! Stub for `tls.rs` in builds without the feature `tls`.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use crate::server::Listener;

/// Never constructed.
pub struct TlsListener(Certificate);

/// Never constructed.
#[derive(Clone)]
pub struct Certificate(Never);

/// Private: that no value exists is known in this file alone. Elsewhere, code after a call would be unreachable.
#[derive(Clone)]
enum Never {}

impl Certificate {
    /// An error: no certificate can be used.
    pub fn read(_: (&str, &Path), _: (&str, &Path)) -> io::Result<Self> {
        Err(io::Error::other("TLS is not available: build with the feature tls"))
    }

    /// Never called.
    pub fn replace(&self, _: &Self) {
        match self.0 {}
    }
}

impl TlsListener {
    /// Never called.
    pub fn new(_: TcpListener, certificate: Certificate) -> Self {
        Self(certificate)
    }
}

impl AsFd for TlsListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self.0.0 {}
    }
}

impl Listener for TlsListener {
    type Stream = TcpStream;

    fn next(&self) -> io::Result<TcpStream> {
        match self.0.0 {}
    }

    fn end(_: &mut TcpStream) {}
}
