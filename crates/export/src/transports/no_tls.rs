//! Replaces `tls.rs` in a program without the feature `tls`.

use std::io;
use std::net::TcpStream;

use crate::settings::Tls;
use crate::shared::Shared;

/// Without values: it cannot be created.
pub(crate) enum TlsClient {}

impl TlsClient {
    pub(crate) fn new(_host: &str, _tls: &Tls) -> io::Result<Self> {
        Err(io::Error::other("this program was built without the feature tls"))
    }

    pub(super) fn shake_hands(&self, _: TcpStream, _: &Shared) -> io::Result<TcpStream> {
        match *self {}
    }
}
