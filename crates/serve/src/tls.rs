//! Pages over TLS: a listening socket whose clients are encrypted.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::server::Listener;

/// A listening socket with a certificate.
pub struct TlsListener {
    listener: TcpListener,
    certificate: Certificate,
}

/// The certificate of a listening socket, with its private key. It can be replaced while the socket is used.
#[derive(Clone)]
pub struct Certificate(Arc<RwLock<Arc<ServerConfig>>>);

impl Certificate {
    /// Reads both from PEM files; errors name the flag of each.
    ///
    /// # Errors
    /// A file cannot be read or holds something else.
    pub fn read(
        (certificate_flag, certificate): (&str, &Path),
        (key_flag, key): (&str, &Path),
    ) -> io::Result<Self> {
        let of = |flag: &str, path: &Path, what: &dyn std::fmt::Display| {
            io::Error::other(format!("{flag} {}: {what}", path.display()))
        };
        let chain = CertificateDer::pem_file_iter(certificate)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let chain = chain.map_err(|error| of(certificate_flag, certificate, &error))?;
        let secret =
            PrivateKeyDer::from_pem_file(key).map_err(|error| of(key_flag, key, &error))?;
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().map_err(io::Error::other)?;
        let config = builder.with_no_client_auth().with_single_cert(chain, secret);
        let config = config.map_err(|error| of(certificate_flag, certificate, &error))?;
        Ok(Self(Arc::new(RwLock::new(Arc::new(config)))))
    }

    /// Uses another one for later connections.
    pub fn replace(&self, other: &Self) {
        let other = other.config();
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = other;
    }

    fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl TlsListener {
    /// A socket whose clients are encrypted with this certificate.
    pub fn new(listener: TcpListener, certificate: Certificate) -> Self {
        Self { listener, certificate }
    }
}

impl AsFd for TlsListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

impl Listener for TlsListener {
    type Stream = TlsStream;

    fn next(&self) -> io::Result<TlsStream> {
        let stream = Listener::next(&self.listener)?;
        let session = ServerConnection::new(self.certificate.config()).map_err(io::Error::other)?;
        Ok(TlsStream(StreamOwned::new(session, stream)))
    }

    fn end(stream: &mut TlsStream) {
        stream.0.conn.send_close_notify();
        // Ignore errors if the client is gone.
        let _ = stream.0.flush();
        let _ = stream.0.sock.shutdown(Shutdown::Write);
    }
}

/// A client. A handshake is part of the first read.
pub struct TlsStream(StreamOwned<ServerConnection, TcpStream>);

impl AsFd for TlsStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.sock.as_fd()
    }
}

impl Read for TlsStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for TlsStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
