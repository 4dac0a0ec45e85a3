//! Pages over TLS: a listening socket whose clients are encrypted.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::server::Listener;

/// A listening socket with a certificate.
pub struct TlsListener {
    listener: TcpListener,
    config: Arc<ServerConfig>,
}

impl TlsListener {
    /// With the certificate and the private key in these PEM files; errors name the flag of each.
    pub fn new(
        listener: TcpListener,
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
        Ok(Self { listener, config: Arc::new(config) })
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
        let session = ServerConnection::new(Arc::clone(&self.config)).map_err(io::Error::other)?;
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
