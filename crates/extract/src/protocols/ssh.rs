//! SSH: the version lines of both sides (RFC 4253, section 4.2).
//!
//! ```text
//! Welcome                                     a server may send other lines before it
//! SSH-2.0-OpenSSH_9.6 comment CR LF
//!     └ version └ software                    at most 255 bytes with CR and LF
//! ```
//!
//! The line must begin a segment; behind other lines it is found if they come from port 22. It is reported up to the
//! first byte that is not printable ASCII.
//!
//! The line does not say which side sent it, and either side may send first: OpenSSH's client often does. The flow table
//! knows who sent the SYN ([`Kind::of_side`]). If it was not seen, the ports decide: the side with port 22 is the server,
//! else the side with the lower port, because a client's port is ephemeral and usually higher. Between equal ports the
//! lower address counts as the server.

use memchr::memchr;
use ringtap_wire::PacketRecord;

use crate::opening::{Bytes, Opening};
use crate::{Extractor, Found, Kind, Payload, Progress, Unread};

/// The longest line with its end.
const LONGEST: usize = 255;
const PORT: u16 = 22;
/// Most bytes of the lines before the version line.
const PRELUDE_MAX: usize = 8 * 1024;
const TEXT: Bytes = Bytes::range(b' ', b'~').and(Bytes::of(b"\t\r\n"));

pub(crate) struct Ssh;

impl Extractor for Ssh {
    const TCP: &'static [Opening] = &[
        Opening {
            first: Bytes::of(b"S"),
            third: Bytes::of(b"H"),
            sixth: Bytes::of(b"."),
            ..Opening::ANY
        },
        // Other lines of a server.
        Opening {
            first: TEXT,
            third: TEXT,
            sixth: TEXT,
            eighth: TEXT,
            from: Some(PORT),
            ..Opening::ANY
        },
    ];

    type State = ();

    fn read((): &mut (), payload: &Payload<'_>, found: Found<'_>) -> Result<Progress, Unread> {
        let Payload { record, bytes, .. } = *payload;
        let at = if record.src_port == PORT { prelude(bytes) } else { 0 };
        Ok(match line(&bytes[at..]) {
            Line::Other => Progress::Other,
            Line::Unfinished => Progress::More(at),
            Line::Version(text) => {
                found(Kind::Protocol, b"ssh");
                found(Kind::SshClient.of_side(!is_from_server(record)), text);
                Progress::Done
            }
        })
    }
}

/// The length of the lines before the one that may be the version line; 0: there is none.
fn prelude(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some(rest) = bytes.get(at..).filter(|_| at < PRELUDE_MAX) {
        if !rest.is_empty() && (rest.starts_with(NAME) || NAME.starts_with(rest)) {
            return at;
        }
        let Some(end) = memchr(b'\n', rest) else { break };
        at += end + 1;
    }
    0
}

#[derive(Debug, PartialEq, Eq)]
enum Line<'a> {
    /// Not a version line.
    Other,
    /// The line continues in the next segment.
    Unfinished,
    /// The line without its end.
    Version(&'a [u8]),
}

/// Reads the version line at the start of these bytes.
fn line(bytes: &[u8]) -> Line<'_> {
    let head = &bytes[..bytes.len().min(LONGEST)];
    let end = memchr(b'\n', head);
    let text = &head[..end.unwrap_or(head.len())];
    let printable = text.iter().position(|byte| !matches!(byte, b' '..=b'~'));
    let text = &text[..printable.unwrap_or(text.len())];
    match end {
        Some(_) if is_version(text) => Line::Version(text),
        None if (1..LONGEST).contains(&bytes.len())
            && may_be_version(text, printable.is_some()) =>
        {
            Line::Unfinished
        }
        _ => Line::Other,
    }
}

/// What a version line begins with.
const NAME: &[u8] = b"SSH-";

/// `SSH-`, a version such as 2.0, 1.99 or 1.5, `-` and at least one more byte.
fn is_version(text: &[u8]) -> bool {
    let Some(rest) = text.strip_prefix(NAME) else { return false };
    let Some(end) = rest.iter().take(5).position(|&byte| byte == b'-') else { return false };
    matches!(&rest[..end], [b'1' | b'2', b'.', minor @ ..]
        if !minor.is_empty() && minor.iter().all(u8::is_ascii_digit))
        && rest.len() > end + 1
}

/// Whether a version line can begin with this text; if it `ends`, no more of it follows.
fn may_be_version(text: &[u8], ends: bool) -> bool {
    const SHORTEST: &[u8] = b"SSH-2.0-x";
    let continues = |with: &[u8]| {
        let mut whole = [0; 2 * SHORTEST.len()];
        let len = text.len() + with.len();
        let parts = text.iter().chain(with);
        whole.iter_mut().zip(parts).for_each(|(place, byte)| *place = *byte);
        is_version(&whole[..len])
    };
    is_version(text)
        || !ends
            && text.len() <= SHORTEST.len()
            && (continues(&SHORTEST[text.len()..]) || continues(b"-x"))
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
        for text in ["SSH-2.0-a", "SSH-1.99-a", "SSH-1.5-a"] {
            for len in 1..text.len() {
                assert_eq!(line(&text.as_bytes()[..len]), Line::Unfinished, "{text} {len}");
            }
        }
    }

    #[test]
    fn a_line_is_reported_up_to_what_is_not_printable() {
        for (sent, text) in [
            (&b"SSH-2.0-OpenSSH_8.0 caf\xc3\xa9\r\n"[..], "SSH-2.0-OpenSSH_8.0 caf"),
            (b"SSH-2.0-a\0b\n", "SSH-2.0-a"),
            (b"SSH-2.0-a b\tc\r\n", "SSH-2.0-a b"),
        ] {
            assert_eq!(line(sent), Line::Version(text.as_bytes()));
        }
    }

    #[test]
    fn a_server_may_send_lines_before_its_version() {
        let sent = b"Welcome\r\n\r\nS\r\nSSH-2.0-OpenSSH_9.6\r\nmore";
        let facts =
            vec![(Kind::Protocol, "ssh".into()), (Kind::SshServer, "SSH-2.0-OpenSSH_9.6".into())];
        assert_eq!(read([22, 50_000], sent), (facts, Ok(Progress::Done)));
        assert_eq!(read([50_000, 22], sent), (vec![], Ok(Progress::Other)));
        for len in 15..33 {
            assert_eq!(read([22, 50_000], &sent[..len]), (vec![], Ok(Progress::More(14))), "{len}");
        }
        let long = [&b"x\n".repeat(PRELUDE_MAX / 2)[..], b"SSH-2.0-a\n"].concat();
        assert_eq!(read([22, 1], &long), (vec![], Ok(Progress::Other)));
        assert_eq!(read([22, 1], &long[2..]).0.len(), 2);
    }

    #[test]
    fn other_lines_are_no_version() {
        let others: [&[u8]; 11] = [
            b"SSH-2.0-\r\n",
            b"SSH-2.0\r\n",
            b"SSH-2.0-\x80a\r\n",
            b"SSH-2.0-\0b\r\n",
            b"SSH-2\0",
            b"SSH-3.0-a\r\n",
            b"SSH-2.x-a\r\n",
            b"SSHA2.0-a\r\n",
            b"SSH-2.0_",
            b"SSX",
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
