//! TCP's SYN and its answer (RFC 9293, section 3.1): the length of the packet, the window, the options.
//!
//! ```text
//! fingerprint   60:64240:2-4-8-1-3:1460:7      length, window, kinds of options, largest segment, window scale
//! ```
//!
//! The payload is the TCP header. The options end with it, or with kind 0, which is the last one in the list. What the
//! header does not have is empty in the fingerprint.

use std::fmt::{Display, Write as _};

use crate::text::Text;
use crate::{Extractor, Found, Kind, Payload, Progress, Unread};

const ACK: u8 = 16;

/// Octets before the options.
const HEADER_LEN: usize = 20;
/// Most bytes of a fingerprint: forty octets of options are at most twenty kinds of three digits, or forty of one.
const MOST: usize = 128;

pub(crate) struct Syn;

impl Extractor for Syn {
    type State = ();

    fn read((): &mut (), payload: &Payload<'_>, found: Found<'_>) -> Result<Progress, Unread> {
        let &Payload { record, bytes, sequence } = payload;
        let Some((header, options)) = bytes.split_at_checked(HEADER_LEN) else {
            return Err(Unread::Truncated);
        };
        let [fingerprint, number] = if record.tcp_flags & ACK == 0 {
            [Kind::TcpSyn, Kind::TcpSequence]
        } else {
            [Kind::TcpSynAck, Kind::TcpSynAckSequence]
        };
        let window = u16::from_be_bytes([header[14], header[15]]);
        let mut text = Fingerprint::default();
        text.push(record.ip_len, ":");
        text.push(window, ":");
        let (mut segment, mut scale) = (None, None);
        let read = each_option(options, |kind, value, is_first| {
            text.push(if is_first { "" } else { "-" }, "");
            text.push(kind, "");
            match (kind, value) {
                (2, &[high, low]) => segment = segment.or(Some(u16::from_be_bytes([high, low]))),
                (3, &[own]) => scale = scale.or(Some(own)),
                _ => {}
            }
        });
        text.push(":", "");
        segment.iter().for_each(|own| text.push(own, ""));
        text.push(":", "");
        scale.iter().for_each(|own| text.push(own, ""));
        found(fingerprint, text.bytes());
        found(number, Text::number(sequence.into()).bytes());
        read.map(|()| Progress::Done)
    }
}

/// Calls `each` with the options in order: kind, value, and whether it is the first one. A length that is wrong is an
/// error, after the options before it.
fn each_option(mut options: &[u8], mut each: impl FnMut(u8, &[u8], bool)) -> Result<(), Unread> {
    let mut is_first = true;
    while let Some((&kind, rest)) = options.split_first() {
        let (value, behind) = match (kind, rest.split_first()) {
            (0, _) => (&[][..], &[][..]),
            (1, _) => (&[][..], rest),
            (_, Some((&len, rest))) => {
                let len = usize::from(len).checked_sub(2).ok_or(Unread::Malformed)?;
                rest.split_at_checked(len).ok_or(Unread::Malformed)?
            }
            _ => return Err(Unread::Malformed),
        };
        each(kind, value, std::mem::take(&mut is_first));
        options = behind;
    }
    Ok(())
}

/// A fingerprint while it is written.
struct Fingerprint {
    bytes: [u8; MOST],
    len: usize,
}

impl Default for Fingerprint {
    fn default() -> Self {
        Self { bytes: [0; MOST], len: 0 }
    }
}

impl std::fmt::Write for Fingerprint {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let place = self.bytes.get_mut(self.len..self.len + text.len()).ok_or(std::fmt::Error)?;
        place.copy_from_slice(text.as_bytes());
        self.len += text.len();
        Ok(())
    }
}

impl Fingerprint {
    fn push(&mut self, value: impl Display, behind: &str) {
        // The longest one fits.
        let _ = write!(self, "{value}{behind}");
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// The parts of a fingerprint, as a value of [`Kind::TcpSyn`] and [`Kind::TcpSynAck`] has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SynFingerprint<'a> {
    /// Octets of layer 3 of the packet.
    pub length: u32,
    /// The window, as sent.
    pub window: u16,
    /// The kinds of options in order, joined by hyphens.
    pub options: &'a str,
    /// The maximum segment size (RFC 9293, section 3.7.1).
    pub segment: Option<u16>,
    /// The shift of later windows (RFC 7323, section 2).
    pub scale: Option<u8>,
}

impl<'a> SynFingerprint<'a> {
    /// The parts of a value; `None` if it is no fingerprint.
    pub fn of(value: &'a [u8]) -> Option<Self> {
        let mut parts = std::str::from_utf8(value).ok()?.split(':');
        let mut next = || parts.next();
        let (length, window, options) = (next()?.parse().ok()?, next()?.parse().ok()?, next()?);
        let (segment, scale) = (next()?, next()?);
        if next().is_some() {
            return None;
        }
        let (segment, scale) = (segment.parse().ok(), scale.parse().ok());
        Some(Self { length, window, options, segment, scale })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use ringtap_wire::PacketRecord;

    use super::*;

    /// The facts in a header with these options.
    fn read(tcp_flags: u8, options: &[u8]) -> (Vec<(Kind, String)>, Result<Progress, Unread>) {
        let record = &PacketRecord { ip_len: 60, tcp_flags, ..PacketRecord::EMPTY };
        let mut header = vec![0; HEADER_LEN];
        header[14..16].copy_from_slice(&64_240_u16.to_be_bytes());
        let bytes = &[&header, options].concat()[..];
        let mut facts = Vec::new();
        let payload = Payload { record, bytes, sequence: 7 };
        let read = Syn::read(&mut (), &payload, &mut |kind, value| {
            facts.push((kind, String::from_utf8_lossy(value).into_owned()));
        });
        (facts, read)
    }

    fn facts(fingerprint: &str) -> Vec<(Kind, String)> {
        vec![(Kind::TcpSyn, fingerprint.into()), (Kind::TcpSequence, "7".into())]
    }

    const USUAL: [u8; 20] = [2, 4, 5, 0xb4, 4, 2, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0, 1, 3, 3, 7];

    #[test]
    fn a_syn_has_a_fingerprint_and_a_number() {
        let done = Ok(Progress::Done);
        assert_eq!(read(2, &USUAL), (facts("60:64240:2-4-8-1-3:1460:7"), done));
        assert_eq!(read(2, &[]), (facts("60:64240:::"), done));
        // Nothing behind the end of the list; of two windows the first.
        assert_eq!(read(2, &[3, 3, 0, 3, 3, 9, 0, 2]), (facts("60:64240:3-3-0::0"), done));
        let (answer, _) = read(2 | ACK, &[254, 4, 1, 2]);
        let expected = [(Kind::TcpSynAck, "60:64240:254::"), (Kind::TcpSynAckSequence, "7")];
        assert_eq!(answer, expected.map(|(kind, value)| (kind, value.to_owned())));
    }

    #[test]
    fn options_with_a_wrong_length_end_the_list() {
        for wrong in [&[8, 10][..], &[8], &[8, 1], &[8, 0]] {
            let options = [&[1, 2, 4, 2, 0], wrong].concat();
            let expected = (facts("60:64240:1-2:512:"), Err(Unread::Malformed));
            assert_eq!(read(2, &options), expected);
        }
        let record = &PacketRecord::EMPTY;
        let payload = Payload { record, bytes: &[0; 19], sequence: 0 };
        assert_eq!(Syn::read(&mut (), &payload, &mut |_, _| {}), Err(Unread::Truncated));
    }

    #[test]
    fn a_fingerprint_is_taken_apart() {
        let own = SynFingerprint::of(b"60:64240:2-4-8-1-3:1460:7").unwrap();
        assert_eq!((own.length, own.window, own.options), (60, 64_240, "2-4-8-1-3"));
        assert_eq!((own.segment, own.scale), (Some(1_460), Some(7)));
        let own = SynFingerprint::of(b"40:0:::").unwrap();
        assert_eq!((own.options, own.segment, own.scale), ("", None, None));
        for other in [&b"60:64240::"[..], b"", b"a:1:::", b"60:1::::", b"\xff:1:::"] {
            assert_eq!(SynFingerprint::of(other), None);
        }
    }

    proptest! {
        #[test]
        fn the_longest_fingerprints_fit(
            options in prop::collection::vec(prop_oneof![Just(1), Just(2), Just(254), any::<u8>()], 0..=40)
        ) {
            let (facts, _) = read(2, &options);
            let own = SynFingerprint::of(facts[0].1.as_bytes()).unwrap();
            let mut kinds = Vec::new();
            let _ = each_option(&options, |kind, _, _| kinds.push(kind.to_string()));
            prop_assert_eq!(own.options, kinds.join("-"));
        }
    }
}
