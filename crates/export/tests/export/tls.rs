//! TLS with collectors and a webhook on loopback and generated certificates: data that arrive, and errors of refused
//! connections.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use ringtap_export::{Handle, Notice, Output, Prepared, Settings, Severity, Summary, Tls};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};

use crate::links::{export_with, flows, wait_until};

/// An authority: signs certificates, and has a certificate.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
    der: CertificateDer<'static>,
}

/// A certificate with its key, both in DER and PEM.
struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: Vec<u8>,
    pem: [String; 2],
}

impl Authority {
    fn new(name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let own = params.self_signed(&key).unwrap();
        let (pem, der) = (own.pem(), own.der().clone());
        Self { issuer: Issuer::new(params, key), pem, der }
    }

    /// A certificate for this host, valid to the end of a year.
    fn certify(&self, host: &str, year: i32) -> Identity {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![host.to_owned()]).unwrap();
        params.not_after = date_time_ymd(year, 12, 31);
        let own = params.signed_by(&key, &self.issuer).unwrap();
        let pem = [own.pem(), key.serialize_pem()];
        Identity { chain: vec![own.der().clone()], key: key.serialize_der(), pem }
    }
}

/// A collector's configuration; with `clients` it requires a certificate signed by this authority.
fn config(own: &Identity, clients: Option<&Authority>) -> Arc<ServerConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider));
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(authority) => {
            let mut roots = RootCertStore::empty();
            roots.add(authority.der.clone()).unwrap();
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
            builder.with_client_cert_verifier(verifier.unwrap())
        }
    };
    let key = PrivateKeyDer::try_from(own.key.clone()).unwrap();
    Arc::new(builder.with_single_cert(own.chain.clone(), key).unwrap())
}

fn decrypted(stream: TcpStream, config: &Arc<ServerConfig>) -> std::io::Result<Vec<u8>> {
    let session = ServerConnection::new(Arc::clone(config)).unwrap();
    let mut octets = Vec::new();
    StreamOwned::new(session, stream).read_to_end(&mut octets)?;
    Ok(octets)
}

/// Settings with one authority and, if given, our certificate. The files exist as long as the folder.
fn settings(folder: &tempfile::TempDir, known: &Authority, own: Option<&Identity>) -> Settings {
    let write = |name: &str, pem: &str| -> PathBuf {
        let path = folder.path().join(name);
        std::fs::write(&path, pem).unwrap();
        path
    };
    let identity = own.map(|own| (write("own.pem", &own.pem[0]), write("own.key", &own.pem[1])));
    let tls = Tls { authorities: Some(write("authority.pem", &known.pem)), identity };
    Settings { tls, ..Settings::default() }
}

/// Exports to a collector that handles each connection with `serve`, until there are no more.
fn export_to(settings: &Settings, count: u64, serve: impl Fn(TcpStream) + Send + Sync) -> Summary {
    export_halves_to(settings, count, serve, |_| {})
}

/// Exports to a collector; calls `half_time` between the first and the second half of the records.
fn export_halves_to(
    settings: &Settings,
    count: u64,
    serve: impl Fn(TcpStream) + Send + Sync,
    half_time: impl FnOnce(&Handle),
) -> Summary {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::scope(|scope| {
        let server = scope.spawn(|| {
            while let Ok((stream, _)) = listener.accept() {
                // A single octet means that the test has ended.
                let mut first = [0; 2];
                if stream.peek(&mut first).unwrap_or(0) == 1 {
                    return;
                }
                serve(stream);
            }
        });
        let summary = export_with(settings, &format!("ipfix+tls://{address}"), count, half_time);
        TcpStream::connect(address).unwrap().write_all(&[0]).unwrap();
        server.join().unwrap();
        summary
    })
}

/// Nothing was sent, for this reason.
fn refused(summary: &Summary, count: u64, words: &str) {
    assert_eq!((summary.sent.flows.records, summary.sent.messages), (0, 0), "{summary:?}");
    assert_eq!(summary.not_sent["too_late"].records, count);
    assert!(summary.failure.as_ref().unwrap().contains(words), "{summary:?}");
}

#[test]
fn tls_carries_the_same_data_as_tcp() {
    let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::new("known"));
    let server = config(&authority.certify("127.0.0.1", 2999), None);
    let received = std::sync::Mutex::new(Vec::new());
    let summary = export_to(&settings(&folder, &authority, None), 20_000, |stream| {
        received.lock().unwrap().push(decrypted(stream, &server).unwrap());
    });
    assert_eq!((summary.sent.flows.records, &summary.failure), (20_000, &None), "{summary:?}");
    let over_tls = received.into_inner().unwrap().concat();
    assert_eq!(flows(&over_tls), 20_000);

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("ipfix+tcp://{}", listener.local_addr().unwrap());
    let over_tcp = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut octets = Vec::new();
            listener.accept().unwrap().0.read_to_end(&mut octets).unwrap();
            octets
        });
        export_with(&Settings::default(), &url, 20_000, |_| {});
        reader.join().unwrap()
    });
    assert!(over_tls == over_tcp, "octet by octet");
}

#[test]
fn a_collector_with_an_invalid_certificate_gets_nothing() {
    let (known, other) = (Authority::new("known"), Authority::new("other"));
    let cases = [
        (known.certify("collector.example", 2999), "for another host"),
        (known.certify("127.0.0.1", 2001), "expired"),
        (other.certify("127.0.0.1", 2999), "signed by an unknown authority"),
    ];
    std::thread::scope(|scope| {
        for (identity, words) in &cases {
            let known = &known;
            scope.spawn(move || {
                let folder = tempfile::tempdir().unwrap();
                let server = config(identity, None);
                let summary = export_to(&settings(&folder, known, None), 100, |stream| {
                    assert!(decrypted(stream, &server).is_err(), "{words}");
                });
                refused(&summary, 100, words);
            });
        }
        scope.spawn(|| {
            let folder = tempfile::tempdir().unwrap();
            let summary = export_to(&settings(&folder, &known, None), 100, |mut stream| {
                let _ = stream.write_all(b"220 mail.example ESMTP\r\n");
                let _ = stream.read(&mut [0; 1000]);
            });
            refused(&summary, 100, "not TLS");
        });
    });
}

#[test]
fn a_client_certificate_is_sent_on_request() {
    let known = Authority::new("known");
    let server = config(&known.certify("127.0.0.1", 2999), Some(&known));
    let exporter = known.certify("exporter.example", 2999);
    let stranger = Authority::new("other").certify("exporter.example", 2999);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let folder = tempfile::tempdir().unwrap();
            let received = std::sync::Mutex::new(Vec::new());
            let summary = export_to(&settings(&folder, &known, Some(&exporter)), 1000, |stream| {
                received.lock().unwrap().push(decrypted(stream, &server).unwrap());
            });
            assert_eq!((summary.lost(), &summary.failure), (0, &None), "{summary:?}");
            assert_eq!(flows(&received.lock().unwrap().concat()), 1000);
        });
        for (own, words) in
            [(None, "asks for a certificate"), (Some(&stranger), "refused our certificate")]
        {
            let (known, server) = (&known, &server);
            scope.spawn(move || {
                let folder = tempfile::tempdir().unwrap();
                let summary = export_to(&settings(&folder, known, own), 100, |stream| {
                    assert!(decrypted(stream, server).is_err());
                });
                refused(&summary, 100, words);
            });
        }
    });
}

#[test]
fn a_hello_offers_neither_old_versions_nor_suites_without_encryption() {
    let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::new("known"));
    let server = config(&authority.certify("127.0.0.1", 2999), None);
    let hellos = std::sync::Mutex::new(Vec::new());
    let summary = export_to(&settings(&folder, &authority, None), 100, |stream| {
        let mut hello = vec![0; 4_096];
        let len = stream.peek(&mut hello).unwrap();
        hellos.lock().unwrap().push(hello[..len].to_vec());
        decrypted(stream, &server).unwrap();
    });
    assert_eq!((summary.sent.flows.records, &summary.failure), (100, &None), "{summary:?}");
    let hello = hellos.into_inner().unwrap().remove(0);
    // The extension supported_versions: TLS 1.3 and 1.2.
    let versions = [0, 43, 0, 5, 4, 3, 4, 3, 3];
    assert!(hello.windows(versions.len()).any(|octets| octets == versions), "{hello:?}");
    // Behind headers, version and random number: the session, then the suites.
    let at = 5 + 4 + 2 + 32;
    let at = at + 1 + usize::from(hello[at]);
    let len = usize::from(u16::from_be_bytes([hello[at], hello[at + 1]]));
    let suites = hello[at + 2..at + 2 + len].chunks(2).map(|suite| [suite[0], suite[1]]);
    let suites: Vec<_> = suites.collect();
    // All have AES-GCM or ChaCha20-Poly1305; the last one says that renegotiation is secure.
    let encrypted = [
        [0x13, 1],
        [0x13, 2],
        [0x13, 3],
        [0xc0, 0x2b],
        [0xc0, 0x2c],
        [0xc0, 0x2f],
        [0xc0, 0x30],
        [0xcc, 0xa8],
        [0xcc, 0xa9],
        [0, 0xff],
    ];
    assert!(suites.len() > 3 && suites.iter().all(|suite| encrypted.contains(suite)), "{suites:?}");
}

#[test]
fn a_collector_may_have_tls_1_2_alone() {
    let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::new("known"));
    let own = authority.certify("127.0.0.1", 2999);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider);
    let builder = builder.with_protocol_versions(&[&rustls::version::TLS12]).unwrap();
    let key = PrivateKeyDer::try_from(own.key).unwrap();
    let server = builder.with_no_client_auth().with_single_cert(own.chain, key).unwrap();
    let (server, received) = (Arc::new(server), std::sync::Mutex::new(Vec::new()));
    let summary = export_to(&settings(&folder, &authority, None), 100, |stream| {
        received.lock().unwrap().push(decrypted(stream, &server).unwrap());
    });
    assert_eq!((summary.sent.flows.records, &summary.failure), (100, &None), "{summary:?}");
    assert_eq!(flows(&received.into_inner().unwrap().concat()), 100);
}

#[test]
fn a_tls_collector_that_restarts_is_found_again() {
    let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::new("known"));
    let server = config(&authority.certify("127.0.0.1", 2999), None);
    let (cut, received) = (AtomicBool::new(false), std::sync::Mutex::new(Vec::new()));
    let serve = |stream| {
        if !cut.load(Ordering::SeqCst) {
            let session = ServerConnection::new(Arc::clone(&server)).unwrap();
            let _ = StreamOwned::new(session, stream).read(&mut [0; 100]);
            cut.store(true, Ordering::SeqCst);
            return;
        }
        received.lock().unwrap().push(decrypted(stream, &server).unwrap());
    };
    let summary = export_halves_to(&settings(&folder, &authority, None), 30_000, serve, |_| {
        wait_until(|| cut.load(Ordering::SeqCst));
    });
    assert_eq!((summary.lost(), &summary.failure), (0, &None), "{summary:?}");
    let octets = received.into_inner().unwrap().concat();
    assert_eq!(octets[8..12], [0; 4], "the sequence starts again");
    let flows = flows(&octets);
    assert!((1..=30_000).contains(&flows), "{flows}");
}

#[test]
fn unreadable_certificates_are_errors_before_the_run() {
    let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::new("known"));
    let output = ["ipfix+tls://127.0.0.1:9".parse::<Output>().unwrap()];
    let mut all = settings(&folder, &authority, Some(&authority.certify("exporter.example", 2999)));
    let start = |all: &Settings| {
        let prepared = Prepared::new(&output, all.clone());
        prepared.err().map(|error| std::error::Error::source(&error).unwrap().to_string())
    };
    std::fs::write(folder.path().join("own.key"), "nothing").unwrap();
    assert!(start(&all).unwrap().contains("own.key"));
    all.tls.identity = None;
    std::fs::write(folder.path().join("authority.pem"), "").unwrap();
    assert!(start(&all).unwrap().contains("authority.pem: no certificate"));
    all.tls.authorities = Some("no/such/file".into());
    assert!(start(&all).unwrap().contains("no/such/file"));
}

#[test]
fn a_webhook_may_be_encrypted() {
    let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::new("known"));
    let server = config(&authority.certify("127.0.0.1", 2999), None);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/hook", listener.local_addr().unwrap());
    let output = [Output::Alerts(url.parse().unwrap())];
    let notice = Notice {
        json: "{\"id\":1}".into(),
        text: "a scan".into(),
        kind: "vertical_scan",
        severity: Severity::Medium,
        is_end: false,
        fields: Vec::new(),
        time_ns: 0,
        packets_of: Vec::new(),
        lost_before: 0,
    };
    let (request, summaries) = std::thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            let (stream, _) = listener.accept().unwrap();
            let session = ServerConnection::new(Arc::clone(&server)).unwrap();
            let mut stream = StreamOwned::new(session, stream);
            let (mut request, mut piece) = (Vec::new(), [0; 1000]);
            while !request.ends_with(b"{\"id\":1}") {
                let octets = stream.read(&mut piece).unwrap();
                request.extend_from_slice(&piece[..octets]);
            }
            stream.write_all(b"HTTP/1.1 202 Accepted\r\n\r\n").unwrap();
            stream.conn.send_close_notify();
            stream.flush().unwrap();
            String::from_utf8(request).unwrap()
        });
        let prepared = Prepared::new(&output, settings(&folder, &authority, None)).unwrap();
        let open = |_: &std::path::Path| Err(std::io::ErrorKind::Unsupported.into());
        let (_, mut exports) = prepared.start(1, open).unwrap();
        exports.take_alerts().send(&notice);
        (receiver.join().unwrap(), exports.finish())
    });
    assert!(request.starts_with("POST /hook HTTP/1.1\r\nHost: 127.0.0.1:"), "{request}");
    let [summary] = &summaries[..] else { panic!("{summaries:?}") };
    assert_eq!((summary.sent.flows.records, &summary.failure), (1, &None), "{summary:?}");
}
