//! SSH: the version lines of both sides (RFC 4253, section 4.2).
//!
//! ```text
//! SSH-2.0-OpenSSH_9.6 comment CR LF
//!     └ version └ software                at most 255 bytes with CR and LF
//! ```
//!
//! The line must begin a segment. It does not say which side sent it, and either side may send first: OpenSSH's client
//! often does. So the ports decide: the side with port 22 is the server, else the side with the lower port, because a
//! client's port is ephemeral and usually higher. Between equal ports the lower address counts as the server.

use ringtap_wire::PacketRecord;

use crate::opening::{Bytes, Opening};
use crate::{Extractor, Found, Kind, Payload, Progress, Unread};

/// The longest line with its end.
const LONGEST: usize = 255;
const PORT: u16 = 22;

pub(crate) struct Ssh;

impl Extractor for Ssh {
    const TCP: &'static [Opening] = &[Opening {
        first: Bytes::of(b"S"),
        third: Bytes::of(b"H"),
        sixth: Bytes::of(b"."),
        ..Opening::ANY
    }];

    type State = ();

    fn read((): &mut (), payload: &Payload<'_>, found: Found<'_>) -> Result<Progress, Unread> {
        Ok(match line(payload.bytes) {
            Line::Other => Progress::Other,
            Line::Unfinished => Progress::More(0),
            Line::Version(text) => {
                found(Kind::Protocol, b"ssh");
                let server = is_from_server(payload.record);
                found(if server { Kind::SshServer } else { Kind::SshClient }, text);
                Progress::Done
            }
        })
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Line<'a> {
    /// Not a version line.
    Other,
    /// It continues in the next segment.
    Unfinished,
    /// The line without its end.
    Version(&'a [u8]),
}

/// Reads the version line at the start of a segment.
fn line(bytes: &[u8]) -> Line<'_> {
    let head = &bytes[..bytes.len().min(LONGEST)];
    let end = head.iter().position(|&byte| byte == b'\n');
    let text = &head[..end.unwrap_or(head.len())];
    let text = text.strip_suffix(b"\r").unwrap_or(text);
    if !is_version(text) || !text.iter().all(|byte| matches!(byte, b' '..=b'~')) {
        return Line::Other;
    }
    match end {
        Some(_) => Line::Version(text),
        None if bytes.len() < LONGEST => Line::Unfinished,
        None => Line::Other,
    }
}

/// `SSH-`, a version such as 2.0, 1.99 or 1.5, `-` and at least one more byte.
fn is_version(text: &[u8]) -> bool {
    let Some(rest) = text.strip_prefix(b"SSH-") else { return false };
    let Some(end) = rest.iter().take(5).position(|&byte| byte == b'-') else { return false };
    matches!(&rest[..end], [b'1' | b'2', b'.', minor @ ..]
        if !minor.is_empty() && minor.iter().all(u8::is_ascii_digit))
        && rest.len() > end + 1
}

fn is_from_server(record: &PacketRecord) -> bool {
    let &PacketRecord { src_port, dst_port, .. } = record;
    match (src_port == PORT, dst_port == PORT) {
        (true, false) => true,
        (false, true) => false,
        _ => (src_port, record.src) < (dst_port, record.dst),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(ports: [u16; 2], bytes: &[u8]) -> (Vec<(Kind, String)>, Result<Progress, Unread>) {
        let [src_port, dst_port] = ports;
        let record = &PacketRecord { src_port, dst_port, ..PacketRecord::EMPTY };
        let mut facts = Vec::new();
        let read =
            Ssh::read(&mut (), &Payload { record, bytes, sequence: 0 }, &mut |kind, value| {
                facts.push((kind, String::from_utf8_lossy(value).into_owned()));
            });
        (facts, read)
    }

    #[test]
    fn both_sides_are_read() {
        let line = b"SSH-2.0-OpenSSH_8.9p1 Ubuntu-3ubuntu0.10\r\n\0\0\x05\xac";
        let text = "SSH-2.0-OpenSSH_8.9p1 Ubuntu-3ubuntu0.10";
        for (ports, kind) in [
            ([22, 50_000], Kind::SshServer),
            ([50_000, 22], Kind::SshClient),
            ([22, 21], Kind::SshServer),
            ([2_222, 50_000], Kind::SshServer),
            ([50_000, 2_222], Kind::SshClient),
        ] {
            let facts = vec![(Kind::Protocol, "ssh".into()), (kind, text.into())];
            assert_eq!(read(ports, line), (facts, Ok(Progress::Done)), "{ports:?}");
        }
        for line in ["SSH-1.99-Cisco-1.25", "SSH-1.5-x", "SSH-2.0-dropbear_2019.78"] {
            assert_eq!(read([22, 50_000], format!("{line}\n").as_bytes()).0[1].1, line);
        }
    }

    #[test]
    fn a_line_may_continue_in_the_next_segment() {
        assert_eq!(line(b"SSH-2.0-Open"), Line::Unfinished);
        assert_eq!(line(b"SSH-2.0-Open\r"), Line::Unfinished);
        let long = [b"SSH-2.0-".as_slice(), &[b'x'; 300]].concat();
        assert_eq!(line(&long), Line::Other);
        assert_eq!(line(&long[..254]), Line::Unfinished);
    }

    #[test]
    fn other_lines_are_no_version() {
        let others: [&[u8]; 8] = [
            b"SSH-2.0-\r\n",
            b"SSH-2.0\r\n",
            b"SSH-2.0-a\x80\r\n",
            b"SSH-2.0-a\0b\r\n",
            b"SSH-3.0-a\r\n",
            b"SSH-2.x-a\r\n",
            b"SSHA2.0-a\r\n",
            b"",
        ];
        for other in others {
            assert_eq!(line(other), Line::Other, "{other:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(rest in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = read([1, 2], &rest);
            let _ = read([1, 2], &[b"SSH-2.0-", &rest[..]].concat());
        }
    }
}
