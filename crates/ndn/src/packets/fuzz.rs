//! Entry point for fuzzers: interprets any bytes as link packets for one reassembler.
//!
//! ```text
//!  input:  | (time step | neighbour and length: 2 | packet bytes) … |
//! ```

use crate::packets::management::Command;
use crate::packets::signature::{Certificate, Signed};
use crate::packets::{
    Fragment, Headers, Interest, LpPacket, NameBuf, Packet, Reassembler, Reassembly, Rewrite,
    fragments,
};

/// Parses `bytes` as link packets; panics if the results are inconsistent.
pub fn fuzz(bytes: &[u8]) {
    let mut reassembler = Reassembler::new(3, 1000);
    let mut now = 0;
    let mut rest = bytes;
    while let Some((&[step, high, low], tail)) = rest.split_first_chunk::<3>() {
        let len = usize::from(high & 0x1f) << 8 | usize::from(low);
        let (packet, tail) = tail.split_at(len.min(tail.len()));
        rest = tail;
        now += u64::from(step);
        let Ok(lp) = LpPacket::read(packet) else { continue };
        let Fragment { index, count, .. } = lp.fragment;
        assert!(index < count);
        if let Reassembly::Complete(headers, whole) =
            reassembler.take(now, u64::from(high >> 5), &lp)
        {
            let whole = whole.to_vec();
            check(&headers, &whole);
        }
    }
}

fn check(headers: &Headers, wire: &[u8]) {
    let Ok(packet) = Packet::read(wire) else { return };
    // Fragments the packet, and reassembles it from the fragments in reverse order.
    let mut pieces = Vec::new();
    let sent = fragments(headers, wire, 150, u64::MAX, &mut Vec::new(), |piece| {
        pieces.push(piece.to_vec())
    });
    assert_eq!(sent, pieces.len() as u64);
    pieces.reverse();
    let mut reassembler = Reassembler::new(1, 1);
    for (left, piece) in (0..pieces.len()).rev().zip(&pieces) {
        let lp = LpPacket::read(piece).expect("bytes written by this crate");
        match reassembler.take(0, 0, &lp) {
            Reassembly::Complete(read_headers, whole) => {
                assert_eq!((left, read_headers, whole), (0, *headers, wire))
            }
            other => assert_eq!((left > 0, other), (true, Reassembly::Waiting)),
        }
    }
    let name = match packet {
        Packet::Interest(interest) => {
            check_rewrite(&interest);
            // The signed bytes are parts of the packet.
            if let Ok(Some(signed)) = Signed::interest(&interest) {
                assert!(signed.parts.iter().map(|part| part.len()).sum::<usize>() < wire.len());
            }
            let _ = Command::read(&interest).map(|command| command.parameters());
            interest.name
        }
        Packet::Data(data) => {
            if let Ok(signed) = Signed::data(wire) {
                assert!(signed.parts[0].len() < wire.len());
            }
            if let Ok(read) = Certificate::read(wire) {
                assert_eq!((read.name, read.public), (data.name, data.content));
                let _ = read.key_name();
            }
            data.name
        }
    };
    let text = name.to_string();
    assert_eq!(text.parse().as_ref().map(NameBuf::as_name), Ok(name), "{text}");
}

/// Checks that a rewritten Interest equals the original except for the requested changes.
fn check_rewrite(interest: &Interest<'_>) {
    for strip_hint in [false, true] {
        let hop_limit = interest.hop_limit.map(|hops| hops.wrapping_sub(1));
        let nonce = interest.nonce.unwrap_or(7);
        let mut out = Vec::new();
        interest.rewrite(&Rewrite { hop_limit, nonce, strip_hint }, &mut out);
        let read = Interest::read(&out).expect("bytes written by this crate");
        assert_eq!(
            (read.name, read.nonce, read.hop_limit),
            (interest.name, Some(nonce), hop_limit)
        );
        assert_eq!(
            (read.can_be_prefix, read.must_be_fresh),
            (interest.can_be_prefix, interest.must_be_fresh)
        );
        assert_eq!(
            (read.lifetime_ms, read.parameters),
            (interest.lifetime_ms, interest.parameters)
        );
        assert_eq!(read.hint, if strip_hint { &[][..] } else { interest.hint });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::packets::management::{ControlParameters, command};
    use crate::packets::{NewData, NewInterest, PitToken};

    /// Valid packets and their fragments.
    fn seeds() -> Vec<Vec<u8>> {
        let names: Vec<NameBuf> =
            ["/a", "/a/b/seg=7", "/h/54=%03"].map(|name| name.parse().unwrap()).into();
        let hint = [names[2].as_name()];
        let mut seeds = Vec::new();
        for name in &names {
            let name = name.as_name();
            let mut interest = NewInterest::new(name, 0x0102_0304);
            interest.write(seeds.push_mut(Vec::new()));
            interest.hint = &hint;
            (interest.can_be_prefix, interest.must_be_fresh) = (true, true);
            (interest.lifetime_ms, interest.hop_limit, interest.nonce) = (Some(300), Some(3), None);
            interest.write(seeds.push_mut(Vec::new()));
            NewData { name, freshness_ms: Some(10), content: &[7; 200] }
                .write(seeds.push_mut(Vec::new()));
        }
        let parameters = ControlParameters { name: Some(names[1].clone()), ..Default::default() };
        command("localhop", "rib", "register", &parameters, 7, 9, seeds.push_mut(Vec::new()));
        let headers = Headers {
            token: PitToken::new(&[1, 2, 3]).unwrap(),
            congestion_mark: 1,
            ..Headers::default()
        };
        for packet in seeds.clone() {
            fragments(&headers, &packet, 90, 5, &mut Vec::new(), |piece| {
                seeds.push(piece.to_vec())
            });
        }
        seeds
    }

    fn framed(packets: impl IntoIterator<Item = Vec<u8>>) -> Vec<u8> {
        let framed = packets.into_iter().map(|packet| {
            [&[1, (packet.len() >> 8) as u8, packet.len() as u8][..], &packet].concat()
        });
        framed.collect::<Vec<_>>().concat()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(
            prop_oneof![any::<u8>(), prop::sample::select(vec![0u8, 1, 5, 6, 7, 8, 10, 32, 80, 100, 253, 254, 255])], 0..300,
        )) {
            fuzz(&bytes);
            let _ = Packet::read(&bytes);
            let _ = LpPacket::read(&bytes);
        }

        #[test]
        fn packets_with_a_few_changed_bytes_are_read_without_panic(
            picked in prop::collection::vec(any::<prop::sample::Index>(), 1..6),
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        ) {
            let seeds = seeds();
            let mut packets: Vec<_> = picked.iter().map(|at| at.get(&seeds).clone()).collect();
            for (at, byte) in changes {
                let packet = &mut packets[0];
                let at = at.index(packet.len());
                packet[at] = byte;
            }
            fuzz(&framed(packets));
        }
    }

    #[test]
    fn valid_packets_pass_the_checks() {
        let seeds = seeds();
        assert!(seeds.iter().take(10).all(|seed| Packet::read(seed).is_ok()));
        assert!(seeds.iter().all(|seed| LpPacket::read(seed).is_ok()));
        fuzz(&framed(seeds));
    }
}
