//! Client hellos of Google's versions before Q050, in packets that are not encrypted.
//!
//! ```text
//!  Q024 to Q043   | ··nn1·VR | identifier (8)? | version (4) | number (1, 2, 4, 6) | hash (12) | frames      R: reset
//!  Q044, Q046     | 1·····nn | version (4) | lengths of both (4 bits each) | identifiers | number | hash (12) | frames
//!
//!  frame          STREAM  | 1·length·offset (3)·id (2) | id | offset | length (2)? | data
//!                 others  padding 00, PING 07; from Q034 on ACK 40 to 7F, STOP_WAITING 06 | delta, as long as the number
//! ```
//!
//! `1` in the first byte of the early versions means that there are eight bytes of identifier. Up to Q033 a byte of flags precedes
//! the frames. Of a stream, identifier and offset have the byte order of the version; those of a hello are 1 and 0 in both.

use super::crypto;
use super::header::Version;

const HASH_LEN: usize = 12;
const NUMBER_LENS: [usize; 4] = [1, 2, 4, 6];

/// The version and the message of a datagram with a whole client hello.
pub(super) fn hello(bytes: &[u8]) -> Option<(&'static Version, &[u8])> {
    let &[first, v0, v1, v2, v3, lengths, ..] = bytes else { return None };
    let version;
    let (number_at, number_len) = match first {
        0x80.. => {
            version = Version::of(u32::from_be_bytes([v0, v1, v2, v3]))?;
            let id_len = |code: u8| if code == 0 { 0 } else { usize::from(code) + 3 };
            let number_len = match version.name {
                "Q044" => 4,
                "Q046" => usize::from(first & 3) + 1,
                _ => return None,
            };
            (6 + id_len(lengths >> 4) + id_len(lengths & 0x0f), number_len)
        }
        _ if first & 0xcb == 0x09 => {
            version = Version::of(u32::from_be_bytes(*bytes.get(9..)?.first_chunk()?))?;
            if !matches!(early(version)?, 24..=43) {
                return None;
            }
            (13, NUMBER_LENS[usize::from(first >> 4 & 3)])
        }
        _ => return None,
    };
    let number = early(version)?;
    let flags_len = usize::from(number < 34);
    let frames = bytes.get(number_at + number_len + HASH_LEN + flags_len..)?;
    let data = stream(frames, number, number_len)?;
    let len = crypto::chlo_len(data).filter(|_| data.starts_with(b"CHLO"))?;
    Some((version, data.get(..len)?))
}

/// The number in the name of a version.
fn early(version: &Version) -> Option<u32> {
    version.name.strip_prefix("Q0")?.parse().ok()
}

/// The data of the handshake's stream, from its start.
fn stream(mut frames: &[u8], version: u32, number_len: usize) -> Option<&[u8]> {
    const HANDSHAKE: u8 = 1;
    loop {
        let (&kind, mut rest) = frames.split_first()?;
        match kind {
            0x80.. => {
                let has_len = kind & 0x20 != 0;
                let id_len = usize::from(kind & 3) + 1;
                let offset_len = match usize::from(kind >> 2 & 7) {
                    0 => 0,
                    code => code + 1,
                };
                let (id, behind) = rest.split_at_checked(id_len)?;
                let (offset, behind) = behind.split_at_checked(offset_len)?;
                if id.iter().map(|&byte| u32::from(byte)).sum::<u32>() != HANDSHAKE.into()
                    || offset.iter().any(|&byte| byte != 0)
                {
                    return None;
                }
                if !has_len {
                    return Some(behind);
                }
                let (&len, data) = behind.split_first_chunk::<2>()?;
                let read = if version < 39 { u16::from_le_bytes } else { u16::from_be_bytes };
                return data.get(..usize::from(read(len)));
            }
            0x40..=0x7f if version >= 34 => rest = crypto::behind_google_ack(kind, rest)?,
            0x06 if version >= 34 => rest = rest.get(number_len..)?,
            0x00 | 0x07 => {}
            _ => return None,
        }
        frames = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHLO: &[u8] = b"CHLO\x02\0\0\0PAD\0\x02\0\0\0SNI\0\x0d\0\0\0--example.org";

    fn read(bytes: &[u8]) -> Option<(&'static str, &[u8])> {
        hello(bytes).map(|(version, message)| (version.name, message))
    }

    fn packet(flags: u8, version: &[u8; 4], number: &[u8], frames: &[&[u8]]) -> Vec<u8> {
        [&[flags][..], b"identity", version, number, &[9; HASH_LEN], &frames.concat()].concat()
    }

    #[test]
    fn hellos_of_all_forms_are_found() {
        let le = [&b"\xa0\x01"[..], &(CHLO.len() as u16).to_le_bytes(), CHLO].concat();
        let be = [&b"\xa0\x01"[..], &(CHLO.len() as u16).to_be_bytes(), CHLO].concat();
        let zeros = [0; 30];
        for (name, bytes) in [
            ("Q024", packet(0x0d, b"Q024", &[1], &[&[1], &le, &zeros])),
            ("Q033", packet(0x1d, b"Q033", &[1, 0], &[&[0, 0, 7], &le])),
            ("Q034", packet(0x09, b"Q034", &[1], &[&le])),
            ("Q039", packet(0x09, b"Q039", &[1], &[&zeros, &be])),
            ("Q043", packet(0x29, b"Q043", &[0, 0, 0, 1], &[b"\x40\x01\0\0\x01\0", &be])),
            ("Q043", packet(0x09, b"Q043", &[1], &[b"\x06\x01", b"\x80\x01", CHLO])),
            ("Q043", packet(0x09, b"Q043", &[1], &[b"\x87\0\0\0\x01\0\0", CHLO])),
            ("Q044", [b"\xffQ044\x50identity\0\0\0\x01", &[9; 12][..], &be].concat()),
            ("Q046", [b"\xc3Q046\x50identity\0\0\0\x01", &[9; 12][..], &be].concat()),
            ("Q046", [b"\xc0Q046\x00\x01", &[9; 12][..], &be].concat()),
        ] {
            assert_eq!(read(&bytes), Some((name, CHLO)), "{name}");
            for len in 0..bytes.len() - zeros.len() {
                assert!(read(&bytes[..len]).is_none_or(|(_, message)| message == CHLO), "{len}");
            }
        }
    }

    #[test]
    fn other_packets_are_no_hellos() {
        let be = [&b"\xa0\x01"[..], &(CHLO.len() as u16).to_be_bytes(), CHLO].concat();
        let (mut rej, mut stream, mut long) = (be.clone(), be.clone(), be.clone());
        rej[4..8].copy_from_slice(b"REJ\0");
        stream[1] = 3;
        long[3] += 1;
        for bytes in [
            packet(0x09, b"Q043", &[1], &[&rej]),
            packet(0x09, b"Q043", &[1], &[&stream]),
            packet(0x09, b"Q043", &[1], &[&long]),
            packet(0x09, b"Q099", &[1], &[&be]),
            packet(0x0b, b"Q043", &[1], &[&be]),
            packet(0x08, b"Q043", &[1], &[&be]),
            packet(0x09, b"Q043", &[1], &[b"\x02", &be]),
            [b"\xc3Q050\x50identity\0\0\0\x01", &[9; 12][..], &be].concat(),
        ] {
            assert_eq!(read(&bytes), None);
        }
    }
}
