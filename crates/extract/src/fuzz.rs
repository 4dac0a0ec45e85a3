//! The entry point of fuzz targets: any bytes become the payloads of one extractor.
//!
//! Deterministic, so each crash can be reproduced from its input.

use ringtap_wire::{Flags, PacketRecord};

use crate::payloads::Look;
use crate::streams::STREAM_MAX;
use crate::{Extractors, Kind, Payload, Payloads, SynFingerprint};

type Facts = Vec<(Kind, Vec<u8>)>;

/// Reads `bytes` with the extractor of this name: as a datagram, as a segment, and as a stream of two segments that are
/// cut where the last byte says. Panics if there is no such extractor, or if the facts contradict each other.
pub fn fuzz(name: &str, bytes: &[u8]) {
    let extractor = Extractors::NAMES.iter().position(|own| *own == name);
    let extractor = extractor.expect("the name of an extractor");
    let set = name.parse().expect("the name of an extractor");
    let new = || Payloads::new(set, 1 << 20);

    read(&mut new(), extractor, 17, 0, bytes);
    let whole = read(&mut new(), extractor, 6, 0, bytes);

    let cut = bytes.len() * usize::from(bytes.last().copied().unwrap_or(0)) / 256;
    let (first, second) = bytes.split_at(cut);
    let mut payloads = new();
    let mut facts = read(&mut payloads, extractor, 6, 0, first);
    let record = packet(6);
    if payloads.look(&record, second).stream && bytes.len() < STREAM_MAX {
        facts.extend(read(&mut payloads, extractor, 6, cut as u32, second));
        // Behind what cannot be read, the second segment may begin a message itself.
        let own = facts.strip_prefix(&whole[..]).is_some_and(|more| {
            more.is_empty() || *more == read(&mut new(), extractor, 6, cut as u32, second)
        });
        assert!(own, "cut at {cut}: {facts:?}, whole: {whole:?}");
    }
}

/// As [`fuzz`] for HTTP; and reads `bytes` as what follows the header of a response whose body is in chunks, in segments of
/// a length that the last byte chooses: in order, and with two of them exchanged or one missing. Panics if the length of the
/// body depends on the segments.
pub fn fuzz_http(bytes: &[u8]) {
    const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    fuzz("http", bytes);
    let choice = usize::from(bytes.last().copied().unwrap_or(0));
    let whole = response(&[(0, &[HEAD, bytes].concat())]);
    let mut segments = vec![(0, HEAD)];
    let len = 1 + choice % 50;
    let positions = (HEAD.len()..).step_by(len);
    segments.extend(positions.zip(bytes.chunks(len)));
    let parts = response(&segments);
    assert!(whole.is_none() || whole == parts, "{whole:?}, in segments of {len}: {parts:?}");
    let at = 1 + choice % segments.len().max(3);
    if at + 1 < segments.len() {
        segments.swap(at, at + 1);
        response(&segments);
        segments.remove(at);
        response(&segments);
    }
}

/// Reads `bytes` as the TCP header of a SYN, or of an answer if the first byte is odd. Panics if a fact is not as its kind
/// promises.
pub fn fuzz_syn(bytes: &[u8]) {
    let answers = bytes.first().is_some_and(|byte| byte & 1 != 0);
    let record = PacketRecord { tcp_flags: if answers { 18 } else { 2 }, ip_len: 60, ..packet(6) };
    let mut payloads = Payloads::new("syn".parse().expect("the name of an extractor"), 1 << 20);
    // The longest header has 60 bytes.
    let header = Payload { record: &record, bytes: &bytes[..bytes.len().min(60)], sequence: 7 };
    payloads.read_syn(&header, &mut |kind, value| {
        match kind {
            Kind::TcpSyn | Kind::TcpSynAck => assert!(SynFingerprint::of(value).is_some()),
            kind => assert_eq!((kind, value), (SYN_NUMBERS[usize::from(answers)], &b"7"[..])),
        }
        true
    });
    payloads.counts(false);
}

const SYN_NUMBERS: [Kind; 2] = [Kind::TcpSequence, Kind::TcpSynAckSequence];

/// The length of the first body in segments at these positions.
fn response(segments: &[(usize, &[u8])]) -> Option<Vec<u8>> {
    let mut payloads = Payloads::new(Extractors::ALL, 1 << 20);
    let record = &packet(6);
    let mut length = None;
    for &(at, bytes) in segments {
        let payload = Payload { record, bytes, sequence: at as u32 };
        payloads.read(&payload, &mut |kind, value| {
            if kind == Kind::HttpResponseLength && length.is_none() {
                length = Some(value.to_vec());
            }
            true
        });
    }
    payloads.counts(true);
    length
}

fn packet(protocol: u8) -> PacketRecord {
    let flags = Flags(Flags::IPV4.0 | Flags::PORTS.0 | Flags::DATA.0);
    PacketRecord { protocol, flags, src_port: 40_000, dst_port: 53, ..PacketRecord::EMPTY }
}

/// The facts in a payload, whatever it begins with. Panics if one is outside a message.
fn read(
    payloads: &mut Payloads,
    extractor: usize,
    protocol: u8,
    sequence: u32,
    bytes: &[u8],
) -> Facts {
    let record = packet(protocol);
    let stream = payloads.look(&record, bytes).stream;
    let mut facts = Facts::new();
    payloads.read_as(
        Look { protocols: 1 << extractor, by_content: 1 << extractor, stream },
        &Payload { record: &record, bytes, sequence },
        &mut |kind, value| {
            facts.push((kind, value.to_vec()));
            true
        },
    );
    assert!(facts.first().is_none_or(|(kind, _)| *kind == Kind::Protocol), "{facts:?}");
    payloads.counts(false);
    facts
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_bytes_can_be_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            Extractors::ALL.names().iter().for_each(|name| fuzz(name, &bytes));
            fuzz_syn(&bytes);
        }

        #[test]
        fn any_chunks_can_be_read(chunks in prop::collection::vec("[0-9a]{1,9}|0|;x|\r\n|HTTP/1.1 200 X\r\n", 0..30)) {
            fuzz_http(chunks.concat().as_bytes());
        }
    }
}
