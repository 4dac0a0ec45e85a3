//! The header with which a proxy says whose connection it passes on (HAProxy's PROXY protocol, versions 1 and 2).
//!
//! ```text
//! 1   PROXY TCP4 192.0.2.1 198.51.100.1 56324 443 CR LF                 at most 107 bytes; or PROXY UNKNOWN … CR LF
//! 2   | CR LF CR LF 0 CR LF Q U I T LF | 2, command | family | length | addresses, ports | further values … |
//!       12                               1            1        2        12 or 36
//! ```
//!
//! The header is the first of the connection; what the client sends follows, often in the same segment. A proxy that
//! checks a server sends a header of its own connection: it has no addresses.

use std::net::IpAddr;

use memchr::memchr;

use crate::opening::{Bytes, LOOKED_AT, Opening};
use crate::text::Text;
use crate::{Extractor, Found, Kind, Payload, Progress, Unread};

const NAME: &[u8] = b"PROXY ";
/// The longest line with its end.
const LONGEST: usize = 107;
const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
/// The signature, the command, the family and the length.
const HEAD: usize = 16;
/// Most bytes behind the head.
const REST_MAX: usize = 4_096;

pub(crate) struct Proxy;

impl Extractor for Proxy {
    const TCP: &'static [Opening] = &[
        Opening {
            first: Bytes::of(b"P"),
            third: Bytes::of(b"O"),
            sixth: Bytes::of(b" "),
            eighth: Bytes::of(b"CN"),
            from: None,
            ..Opening::ANY
        },
        Opening {
            first: Bytes::of(b"\r"),
            third: Bytes::of(b"\r"),
            sixth: Bytes::of(b"\r"),
            eighth: Bytes::of(b"Q"),
            from: None,
            ..Opening::ANY
        },
    ];

    type State = ();

    fn read((): &mut (), payload: &Payload<'_>, found: Found<'_>) -> Result<Progress, Unread> {
        // Fewer bytes are often an empty line of another protocol.
        let header = match payload.bytes.first_chunk::<LOOKED_AT>() {
            None => return Ok(Progress::Other),
            Some([b'P', ..]) => line(payload.bytes),
            Some(_) => binary(payload.bytes),
        };
        let Header { ends, len } = match header {
            Ok(header) => header,
            Err(Unfinished::Other) => return Ok(Progress::Other),
            Err(Unfinished::More) => return Ok(Progress::More(0)),
            Err(Unfinished::Malformed) => return Err(Unread::Malformed),
        };
        found(Kind::Protocol, b"proxy");
        if let Some([source, destination]) = ends {
            found(Kind::ProxySourceAddress, Text::of(source.0).bytes());
            found(Kind::ProxyDestinationAddress, Text::of(destination.0).bytes());
            found(Kind::ProxySourcePort, Text::number(source.1.into()).bytes());
            found(Kind::ProxyDestinationPort, Text::number(destination.1.into()).bytes());
        }
        Ok(Progress::Preface(len))
    }
}

type End = (IpAddr, u16);

/// A header.
#[derive(Debug, PartialEq, Eq)]
struct Header {
    /// The client, and what it connected to; `None`: unknown.
    ends: Option<[End; 2]>,
    /// The length of the header.
    len: usize,
}

/// Why there is no header.
#[derive(Debug, PartialEq, Eq)]
enum Unfinished {
    Other,
    More,
    Malformed,
}

/// Reads a header of version 1.
fn line(bytes: &[u8]) -> Result<Header, Unfinished> {
    let begins = bytes.starts_with(NAME) || NAME.starts_with(bytes);
    if !begins {
        return Err(Unfinished::Other);
    }
    let head = &bytes[..bytes.len().min(LONGEST)];
    let Some(end) = memchr(b'\n', head) else {
        return Err(if head.len() < LONGEST { Unfinished::More } else { Unfinished::Other });
    };
    let text = std::str::from_utf8(&head[..end]).map_err(|_| Unfinished::Other)?;
    let text = text.strip_suffix('\r').ok_or(Unfinished::Other)?;
    let mut words = text.split(' ').skip(1);
    let len = end + 1;
    let is_v4 = match words.next() {
        Some("UNKNOWN") => return Ok(Header { ends: None, len }),
        Some("TCP4") => true,
        Some("TCP6") => false,
        _ => return Err(Unfinished::Other),
    };
    let mut read = || {
        let [source, destination] = [words.next()?, words.next()?];
        let ports = [words.next()?.parse().ok()?, words.next()?.parse().ok()?];
        let addresses: [IpAddr; 2] = [source.parse().ok()?, destination.parse().ok()?];
        let fits = addresses.iter().all(|address| address.is_ipv4() == is_v4);
        let [source, destination] = addresses;
        (fits && words.next().is_none()).then_some([(source, ports[0]), (destination, ports[1])])
    };
    let ends = read().ok_or(Unfinished::Malformed)?;
    Ok(Header { ends: Some(ends), len })
}

/// Reads a header of version 2.
fn binary(bytes: &[u8]) -> Result<Header, Unfinished> {
    const LOCAL: u8 = 0x20;
    const PROXIED: u8 = 0x21;
    if !bytes.starts_with(SIGNATURE) && !SIGNATURE.starts_with(bytes) {
        return Err(Unfinished::Other);
    }
    let Some((head, rest)) = bytes.split_first_chunk::<HEAD>() else {
        return Err(Unfinished::More);
    };
    let &[.., command, family, high, low] = head;
    let len = usize::from(u16::from_be_bytes([high, low]));
    if !matches!(command, LOCAL | PROXIED) || len > REST_MAX {
        return Err(Unfinished::Malformed);
    }
    let rest = rest.get(..len).ok_or(Unfinished::More)?;
    let ends = match (command, family >> 4) {
        (PROXIED, 1) => Some(ends::<4>(rest)),
        (PROXIED, 2) => Some(ends::<16>(rest)),
        // Of its own connection; unknown; between Unix sockets.
        _ => None,
    };
    let ends = ends.map(|ends| ends.ok_or(Unfinished::Malformed)).transpose()?;
    Ok(Header { ends, len: HEAD + len })
}

/// Both addresses and both ports.
fn ends<const LEN: usize>(bytes: &[u8]) -> Option<[End; 2]>
where
    IpAddr: From<[u8; LEN]>,
{
    let (&source, rest) = bytes.split_first_chunk::<LEN>()?;
    let (&destination, rest) = rest.split_first_chunk::<LEN>()?;
    let &[a, b, c, d] = rest.first_chunk::<4>()?;
    let ports = [[a, b], [c, d]].map(u16::from_be_bytes);
    Some([(source.into(), ports[0]), (destination.into(), ports[1])])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(source: &str, destination: &str, len: usize) -> Result<Header, Unfinished> {
        let end = |text: &str| {
            let end: std::net::SocketAddr = text.parse().unwrap();
            (end.ip(), end.port())
        };
        Ok(Header { ends: Some([end(source), end(destination)]), len })
    }

    #[test]
    fn lines() {
        let four = b"PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\nGET /";
        assert_eq!(line(four), found("192.0.2.1:56324", "198.51.100.1:443", 45));
        let six = b"PROXY TCP6 2001:db8::1 2001:db8::2 1 65535\r\n";
        assert_eq!(line(six), found("[2001:db8::1]:1", "[2001:db8::2]:65535", 44));
        assert_eq!(line(b"PROXY UNKNOWN a b\r\n"), Ok(Header { ends: None, len: 19 }));
        for len in 0..45 {
            assert_eq!(line(&four[..len]), Err(Unfinished::More), "{len}");
        }
        for other in [
            "PROXY TCP4 192.0.2.1 198.51.100.1 56324\r\n",
            "PROXY TCP4 192.0.2.1 198.51.100.1 56324 65536\r\n",
            "PROXY TCP6 192.0.2.1 198.51.100.1 56324 443\r\n",
            "PROXY TCP4 192.0.2.1 198.51.100.1 56324 443 1\r\n",
        ] {
            assert_eq!(line(other.as_bytes()), Err(Unfinished::Malformed), "{other}");
        }
        for other in ["POST / HTTP/1.1\r\n", "PROXY TCP5 \r\n", "PROXY TCP4 \n"] {
            assert_eq!(line(other.as_bytes()), Err(Unfinished::Other), "{other}");
        }
        assert_eq!(line(&[NAME, &[b'x'; 200]].concat()), Err(Unfinished::Other));
    }

    #[test]
    fn binary_headers() {
        let header = |command: u8, family: u8, rest: &[u8]| {
            let [.., high, low] = rest.len().to_be_bytes();
            [SIGNATURE, &[command, family, high, low], rest].concat()
        };
        let four = header(0x21, 0x11, &[192, 0, 2, 1, 198, 51, 100, 1, 0xdc, 4, 1, 0xbb, 9, 9, 9]);
        assert_eq!(binary(&four), found("192.0.2.1:56324", "198.51.100.1:443", 31));
        let mut addresses = [0; 36];
        (addresses[15], addresses[31], addresses[33], addresses[35]) = (1, 2, 3, 4);
        let six = header(0x21, 0x21, &addresses);
        assert_eq!(binary(&six), found("[::1]:3", "[::2]:4", 52));
        for len in 0..four.len() {
            assert_eq!(binary(&four[..len]), Err(Unfinished::More), "{len}");
        }
        assert_eq!(binary(&header(0x20, 0, b"")), Ok(Header { ends: None, len: 16 }));
        assert_eq!(binary(&header(0x21, 0x31, &[0; 216])), Ok(Header { ends: None, len: 232 }));
        for other in [header(0x11, 0x11, &[0; 12]), header(0x21, 0x11, &[0; 11])] {
            assert_eq!(binary(&other), Err(Unfinished::Malformed));
        }
        assert_eq!(binary(b"\r\n\r\nx"), Err(Unfinished::Other));
    }
}
