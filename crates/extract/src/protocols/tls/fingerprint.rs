//! Fingerprints of hellos: JA3, JA3S and JA4.
//!
//! ```text
//! JA3   MD5 of  version,cipher-cipher-…,extension-extension-…,group-…,point format-…     decimal
//! JA3S  MD5 of  version,cipher,extension-extension-…                                     decimal
//! JA4   t13d1516h2_8daaf6152771_e5627efa2ab1
//!       ││ ││ │ │  │            └ extensions in order of their numbers, signature algorithms as sent
//!       ││ ││ │ │  └ cipher suites in order of their numbers; both: the first 12 digits of the SHA-256
//!       ││ ││ │ └ first and last character of the first application protocol
//!       ││ ││ └ number of extensions; before it, of cipher suites
//!       ││ │└ d: with a server name, i: without
//!       │└ version
//!       └ t: TLS over TCP, q: QUIC, d: DTLS
//! ```
//!
//! Sources: github.com/salesforce/ja3; JA4, the TLS client fingerprint, github.com/FoxIO-LLC/ja4
//! (technical_details/JA4.md, BSD 3-Clause). GREASE values are left out everywhere.

use md5::{Digest, Md5};
use ring::digest::{Context, SHA256};

use super::hello::{ClientHello, ServerHello, Transport, extension};
use crate::Unread;
use crate::text::{DIGITS_MAX, decimal};

/// Most cipher suites, and most extensions, that are sorted for a JA4.
const SORTED_MAX: usize = 512;
/// Bytes that a digest gets at a time.
const ROOM: usize = 256;
/// Digits of the parts of a JA4.
const DIGITS: usize = 12;

/// The digests in the fingerprints of a client.
#[derive(Clone, Copy)]
pub(super) struct Digests {
    /// The JA3.
    pub(super) ja3: [u8; 32],
    /// Of the JA4 the digests of cipher suites and of extensions; the error is that of [`ja4`].
    ja4: Result<[[u8; DIGITS]; 2], Unread>,
}

/// The digests of a client.
pub(super) fn digests(hello: &ClientHello<'_>) -> Digests {
    Digests { ja3: ja3(hello), ja4: sorted_digests(hello) }
}

fn ja3(hello: &ClientHello<'_>) -> [u8; 32] {
    decimals(hello.version, |text| {
        text.list(hello.ciphers());
        text.list(hello.extensions.types());
        text.list(hello.groups());
        text.list(hello.point_formats());
    })
}

/// The JA3S of a server.
pub(super) fn ja3s(hello: &ServerHello<'_>) -> [u8; 32] {
    decimals(hello.version, |text| {
        text.list([hello.cipher].into_iter());
        text.list(hello.extensions.types());
    })
}

/// The MD5 of a number, and of the lists behind it.
fn decimals(first: u16, lists: impl FnOnce(&mut Gathered<&mut dyn FnMut(&[u8])>)) -> [u8; 32] {
    let mut digest = Md5::new();
    let mut update = |bytes: &[u8]| digest.update(bytes);
    let mut text = Gathered::new(&mut update as &mut dyn FnMut(&[u8]));
    text.number(first);
    lists(&mut text);
    text.pass();
    let mut text = [0; 32];
    hex(&digest.finalize(), &mut text);
    text
}

/// Short texts on their way into a digest, which gets many at a time.
struct Gathered<F> {
    bytes: [u8; ROOM],
    len: usize,
    update: F,
}

impl<F: FnMut(&[u8])> Gathered<F> {
    fn new(update: F) -> Self {
        Self { bytes: [0; ROOM], len: 0, update }
    }

    /// Adds at most [`DIGITS_MAX`] bytes.
    fn push(&mut self, text: &[u8]) {
        if self.len + text.len() > ROOM {
            self.pass();
        }
        let free = &mut self.bytes[self.len..];
        free.iter_mut().zip(text).for_each(|(place, byte)| *place = *byte);
        self.len += text.len();
    }

    fn pass(&mut self) {
        (self.update)(&self.bytes[..self.len]);
        self.len = 0;
    }

    fn number(&mut self, number: u16) {
        self.push(decimal(number.into(), &mut [0; DIGITS_MAX]));
    }

    /// Adds a comma and decimal numbers with hyphens between them.
    fn list(&mut self, numbers: impl Iterator<Item = u16>) {
        self.push(b",");
        let mut is_first = true;
        for number in numbers {
            if !std::mem::take(&mut is_first) {
                self.push(b"-");
            }
            self.number(number);
        }
    }
}

/// The JA4 of a client with these digests.
///
/// # Errors
/// There are more cipher suites or extensions than are sorted.
pub(super) fn ja4(
    hello: &ClientHello<'_>,
    digests: &Digests,
    transport: Transport,
) -> Result<[u8; 36], Unread> {
    let [ciphers, extensions] = digests.ja4?;
    let mut text = [b'_'; 36];
    text[0] = match transport {
        Transport::Tls => b't',
        Transport::Quic => b'q',
        Transport::Dtls => b'd',
    };
    text[1..3].copy_from_slice(version(hello, transport));
    let named = hello.extensions.value(extension::SERVER_NAME).is_some();
    text[3] = if named { b'd' } else { b'i' };
    text[4..6].copy_from_slice(&two_digits(hello.ciphers().count()));
    text[6..8].copy_from_slice(&two_digits(hello.extensions.types().count()));
    text[8..10].copy_from_slice(&ends(hello.extensions.application_protocols().next()));
    text[11..11 + DIGITS].copy_from_slice(&ciphers);
    text[24..24 + DIGITS].copy_from_slice(&extensions);
    Ok(text)
}

/// The digests of cipher suites and of extensions; zeros if there are none.
fn sorted_digests(hello: &ClientHello<'_>) -> Result<[[u8; DIGITS]; 2], Unread> {
    let ciphers = Sorted::new(hello.ciphers())?;
    let in_first_part = [extension::SERVER_NAME, extension::ALPN];
    let extensions =
        Sorted::new(hello.extensions.types().filter(|kind| !in_first_part.contains(kind)))?;
    let first = (ciphers.len > 0).then(|| digest_of(ciphers.values(), std::iter::empty()));
    let second =
        (extensions.len > 0).then(|| digest_of(extensions.values(), hello.signature_algorithms()));
    Ok([first, second].map(|digest| digest.unwrap_or([b'0'; DIGITS])))
}

/// The version: of supported_versions the highest, else the legacy version.
fn version(hello: &ClientHello<'_>, transport: Transport) -> &'static [u8; 2] {
    let highest = match transport {
        // Numbers of DTLS decrease with each version.
        Transport::Dtls => hello.newest_version(),
        Transport::Tls | Transport::Quic => {
            hello.supported_versions().max().unwrap_or(hello.version)
        }
    };
    match highest {
        0x0304 => b"13",
        0x0303 => b"12",
        0x0302 => b"11",
        0x0301 => b"10",
        0x0300 => b"s3",
        0x0002 => b"s2",
        0xfeff => b"d1",
        0xfefd => b"d2",
        0xfefc => b"d3",
        _ => b"00",
    }
}

/// A number in two digits, at most 99.
fn two_digits(number: usize) -> [u8; 2] {
    let number = number.min(99) as u8;
    [b'0' + number / 10, b'0' + number % 10]
}

/// The first and the last character of a name; of its hexadecimal digits, if one of them is not a letter or a digit.
fn ends(name: Option<&[u8]>) -> [u8; 2] {
    let Some(&[first, .., last] | &[first @ last]) = name else { return *b"00" };
    if first.is_ascii_alphanumeric() && last.is_ascii_alphanumeric() {
        [first, last]
    } else {
        [digit(first >> 4), digit(last & 15)]
    }
}

/// The first digits of the SHA-256 of a list, and of a second one that is not empty.
fn digest_of(first: impl Iterator<Item = u16>, second: impl Iterator<Item = u16>) -> [u8; DIGITS] {
    let mut digest = Context::new(&SHA256);
    let mut gathered = Gathered::new(|bytes: &[u8]| digest.update(bytes));
    let mut list = |numbers: &mut dyn Iterator<Item = u16>, mut separator: u8| {
        for number in numbers {
            let mut text = [separator; 5];
            hex(&number.to_be_bytes(), &mut text[1..]);
            gathered.push(&text[usize::from(separator == 0)..]);
            separator = b',';
        }
    };
    // Nothing is before the first number.
    list(&mut { first }, 0);
    list(&mut { second }, b'_');
    gathered.pass();
    let mut text = [0; DIGITS];
    hex(digest.finish().as_ref(), &mut text);
    text
}

/// Numbers in ascending order.
struct Sorted {
    values: [u16; SORTED_MAX],
    len: usize,
}

impl Sorted {
    fn new(numbers: impl Iterator<Item = u16>) -> Result<Self, Unread> {
        let mut sorted = Self { values: [0; SORTED_MAX], len: 0 };
        for number in numbers {
            *sorted.values.get_mut(sorted.len).ok_or(Unread::TooMuch)? = number;
            sorted.len += 1;
        }
        sorted.values[..sorted.len].sort_unstable();
        Ok(sorted)
    }

    fn values(&self) -> impl Iterator<Item = u16> {
        self.values[..self.len].iter().copied()
    }
}

/// Writes the hexadecimal digits of bytes, as far as there is room.
pub(crate) fn hex(bytes: &[u8], text: &mut [u8]) {
    for (pair, byte) in text.as_chunks_mut().0.iter_mut().zip(bytes) {
        *pair = [digit(byte >> 4), digit(byte & 15)];
    }
}

fn digit(value: u8) -> u8 {
    b"0123456789abcdef"[usize::from(value & 15)]
}
