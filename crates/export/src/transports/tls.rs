//! TLS over a connection: RFC 7011, sections 10.4 and 11. Versions 1.2 and 1.3, by rustls.
//!
//! ```text
//! connection ─▶ handshake: is its certificate signed by a known authority, for the host of the URL? ─▶ its verdict
//! ```
//!
//! "When using TLS or DTLS, IPFIX Exporting Processes and IPFIX Collecting Processes SHOULD be identified by a
//! certificate containing the DNS-ID" (section 11.3): the host must be among the subject's alternative names, as a
//! DNS name or as an address; its common name does not count, because the same section advises against it. "[…] mutual
//! authentication MUST be used" (section 11.3): we send a certificate if one is given; requiring it is the collector's
//! part.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustls::client::ResolvesClientCert;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::sign::CertifiedKey;
use rustls::{
    AlertDescription, CertificateError, ClientConfig, ClientConnection, Error, ProtocolVersion,
    RootCertStore, SignatureScheme,
};

use super::channel::{Channel, is_slice_over};
use crate::settings::Tls;
use crate::shared::{Shared, now};

/// Time limit of the whole handshake.
const HANDSHAKE: Duration = Duration::from_secs(5);

/// In TLS 1.3 a collector that requests our certificate verifies it after our side of the handshake is complete. So we
/// wait this long for its next message: a rejection, or the session tickets that most collectors send.
const VERDICT: Duration = Duration::from_secs(2);

/// Our side of all handshakes with one collector.
pub(crate) struct TlsClient {
    config: Arc<ClientConfig>,
    host: ServerName<'static>,
    identity: Arc<Identity>,
}

/// Our certificate, and whether the collector requested it.
#[derive(Debug)]
struct Identity {
    own: Option<Arc<CertifiedKey>>,
    asked: AtomicBool,
}

impl ResolvesClientCert for Identity {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        // Relaxed: the handshake runs on the thread that reads this.
        self.asked.store(true, Ordering::Relaxed);
        self.own.clone()
    }

    fn has_certs(&self) -> bool {
        self.own.is_some()
    }
}

impl TlsClient {
    pub(crate) fn new(host: &str, tls: &Tls) -> io::Result<Self> {
        let host = ServerName::try_from(host.to_owned())
            .map_err(|_| io::Error::other("a certificate cannot be for such a host name"))?;
        let (config, identity) = configure(tls)?;
        Ok(Self { config, host, identity })
    }

    /// Opens a channel over `stream`, whose reads and writes wait one slice.
    pub(super) fn shake_hands(&self, stream: TcpStream, shared: &Shared) -> io::Result<TlsChannel> {
        self.identity.asked.store(false, Ordering::Relaxed);
        let session = ClientConnection::new(Arc::clone(&self.config), self.host.clone());
        let mut channel = TlsChannel { session: session.map_err(io::Error::other)?, stream };
        let end = now() + HANDSHAKE.min(shared.left());
        while channel.session.is_handshaking() || channel.session.wants_write() {
            match channel.session.complete_io(&mut channel.stream) {
                Ok(_) => {}
                Err(error) if is_slice_over(&error) => {
                    if now() >= end || shared.over() {
                        return Err(io::Error::other("it does not answer in TLS"));
                    }
                }
                Err(error) => return Err(in_words(error)),
            }
        }
        let is_late = channel.session.protocol_version() == Some(ProtocolVersion::TLSv1_3);
        if is_late && self.identity.asked.load(Ordering::Relaxed) {
            channel.read_verdict(shared)?;
        }
        Ok(channel)
    }
}

/// Our side of handshakes with any host.
#[cfg(feature = "kafka")]
pub(crate) fn client_config(tls: &Tls) -> io::Result<Arc<ClientConfig>> {
    configure(tls).map(|(config, _)| config)
}

fn configure(tls: &Tls) -> io::Result<(Arc<ClientConfig>, Arc<Identity>)> {
    let provider = Arc::new(ring::default_provider());
    let own = tls.identity.as_ref().map(|(certificate, key)| {
        let chain = certificates(certificate)?;
        let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| of(key, &error))?;
        let own = CertifiedKey::from_der(chain, secret, &provider);
        own.map(Arc::new).map_err(|error| of(certificate, &error))
    });
    let identity = Identity { own: own.transpose()?, asked: AtomicBool::new(false) };
    let identity = Arc::new(identity);
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().map_err(io::Error::other)?;
    let builder = builder.with_root_certificates(authorities(tls.authorities.as_deref())?);
    let resolver: Arc<dyn ResolvesClientCert> = identity.clone();
    Ok((Arc::new(builder.with_client_cert_resolver(resolver)), identity))
}

fn authorities(path: Option<&Path>) -> io::Result<RootCertStore> {
    let mut all = RootCertStore::empty();
    if let Some(path) = path {
        for one in certificates(path)? {
            all.add(one).map_err(|error| of(path, &error))?;
        }
        return Ok(all);
    }
    all.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if all.is_empty() {
        return Err(io::Error::other(
            "this system knows no authorities (Debian: ca-certificates); --tls-ca names them",
        ));
    }
    Ok(all)
}

/// The certificates in a PEM file, at least one.
fn certificates(path: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let all = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let all = all.map_err(|error| of(path, &error))?;
    if all.is_empty() { Err(of(path, &"no certificate in PEM form")) } else { Ok(all) }
}

fn of(path: &Path, what: &dyn std::fmt::Display) -> io::Error {
    io::Error::other(format!("{}: {what}", path.display()))
}

/// The encrypted channel over a stream.
pub(super) struct TlsChannel {
    session: ClientConnection,
    stream: TcpStream,
}

impl TlsChannel {
    /// Reads the collector's first message, if one arrives soon.
    fn read_verdict(&mut self, shared: &Shared) -> io::Result<()> {
        let end = now() + VERDICT;
        loop {
            // Read the clock first: a message that arrived while this thread was suspended counts.
            let is_last = now() >= end;
            if shared.over() {
                return Err(ErrorKind::TimedOut.into());
            }
            match self.session.read_tls(&mut self.stream) {
                Ok(0) => return Err(in_words(ErrorKind::UnexpectedEof.into())),
                Ok(_) => return self.process(),
                Err(error) if is_slice_over(&error) && is_last => return Ok(()),
                Err(error) if is_slice_over(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn process(&mut self) -> io::Result<()> {
        self.session
            .process_new_packets()
            .map(drop)
            .map_err(|error| in_words(io::Error::other(error)))
    }
}

impl Channel for TlsChannel {
    fn socket(&self) -> &TcpStream {
        &self.stream
    }

    fn end(&mut self) -> io::Result<()> {
        self.session.send_close_notify();
        self.flush()?;
        self.stream.shutdown(Shutdown::Write)
    }
}

impl Write for TlsChannel {
    /// Buffers all octets; they are sent by a flush.
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.session.writer().write(octets)
    }

    fn flush(&mut self) -> io::Result<()> {
        while self.session.wants_write() {
            if self.session.write_tls(&mut self.stream)? == 0 {
                return Err(ErrorKind::WriteZero.into());
            }
        }
        Ok(())
    }
}

impl Read for TlsChannel {
    fn read(&mut self, octets: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.session.reader().read(octets) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                read => return read,
            }
            self.session.read_tls(&mut self.stream)?;
            self.process()?;
        }
    }
}

/// The error text, with advice.
fn in_words(error: io::Error) -> io::Error {
    let Some(tls) = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) else {
        if error.kind() == ErrorKind::UnexpectedEof {
            return io::Error::other("it closed the connection instead of speaking TLS with us");
        }
        return error;
    };
    let words = match tls {
        Error::InvalidCertificate(why) => return io::Error::other(of_its_certificate(why)),
        Error::AlertReceived(alert) => match alert {
            AlertDescription::CertificateRequired | AlertDescription::HandshakeFailure => {
                "it refused us: it asks for a certificate, perhaps (--tls-cert, --tls-key)"
            }
            AlertDescription::UnknownCA | AlertDescription::CertificateUnknown => {
                "it refused our certificate: it does not know who signed it"
            }
            AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::AccessDenied
            | AlertDescription::DecryptError => "it refused our certificate",
            AlertDescription::CertificateExpired => "it refused our certificate: it has expired",
            AlertDescription::CertificateRevoked => "it refused our certificate: it was revoked",
            AlertDescription::ProtocolVersion => "it speaks neither TLS 1.2 nor TLS 1.3",
            _ => return io::Error::other(tls.to_string()),
        },
        Error::InvalidMessage(_) | Error::InappropriateMessage { .. } => {
            "what it speaks is not TLS (without it: ipfix+tcp://)"
        }
        _ => return io::Error::other(tls.to_string()),
    };
    io::Error::other(words)
}

fn of_its_certificate(why: &CertificateError) -> String {
    match why {
        CertificateError::UnknownIssuer => {
            "its certificate is signed by an unknown authority (add the authority with --tls-ca)"
                .into()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "its certificate has expired".into()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "its certificate is not valid yet".into()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "its certificate is for another host".into()
        }
        CertificateError::Revoked => "its certificate was revoked".into(),
        other => format!("its certificate is not accepted: {other}"),
    }
}
