//! The equality matrix over captures whose times disagree: what is read of an address pair depends on the times of its
//! own packets, never on those of others.

use crate::common::*;
use crate::equality::agrees_everywhere;
use ringtap_io::capture::{Chunk, PcapWriter};
use ringtap_skeleton::Skeleton;
use ringtap_wire::LinkType;

const SECOND: u64 = 1_000_000_000;
const HOUR: u64 = 3_600 * SECOND;
const BEGIN: u64 = 1_700_000_000 * SECOND;
const SIZES: [(usize, usize); 1] = [(64, 8)];

/// A packet with its time.
type Stamped = (u64, Vec<u8>);

fn capture(packets: &[Stamped]) -> Capture {
    let mut bytes = Vec::new();
    let mut writer = PcapWriter::new(&mut bytes, LinkType::ETHERNET, u32::MAX);
    for (ts_ns, frame) in packets {
        writer.write(*ts_ns, frame.len() as u32, frame).unwrap();
    }
    writer.flush().unwrap();
    drop(writer);
    Capture::Bytes(bytes)
}

/// A packet between client `number` and a server; `header` follows the ports.
fn packet(
    number: u16,
    from_client: bool,
    protocol: u8,
    port: u16,
    header: &[u8],
    payload: &[u8],
) -> Vec<u8> {
    let [high, low] = number.to_be_bytes();
    let (mut ends, mut ports) = ([[10, 0, high, low], [192, 0, 2, 1]], [40_000, port]);
    if !from_client {
        ends.reverse();
        ports.reverse();
    }
    let len = 24 + header.len() + payload.len();
    let mut frame = [&[2; 12][..], &[8, 0, 0x45, 0]].concat();
    frame.extend((len as u16).to_be_bytes());
    frame.extend([high, low, 0, 0, 64, protocol, 0, 0]);
    frame.extend(ends.concat());
    ports.iter().for_each(|port: &u16| frame.extend(port.to_be_bytes()));
    frame.extend(header);
    frame.extend(payload);
    frame
}

fn tcp(number: u16, sequence: u32, payload: &[u8]) -> Vec<u8> {
    let [a, b, c, d] = sequence.to_be_bytes();
    packet(number, true, 6, 80, &[a, b, c, d, 0, 0, 0, 1, 0x50, 0x18, 4, 0, 0, 0, 0, 0], payload)
}

fn udp(number: u16, from_client: bool, port: u16, payload: &[u8]) -> Vec<u8> {
    let [high, low] = (8 + payload.len() as u16).to_be_bytes();
    packet(number, from_client, 17, port, &[high, low, 0, 0], payload)
}

/// The two packets of a conversation that only together have a fact.
fn conversation(number: u16) -> [Vec<u8>; 2] {
    let dns = |flags: u8| {
        let header = [0, 9, flags, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        [&header[..], b"\x07example\x03org\0\0\x01\0\x01"].concat()
    };
    // The body of a client hello of DTLS, and the part from `at` on.
    let body = [&[0xfe, 0xfd][..], &[7; 32], &[0, 0, 0, 2, 0x13, 1, 1, 0]].concat();
    let dtls = |from: usize, to: usize| {
        let sizes = [body.len(), from, to - from, to - from + 12].map(|size| size as u8);
        let head = [22, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, sizes[3]];
        let fragment = [1, 0, 0, sizes[0], 0, 0, 0, 0, sizes[1], 0, 0, sizes[2]];
        [&head[..], &fragment, &body[from..to]].concat()
    };
    match number % 3 {
        0 => [tcp(number, 7, b"GET / HTTP/1.1\r\nHo"), tcp(number, 25, b"st: example.org\r\n\r\n")],
        1 => [udp(number, true, 53, &dns(1)), udp(number, false, 53, &dns(0x81))],
        _ => [udp(number, true, 4_433, &dtls(0, 20)), udp(number, true, 4_433, &dtls(20, 42))],
    }
}

/// Checks that the two packets of each of `conversations` gave a fact, under every arrangement.
fn all_are_read(name: &str, packets: &[Stamped], conversations: u16) {
    let capture = capture(packets);
    agrees_everywhere(name, &capture, &request(), &SIZES, 0);
    let outcome = run(&reference(request()), &capture);
    let facts = outcome.run.report.facts.unwrap().kept;
    let each = u64::from(conversations / 3);
    for field in ["httpHost", "dnsResponseMicroseconds", "tlsClientVersion"] {
        assert_eq!(facts.get(field), Some(&each), "{name}: {facts:?}");
    }
}

/// Packets of others stamped far ahead, one or a few in a row, between the packets of each conversation.
#[test]
fn packets_stamped_far_ahead_end_nothing_of_others() {
    const CONVERSATIONS: u16 = 60;
    for ahead in [1, 3, 4, 8] {
        let mut packets: Vec<Stamped> = Vec::new();
        let all = || 0..CONVERSATIONS;
        packets.extend(all().map(|number| (BEGIN, conversation(number)[0].clone())));
        for other in 0..ahead {
            let others = (1_000..1_003).map(|number| conversation(number + 3 * other)[0].clone());
            packets.extend(others.map(|frame| (BEGIN + HOUR, frame)));
        }
        packets.extend(all().map(|number| (BEGIN + 1_000, conversation(number)[1].clone())));
        all_are_read(&format!("{ahead} ahead"), &packets, CONVERSATIONS);
    }
}

/// Two captures of clocks that differ by an hour, interleaved.
#[test]
fn two_captures_with_skewed_clocks_are_read_as_each_alone() {
    const CONVERSATIONS: u16 = 600;
    let mut packets: Vec<(u64, Stamped)> = Vec::new();
    for number in 0..CONVERSATIONS {
        let skew = if number / 3 % 2 == 0 { 0 } else { HOUR };
        for (at, frame) in conversation(number).into_iter().enumerate() {
            // 50 ms a conversation.
            let since = (u64::from(number) + 20 * at as u64) * SECOND / 20;
            packets.push((since, (BEGIN + since + skew, frame)));
        }
    }
    packets.sort();
    let packets: Vec<Stamped> = packets.into_iter().map(|(_, stamped)| stamped).collect();
    all_are_read("skewed", &packets, CONVERSATIONS);
}

/// Generated connections under skewed clocks, with messages of all extractors, and copies that are left out.
#[test]
fn generated_captures_with_skewed_clocks_agree() {
    let mut packets: Vec<(u64, usize, Stamped)> = Vec::new();
    for (skew, seed) in [(0, 3), (HOUR, 4)] {
        let (bytes, _) = generate(&profile("applications", 15_000, 300), seed);
        let (mut files, mut chunk) = (Capture::Bytes(bytes).open(), Chunk::new());
        while files.read(&mut chunk) > 0 {
            for place in &chunk.places {
                let stamped = (place.ts_ns + skew, chunk.data(place).to_vec());
                packets.push((place.ts_ns, packets.len(), stamped));
            }
        }
    }
    packets.sort();
    let packets: Vec<Stamped> = packets.into_iter().map(|(.., stamped)| stamped).collect();
    agrees_everywhere("skewed", &capture(&packets), &request(), &SIZES, 0);
    // Each tenth packet comes again 3 ms later, by its own clock.
    let copies = |(at, (ts_ns, frame)): (usize, &Stamped)| {
        let copy = (at % 10 == 0).then(|| (ts_ns + 3_000_000, frame.clone()));
        [Some((*ts_ns, frame.clone())), copy].into_iter().flatten()
    };
    let packets: Vec<Stamped> = packets.iter().enumerate().flat_map(copies).collect();
    let request = request().run(|run| run.dedup_ns = Some(SECOND));
    agrees_everywhere("copies", &capture(&packets), &request, &SIZES, 0);
    let outcome = run(&reference(request), &capture(&packets));
    assert!(outcome.run.counts.duplicates >= packets.len() as u64 / 11);
    assert_eq!(outcome.run.counts.duplicates_evicted, 0);
}

/// Three packets each: of one pair, of another at another time, and of the first again.
#[test]
fn small_captures_with_times_of_others_have_one_digest() {
    let Some(folder) = traces() else { return };
    for name in ["times-stream", "times-dns", "times-duplicates"] {
        let path = folder.join("found").join(name).with_extension("pcap");
        if !path.exists() {
            println!("SKIPPED: no {}", path.display());
            continue;
        }
        let capture = Capture::File(path);
        let with = |seed| {
            let request = request().run(|run| run.seed = seed);
            request.run(|run| run.dedup_ns = (name == "times-duplicates").then_some(SECOND))
        };
        let expected = digest(&run(&reference(with(0)), &capture)).to_owned();
        for seed in 0..12 {
            let plan =
                parallel(with(seed), Skeleton::MultiQueue, (2, 1), Default::default(), (64, 8));
            assert_eq!(digest(&run(&plan, &capture)), expected, "{name}, seed {seed}");
        }
    }
}
