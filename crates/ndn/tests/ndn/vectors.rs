//! Test vectors: packets written by hand from the grammar of the specifications. The crate must
//! parse them correctly, and write the same bytes.

use ringtap_ndn::packets::{
    Data, Error, Fragment, Headers, Interest, LpPacket, NackReason, Name, NameBuf, NewData,
    NewInterest, Packet, PitToken, Reassembler, Reassembly, component, fragments, write_lp,
};

/// `/A` with a nonce: type 05, length 0b; Name 07 03 {08 01 41}; Nonce 0a 04.
const PLAIN: [u8; 13] = [5, 11, 7, 3, 8, 1, b'A', 0x0a, 4, 0xde, 0xad, 0xbe, 0xef];

fn name(text: &str) -> NameBuf {
    text.parse().unwrap()
}

fn interest(body: &[u8]) -> Result<Vec<u8>, Error> {
    let wire = [&[5, body.len() as u8][..], body].concat();
    Interest::read(&wire).map(|interest| interest.wire.to_vec())
}

#[test]
fn an_interest_with_all_fields_is_parsed() {
    let wire = [
        &[5, 36][..],
        &[7, 6, 8, 1, b'A', 54, 1, 3],
        &[0x21, 0, 0x12, 0],
        &[0x1e, 5, 7, 3, 8, 1, b'H'],
        &[0x0a, 4, 0, 0, 0, 9],
        &[0x0c, 2, 0x03, 0xe8],
        &[0x22, 1, 64],
        &[0xfd, 0x01, 0x00, 0], // type 256: even, may be ignored
    ]
    .concat();
    let read = Interest::read(&wire).unwrap();
    assert_eq!(read.name.to_string(), "/A/v=3");
    assert!(read.can_be_prefix && read.must_be_fresh);
    assert_eq!((read.nonce, read.lifetime_ms, read.hop_limit), (Some(9), 1000, Some(64)));
    assert_eq!(read.delegations().map(|name| name.to_string()).collect::<Vec<_>>(), ["/H"]);
}

#[test]
fn an_interest_is_written_byte_by_byte() {
    let name = name("/A");
    let mut out = Vec::new();
    let mut new = NewInterest::new(name.as_name(), 0xdead_beef);
    new.write(&mut out);
    assert_eq!(out, PLAIN);
    out.clear();
    (new.must_be_fresh, new.lifetime_ms, new.hop_limit) = (true, Some(4000), Some(1));
    new.write(&mut out);
    let expected =
        [&[5, 20, 7, 3, 8, 1, b'A', 0x12, 0][..], &PLAIN[7..], &[0x0c, 2, 0x0f, 0xa0, 0x22, 1, 1]];
    assert_eq!(out, expected.concat());
}

#[test]
fn unknown_or_misplaced_critical_elements_are_errors() {
    let name = [7, 3, 8, 1, b'A'];
    let with = |more: &[u8]| interest(&[&name[..], more].concat());
    assert!(with(&[0x30, 0]).is_ok(), "unknown, even, above 31: ignored");
    assert_eq!(with(&[0x31, 0]), Err(Error::Critical), "odd");
    assert_eq!(with(&[0x10, 0]), Err(Error::Critical), "even, but not above 31");
    assert_eq!(with(&[0x12, 0, 0x21, 0]), Err(Error::Critical), "known, but out of order");
    assert!(with(&[0x22, 1, 3, 0x24, 0]).is_err_and(|error| error == Error::ParametersDigest));
    assert!(with(&[0x22, 1, 3, 0x22, 1, 4]).is_ok(), "a second hop limit may be ignored");
    assert_eq!(
        interest(&[&[0x30, 0][..], &name].concat()),
        Err(Error::NoName),
        "nothing may precede the name"
    );
    assert_eq!(interest(&[7, 0]), Err(Error::NoName), "one component or more");
    assert_eq!(with(&[0x21, 1, 0]), Err(Error::BadLength));
    assert_eq!(with(&[0x0a, 3, 0, 0, 0]), Err(Error::BadLength));
    assert_eq!(with(&[0x0c, 3, 0, 0, 0]), Err(Error::BadLength));
    assert_eq!(interest(&[7, 4, 1, 2, 0, 0]), Err(Error::BadComponent), "a digest has 32 bytes");
    assert_eq!(interest(&[7, 2, 8]), Err(Error::Truncated));
}

#[test]
fn parameters_require_their_digest() {
    let digest = [&[2, 32][..], &[7; 32]].concat();
    let body = [&[7, 37, 8, 1, b'A'][..], &digest, &[0x24, 1, 0]].concat();
    assert!(interest(&body).is_ok());
    assert_eq!(interest(&body[..39]), Err(Error::ParametersDigest));
}

#[test]
fn data_with_a_digest_signature_is_parsed_and_written() {
    // Signed: Name, MetaInfo {FreshnessPeriod 0a}, Content "hi", SignatureInfo {SignatureType 0}.
    // `sha256sum` computed the digest over these 19 bytes.
    let signed = [7, 3, 8, 1, b'A', 0x14, 3, 0x19, 1, 10, 0x15, 2, b'h', b'i', 0x16, 3, 0x1b, 1, 0];
    let digest = hex("aa347926daf248a04e9f6077bc396f772c9bfed947742db9bbd18e18917f5c32");
    let wire = [&[6, signed.len() as u8 + 34][..], &signed, &[0x17, 32], &digest].concat();
    let read = Data::read(&wire).unwrap();
    assert_eq!(
        (read.name.to_string().as_str(), read.freshness_ms, read.content),
        ("/A", 10, &b"hi"[..])
    );
    let name = name("/A");
    let mut out = Vec::new();
    NewData { name: name.as_name(), freshness_ms: Some(10), content: b"hi" }.write(&mut out);
    assert_eq!(out, wire);
    // The implicit digest: `sha256sum` over the whole packet.
    assert_eq!(
        read.digest().to_vec(),
        hex("72834e5dca3fe7389ad150001d244c76655c30485b54d2a1fe9e8733ea50d0cf")
    );
    assert_eq!(Data::read(&[&[6, 19][..], &signed].concat()), Err(Error::NoSignature));
    assert_eq!(Packet::read(&wire), Ok(Packet::Data(read)));
}

fn hex(text: &str) -> Vec<u8> {
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}

#[test]
fn link_headers_are_parsed_and_written() {
    let nack = [
        &[0x64, 28, 0x62, 2, 0xab, 0xcd, 0xfd, 3, 0x20, 5, 0xfd, 3, 0x21, 1, 150, 0x50, 13][..],
        &PLAIN,
    ]
    .concat();
    let lp = LpPacket::read(&nack).unwrap();
    assert_eq!(
        (lp.headers.nack, lp.headers.token),
        (Some(NackReason::NoRoute), PitToken::new(&[0xab, 0xcd]).unwrap())
    );
    assert_eq!(lp.payload, Some(&PLAIN[..]));
    let mut out = Vec::new();
    write_lp(&lp.headers, &PLAIN, &mut out);
    assert_eq!(out, nack);

    let marked = [
        &[0x64, 27, 0xfd, 3, 0x34, 5, 0xfd, 3, 0x35, 1, 1, 0xfd, 3, 0x40, 1, 1, 0x50, 11][..],
        &PLAIN[..11],
    ]
    .concat();
    let lp = LpPacket::read(&marked).unwrap();
    assert!(lp.headers.no_cache && lp.headers.congestion_mark == 1);

    assert_eq!(LpPacket::read(&PLAIN).unwrap().payload, Some(&PLAIN[..]), "bare");
    assert_eq!(
        LpPacket::read(&[0x64, 5, 0xfd, 3, 0x44, 1, 0]).unwrap().payload,
        None,
        "acknowledgements alone"
    );
    assert_eq!(
        LpPacket::read(&[0x64, 4, 0xfd, 3, 0x41, 0]),
        Err(Error::Critical),
        "801 may not be ignored"
    );
    assert!(LpPacket::read(&[0x64, 4, 0xfd, 3, 0xb0, 0]).is_ok(), "944 may be");
    assert_eq!(
        LpPacket::read(&[0x64, 4, 0x50, 0, 0x50, 0]),
        Err(Error::Critical),
        "the fragment is the last"
    );
    assert_eq!(
        LpPacket::read(&[0x64, 2, 0x62, 0]),
        Err(Error::BadLength),
        "a token has 1 byte or more"
    );
    assert_eq!(
        LpPacket::read(&[0x64, 6, 0x53, 1, 2, 0x52, 1, 0]),
        Err(Error::BadFragment),
        "fragments need a sequence number"
    );
    assert_eq!(LpPacket::read(&[0x63, 0]), Err(Error::UnknownPacket));
}

#[test]
fn fragments_in_any_order_are_reassembled_with_the_headers_of_the_first() {
    let name = name("/A");
    let mut data = Vec::new();
    NewData { name: name.as_name(), freshness_ms: None, content: &[7; 4000] }.write(&mut data);
    let headers = Headers { token: PitToken::new(b"token").unwrap(), ..Headers::default() };
    let mut pieces = Vec::new();
    let count = fragments(&headers, &data, 1200, u64::MAX - 1, &mut Vec::new(), |piece| {
        pieces.push(piece.to_vec())
    });
    assert_eq!(count, 4);
    assert!(pieces.iter().all(|piece| piece.len() <= 1200));
    let mut reassembler = Reassembler::new(2, 1000);
    for order in [[0, 1, 2, 3], [3, 1, 0, 2], [2, 3, 1, 0]] {
        for (place, at) in order.into_iter().enumerate() {
            let piece = LpPacket::read(&pieces[at]).unwrap();
            let Fragment { index, count, .. } = piece.fragment;
            assert_eq!((usize::from(index), count), (at, 4));
            match reassembler.take(0, 1, &piece) {
                Reassembly::Complete(read_headers, whole) => {
                    assert_eq!((place, read_headers, whole), (3, headers, &data[..]))
                }
                other => assert_eq!((place < 3, other), (true, Reassembly::Waiting)),
            }
        }
    }
    assert_eq!((reassembler.incomplete(), reassembler.malformed()), (0, 0));
}

#[test]
fn incomplete_packets_are_bounded_in_number_and_time() {
    let mut pieces = Vec::new();
    fragments(&Headers::default(), &[7; 300], 200, 0, &mut Vec::new(), |piece| {
        pieces.push(piece.to_vec())
    });
    let first = LpPacket::read(&pieces[0]).unwrap();
    let second = LpPacket::read(&pieces[1]).unwrap();
    let mut reassembler = Reassembler::new(2, 1000);
    for from in 0..5 {
        assert_eq!(reassembler.take(from, from, &first), Reassembly::Waiting);
    }
    assert_eq!(reassembler.incomplete(), 3, "the oldest were evicted");
    assert_eq!(
        reassembler.take(5, 0, &second),
        Reassembly::Waiting,
        "the first fragment was evicted"
    );
    assert!(matches!(reassembler.take(6, 4, &second), Reassembly::Complete(..)));
    assert_eq!(
        reassembler.take(2000, 0, &first),
        Reassembly::Waiting,
        "the second fragment timed out"
    );
    assert_eq!(reassembler.incomplete(), 5);
    let other = LpPacket { fragment: Fragment { count: 7, ..second.fragment }, ..second };
    assert_eq!(reassembler.take(2000, 0, &other), Reassembly::Malformed);
    assert_eq!(reassembler.malformed(), 1);
}

#[test]
fn a_neighbour_with_many_incomplete_packets_evicts_its_own() {
    let fragment = |packet: u64, index: u8| LpPacket {
        headers: Headers::default(),
        fragment: Fragment { sequence: 2 * packet + u64::from(index), index, count: 2 },
        payload: Some(&[5, 0]),
    };
    let mut reassembler = Reassembler::new(16, 1000);
    let (hostile, other) = (1, 2);
    for packet in 0..100 {
        if packet == 50 {
            for one in 0..4 {
                reassembler.take(packet, other, &fragment(one, 0));
            }
        }
        assert_eq!(reassembler.take(packet, hostile, &fragment(packet, 0)), Reassembly::Waiting);
    }
    for packet in 0..4 {
        let second = reassembler.take(100, other, &fragment(packet, 1));
        assert!(matches!(second, Reassembly::Complete(..)), "packet {packet}");
    }
    assert_eq!(reassembler.incomplete(), 100 - 12);
    // A free slot is used first.
    reassembler.take(100, hostile, &fragment(100, 0));
    assert_eq!(reassembler.incomplete(), 100 - 12);
}

#[test]
fn names_are_parsed_and_written_as_text() {
    for text in [
        "/",
        "/a/b",
        "/%00%2F",
        "/54=%00%01",
        "/seg=7/v=300/t=1/seq=65536/off=0",
        "/32=key",
        "/...",
        "/.....",
        "/a.b",
    ] {
        assert_eq!(name(text).to_string(), text);
    }
    let digest = format!("/a/sha256digest={}", "0a".repeat(32));
    assert_eq!(name(&digest).to_string(), digest);
    assert_eq!(
        name(&digest).as_name().split_digest().map(|(name, digest)| (name.to_string(), digest[0])),
        Some(("/a".into(), 10))
    );
    assert_eq!(name("/a").as_name().split_digest(), None);
    for bad in [
        "/..",
        "/%4",
        "/%zz",
        "/70000=a",
        "/0=a",
        "/1=ab",
        "/seg=x",
        "/sha256digest=00",
        "/sha256digest=é",
    ] {
        assert!(bad.parse::<NameBuf>().is_err(), "{bad}");
    }
    assert_eq!(
        name("/seg=7").as_name().components().next().map(|c| (c.kind, c.value.to_vec())),
        Some((component::SEGMENT, vec![7]))
    );
    assert!(
        name("/a").as_name().is_prefix_of(&name("/a/b").as_name())
            && !name("/a").as_name().is_prefix_of(&name("/ab").as_name())
    );
    assert!(Name::EMPTY.is_prefix_of(&name("/a").as_name()));
}
