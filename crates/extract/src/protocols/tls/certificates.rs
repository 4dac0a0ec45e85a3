//! Certificates that were read before.
//!
//! Most certificates of a network come from a few servers, and to read one costs a digest and many allocations. What
//! follows from its bytes is kept with them, and they are compared as a whole.
//!
//! Bounds: the memory given to [`Certificates::new`]; a new certificate makes the oldest ones leave. What a certificate
//! says does not depend on them.

use std::hash::{BuildHasher, Hasher};

use ringtap_base::Aged;

use super::certificate::{Certificate, chain};
use crate::hashing::Hashing;
use crate::text::Text;
use crate::{Found, Kind, State, Unread};

/// Passes on the facts of the first certificate in the body of a Certificate message, which was sent at a time.
///
/// # Errors
/// The lengths contradict each other, the certificate could not be read, or has too many names. What was read before
/// was passed on.
pub(super) fn read(
    body: &[u8],
    server_name: Option<&[u8]>,
    ts_ns: u64,
    recent: &mut Certificates,
    found: Found<'_>,
) -> Result<(), Unread> {
    let (first, count) = chain(body).ok_or(Unread::Malformed)?;
    found(Kind::Protocol, b"tls");
    found(Kind::TlsKind, b"certificate");
    found(Kind::TlsCertificateChain, Text::number(count).bytes());
    recent.read(first, |certificate| certificate.pass(server_name, ts_ns, found))
}

/// Most certificates.
const MOST: usize = 1 << 12;
/// The bytes at the end of a certificate that are hashed: of its signature.
const HASHED: usize = 64;

struct Known {
    bytes: Box<[u8]>,
    certificate: Certificate,
}

impl Known {
    /// Bytes beside its place in the table.
    fn memory(&self) -> usize {
        self.bytes.len() + self.certificate.memory()
    }
}

type Table = Aged<u64, Known, Hashing>;

/// Recent certificates, by their hash.
pub(super) struct Certificates {
    all: Table,
    /// Bytes beside the table, and most bytes with it.
    bytes: usize,
    bytes_max: usize,
}

impl State for Certificates {
    fn new(memory: usize) -> Self {
        let most = (memory / Table::ENTRY_BYTES).min(MOST);
        Self { all: Aged::new(most, Hashing::default()), bytes: 0, bytes_max: memory }
    }

    #[cfg(test)]
    fn memory(&self) -> usize {
        self.bytes + self.all.len() * Table::ENTRY_BYTES
    }
}

impl Certificates {
    /// Passes the certificate with these bytes to `pass`.
    pub(super) fn read<T>(&mut self, bytes: &[u8], pass: impl FnOnce(&Certificate) -> T) -> T {
        let mut hasher = self.all.hasher().build_hasher();
        hasher.write(&bytes[bytes.len().saturating_sub(HASHED)..]);
        let hash = hasher.finish();
        if let Some(known) = self.all.get(&hash)
            && *known.bytes == *bytes
        {
            return pass(&known.certificate);
        }
        let certificate = Certificate::read(bytes);
        let passed = pass(&certificate);
        self.keep(hash, Known { bytes: bytes.into(), certificate });
        passed
    }

    fn keep(&mut self, hash: u64, known: Known) {
        // One of many names would make all others leave.
        if known.memory() > self.bytes_max / 8 {
            return;
        }
        self.bytes += known.memory();
        let (replaced, evicted) = self.all.insert(hash, known);
        let gone = replaced.into_iter().chain(evicted.map(|(_, known)| known));
        self.bytes -= gone.map(|known| known.memory()).sum::<usize>();
        while self.bytes + self.all.len() * Table::ENTRY_BYTES > self.bytes_max
            && let Some((_, known)) = self.all.pop_oldest()
        {
            self.bytes -= known.memory();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of facts of what is no certificate: its digest.
    fn read(certificates: &mut Certificates, bytes: &[u8]) -> bool {
        let mut facts = Vec::new();
        let read = certificates.read(bytes, |certificate| {
            certificate.pass(None, 0, &mut |kind, value: &[u8]| facts.push((kind, value.to_vec())))
        });
        assert!(read.is_err());
        let mut digits = [0; 64];
        super::super::hex(ring::digest::digest(&ring::digest::SHA256, bytes).as_ref(), &mut digits);
        facts == [(Kind::TlsCertificateSha256, digits.to_vec())]
    }

    #[test]
    fn certificates_with_the_same_end_are_distinguished() {
        let mut certificates = Certificates::new(1 << 20);
        for _ in 0..3 {
            for first in 0..4 {
                let mut bytes = [7; 200];
                bytes[0] = first;
                assert!(read(&mut certificates, &bytes));
            }
        }
        assert_eq!(certificates.all.len(), 1);
    }

    #[test]
    fn the_memory_is_bounded() {
        for memory in [0, 100, 10_000] {
            let mut certificates = Certificates::new(memory);
            for number in 0..1_000_u32 {
                let bytes = number.to_be_bytes().repeat(1 + number as usize % 300);
                assert!(read(&mut certificates, &bytes));
                assert!(certificates.memory() <= memory, "{memory}");
            }
            assert_eq!(certificates.all.is_empty(), memory < 10_000);
        }
    }
}
