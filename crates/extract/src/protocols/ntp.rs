//! NTP (RFC 5905, section 7.3): the mode and the stratum of messages from or to port 123.
//!
//! ```text
//!   2 bits   3 bits    3 bits     8 bits
//! | leap  | version |  mode   | stratum | poll | precision | …     48 bytes, then extensions and a MAC
//! ```
//!
//! Control messages (mode 6) have at least 12 bytes, private ones (mode 7) at least 8, and neither has a stratum.

use ringtap_wire::Flags;

use crate::{Extractor, Found, Kind, Payload, Progress, Unread};

/// The largest stratum: not synchronised.
const STRATUM_MAX: u8 = 16;

pub(crate) struct Ntp;

impl Extractor for Ntp {
    const PORTS: &'static [u16] = &[123];

    type State = ();

    fn read((): &mut (), payload: &Payload<'_>, found: Found<'_>) -> Result<Progress, Unread> {
        let &Payload { record, bytes, .. } = payload;
        let &[first, stratum, ..] = bytes else { return Ok(Progress::Other) };
        let (version, mode) = (first >> 3 & 7, first & 7);
        let least = match mode {
            1..=5 => 48,
            6 => 12,
            7 => 8,
            _ => return Ok(Progress::Other),
        };
        let timed = mode < 6;
        if !matches!(version, 1..=4) || timed && stratum > STRATUM_MAX {
            return Ok(Progress::Other);
        }
        if record.flags.contains(Flags::TRUNCATED) {
            if bytes.len() < least {
                return Err(Unread::Truncated);
            }
        } else if bytes.len() < least || bytes.len() % 4 != 0 {
            return Ok(Progress::Other);
        }
        found(Kind::Protocol, b"ntp");
        found(Kind::NtpMode, &[b'0' + mode]);
        if timed {
            let digits = [b'0' + stratum / 10, b'0' + stratum % 10];
            found(Kind::NtpStratum, &digits[usize::from(stratum < 10)..]);
        }
        Ok(Progress::Done)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use ringtap_wire::PacketRecord;

    use super::*;

    fn read(bytes: &[u8]) -> (Vec<(Kind, String)>, Result<Progress, Unread>) {
        let record = &PacketRecord { src_port: 123, ..PacketRecord::EMPTY };
        let mut facts = Vec::new();
        let read =
            Ntp::read(&mut (), &Payload { record, bytes, sequence: 0 }, &mut |kind, value| {
                facts.push((kind, String::from_utf8_lossy(value).into_owned()));
            });
        (facts, read)
    }

    /// A message with this first byte and stratum.
    fn message(first: u8, stratum: u8, len: usize) -> Vec<u8> {
        let mut message = vec![0; len];
        message[..2].copy_from_slice(&[first, stratum]);
        message
    }

    fn facts(mode: &str, stratum: Option<&str>) -> Vec<(Kind, String)> {
        let mut facts = vec![(Kind::Protocol, "ntp".into()), (Kind::NtpMode, mode.into())];
        facts.extend(stratum.map(|stratum| (Kind::NtpStratum, stratum.into())));
        facts
    }

    #[test]
    fn mode_and_stratum_are_read() {
        let done = Ok(Progress::Done);
        assert_eq!(read(&message(0xe3, 0, 48)), (facts("3", Some("0")), done));
        assert_eq!(read(&message(0x24, 2, 68)), (facts("4", Some("2")), done));
        assert_eq!(read(&message(0x1c, 16, 48)), (facts("4", Some("16")), done));
        assert_eq!(read(&message(0x16, 2, 12)), (facts("6", None), done));
        assert_eq!(read(&message(0x17, 0, 8)), (facts("7", None), done));
    }

    #[test]
    fn other_datagrams_are_not_ntp() {
        let other = (Vec::new(), Ok(Progress::Other));
        for message in [
            message(0x24, 17, 48),
            message(0x20, 2, 48),
            message(0x04, 2, 48),
            message(0x2c, 2, 48),
            message(0x24, 2, 47),
            message(0x24, 2, 49),
            message(0x16, 2, 11),
            vec![0x24],
            Vec::new(),
        ] {
            assert_eq!(read(&message), other);
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = read(&bytes);
        }
    }
}
