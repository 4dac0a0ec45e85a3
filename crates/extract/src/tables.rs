//! Properties of all tables whose entries have a limited time: what is read of an address pair does not depend on the
//! packets of others, whatever their times, and memory is bounded by the number given, whatever is opened.

use proptest::prelude::*;
use ringtap_wire::{Flags, HashKey, PacketRecord};

use crate::protocols::quic::Plain;
use crate::{Counts, Extractors, Kind, LIFETIME_NS, Payload, Payloads, Unread};

/// A packet of a conversation.
#[derive(Clone)]
struct Packet {
    protocol: u8,
    from_client: bool,
    server_port: u16,
    sequence: u32,
    bytes: Vec<u8>,
}

/// Conversations, each of a table: streams and messages read (HTTP, TLS), DNS questions, fragments of DTLS, and QUIC
/// connections. Their packets may be sent in any order, and repeated.
fn conversations() -> Vec<Vec<Packet>> {
    let tcp = |server_port, sequence, bytes: &[u8]| {
        let bytes = bytes.to_vec();
        Packet { protocol: 6, from_client: true, server_port, sequence, bytes }
    };
    let udp = |server_port, from_client, bytes: Vec<u8>| Packet {
        protocol: 17,
        from_client,
        server_port,
        sequence: 0,
        bytes,
    };
    let (first, second) = (b"GET / HTTP/1.1\r\nHo", b"st: example.org\r\n\r\n");
    let http = vec![
        tcp(80, 7, first),
        tcp(80, 7 + first.len() as u32, second),
        tcp(80, 7, &[&first[..], second].concat()),
        tcp(80, 900, first),
    ];
    let record = [&b"\x16\x03\x01\0\x33"[..], &hello(0x0303)].concat();
    let tls = vec![
        tcp(443, 0, &record[..20]),
        tcp(443, 20, &record[20..]),
        tcp(443, 20, &record[20..30]),
        tcp(443, 30, &record[30..]),
    ];
    let message = |flags: u8| {
        let header = [0, 9, flags, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        [&header[..], b"\x07example\x03org\0\0\x01\0\x01"].concat()
    };
    let dns = vec![
        udp(53, true, message(1)),
        udp(53, false, message(0x81)),
        udp(53, true, message(1)),
        udp(53, false, message(0x81)),
    ];
    let part = |from: usize, to: usize| {
        let hello = hello(0xfefd);
        let body = [&hello[4..39], &[0], &hello[39..]].concat();
        let [.., a, b] = body.len().to_be_bytes();
        let [.., c, d] = from.to_be_bytes();
        let [.., e, f] = (to - from).to_be_bytes();
        let [.., g, h] = (to - from + 12).to_be_bytes();
        let head = [22, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, g, h];
        let fragment = [1, 0, a, b, 0, 0, 0, c, d, 0, e, f];
        udp(4433, true, [&head[..], &fragment, &body[from..to]].concat())
    };
    let dtls = vec![part(0, 20), part(20, 44), part(10, 44), part(20, 44)];
    let initial = |number, offset: u8, data: &[u8]| {
        let mut payload = [&[6, offset, data.len() as u8], data].concat();
        payload.resize(100, 0);
        let (first, destination) = (&b"identify"[..], &b"identify"[..]);
        let plain = Plain {
            version: 1,
            from_client: true,
            first,
            destination,
            token: b"",
            number,
            payload: &payload,
        };
        udp(443, true, plain.seal().unwrap())
    };
    let hello = hello(0x0303);
    let quic = vec![
        initial(0, 0, &hello[..20]),
        initial(1, 20, &hello[20..]),
        initial(2, 0, &hello),
        initial(1, 20, &hello[20..]),
    ];
    vec![http, tls, dns, dtls, quic]
}

/// A client hello without extensions, of 47 bytes, and of 51 with an empty list of cookies.
fn hello(version: u16) -> Vec<u8> {
    let mut hello = vec![1, 0, 0, 43];
    hello.extend(version.to_be_bytes());
    hello.extend([7; 32]);
    hello.extend([0, 0, 2, 0x13, 1, 1, 0, 0, 0]);
    if version == 0x0303 {
        // Extended master secret.
        hello[3] += 4;
        hello.splice(45.., [0, 4, 0, 23, 0, 0]);
    }
    hello
}

type Facts = Vec<(Kind, Vec<u8>)>;

/// Reads a packet of a pair; returns the facts in it.
fn read(payloads: &mut Payloads, pair: u16, packet: &Packet, ts_ns: u64) -> Facts {
    let [high, low] = pair.to_be_bytes();
    let (mut client, server) = ([0; 16], [9; 16]);
    (client[0], client[1]) = (high, low);
    let (mut ends, mut ports) = ([client, server], [40_000, packet.server_port]);
    if !packet.from_client {
        ends.reverse();
        ports.reverse();
    }
    let [src, dst] = ends;
    let record = PacketRecord {
        src,
        dst,
        src_port: ports[0],
        dst_port: ports[1],
        protocol: packet.protocol,
        flags: Flags(Flags::IPV4.0 | Flags::PORTS.0 | Flags::DATA.0),
        pair_hash: HashKey::from_seed(1).pair(&src, &dst),
        ts_ns,
        ..PacketRecord::EMPTY
    };
    let mut facts = Facts::new();
    let payload = Payload { record: &record, bytes: &packet.bytes, sequence: packet.sequence };
    payloads.read(&payload, &mut |kind, value| {
        facts.push((kind, value.to_vec()));
        true
    });
    facts
}

/// What happens next: a packet of a pair (by number) at a time, or a turn.
#[derive(Clone, Copy, Debug)]
enum Step {
    Packet { pair: u16, number: usize, ts_ns: u64 },
    Turn,
}

/// Times near one another, near the limit, and far ahead or behind.
fn time() -> impl Strategy<Value = u64> {
    let far = 1_u64 << 60;
    prop_oneof![
        6 => 0_u64..4,
        3 => LIFETIME_NS - 2..LIFETIME_NS + 3,
        1 => prop::sample::select(vec![3 * LIFETIME_NS, far, u64::MAX]),
    ]
}

fn steps(pairs: u16, most: usize) -> impl Strategy<Value = Vec<Step>> {
    let packet = (0..pairs, 0_usize..4, time()).prop_map(|(pair, number, ts_ns)| Step::Packet {
        pair,
        number,
        ts_ns,
    });
    prop::collection::vec(prop_oneof![20 => packet, 1 => Just(Step::Turn)], 1..most)
}

/// The facts by packet, and the counters.
fn outcome(steps: &[Step], only: Option<u16>) -> (Vec<(u16, Facts)>, Counts) {
    let (conversations, mut found) = (conversations(), Vec::new());
    let mut payloads = Payloads::new(Extractors::ALL, 8 << 20);
    for step in steps {
        match *step {
            Step::Turn => payloads.turn(),
            Step::Packet { pair, number, ts_ns } if only.is_none_or(|only| pair == only) => {
                let conversation = &conversations[usize::from(pair) % conversations.len()];
                found.push((pair, read(&mut payloads, pair, &conversation[number], ts_ns)));
            }
            Step::Packet { .. } => {}
        }
    }
    (found, payloads.counts(true).clone())
}

/// Each conversation is read in order, so that the properties below are about messages.
#[test]
fn the_conversations_are_read() {
    for pair in 0..5 {
        let step = |number| Step::Packet { pair, number, ts_ns: 5 };
        let (found, counts) = outcome(&[0, 1].map(step), None);
        assert!(found.iter().any(|(_, facts)| !facts.is_empty()), "{pair}: {counts:?}");
        assert!(counts.unread.is_empty(), "{pair}: {counts:?}");
        let (_, counts) = outcome(&[step(0)], None);
        assert_eq!(counts.unread.len() + usize::from(pair == 2), 1, "{pair}: {counts:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_packets_of_others_decide_nothing(steps in steps(10, 80)) {
        let (together, counts) = outcome(&steps, None);
        let mut sum = Counts::default();
        for only in 0..10 {
            let (alone, counts) = outcome(&steps, Some(only));
            let own: Vec<_> = together.iter().filter(|(pair, _)| *pair == only).cloned().collect();
            prop_assert_eq!(own, alone);
            sum.add(&counts);
        }
        prop_assert_eq!(counts, sum);
    }

    #[test]
    fn memory_after_any_openings_is_below_the_limit(
        steps in steps(2_000, 1_500),
        memory in 0_usize..300_000,
    ) {
        let conversations = conversations();
        let mut payloads = Payloads::new(Extractors::ALL, memory);
        for step in steps {
            match step {
                Step::Turn => payloads.turn(),
                Step::Packet { pair, number, ts_ns } => {
                    let conversation = &conversations[usize::from(pair) % conversations.len()];
                    read(&mut payloads, pair, &conversation[number], ts_ns);
                }
            }
            prop_assert!(payloads.memory() <= memory);
        }
        // Requests without a response are kept for the longest time.
        (0..8).for_each(|_| payloads.turn());
        prop_assert_eq!(payloads.memory(), 0);
    }
}

/// Floods of each conversation, opened only and read to the end: what is evicted is counted.
#[test]
fn memory_after_a_flood_of_openings_is_below_the_limit_and_losses_are_counted() {
    const MEMORY: usize = 200_000;
    for (kind, conversation) in conversations().iter().enumerate() {
        for upto in [1, 2] {
            let mut payloads = Payloads::new(Extractors::ALL, MEMORY);
            for pair in 0..20_000 {
                for packet in &conversation[..upto] {
                    read(&mut payloads, pair, packet, 7);
                }
                assert!(payloads.memory() <= MEMORY, "{kind}: {pair}");
            }
            let lost = [Unread::NoRoom, Unread::Evicted];
            let counts = payloads.counts(true);
            let lost: u64 =
                counts.unread.iter().filter(|own| lost.contains(&own.0.1)).map(|own| own.1).sum();
            let leaves_nothing = upto == 2 && [2, 3].contains(&kind);
            assert_eq!(lost > 15_000, !leaves_nothing, "{kind}, {upto}: {counts:?}");
        }
    }
}
