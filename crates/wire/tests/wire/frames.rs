//! Hand-made frames, for rules that random frames rarely reach.

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::Arc;

use crate::sealed;
use ringtap_wire::{
    Decoded, Decoder, Flags, HashKey, Layer, LinkType, NonIp, PacketRecord, Paths, TunnelPorts,
    joined, pair_hash,
};

const UDP: [u8; 12] = [0x12, 0x34, 0, 80, 0, 12, 0, 0, b'd', b'a', b't', b'a'];

fn decode(link: LinkType, frame: &[u8]) -> (Decoded, PacketRecord) {
    let mut out = PacketRecord::EMPTY;
    let mut decoder = Decoder::new(HashKey::from_seed(1), Default::default());
    (decoder.decode(link, 0, frame, frame.len() as u32, &mut out), out)
}

fn ipv4(protocol: u8, place: u16, payload: &[u8]) -> Vec<u8> {
    let total_len = (20 + payload.len()) as u16;
    let mut packet = vec![0x45, 0];
    packet.extend([total_len, 7, place].map(u16::to_be_bytes).concat());
    packet.extend([64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    packet.extend(payload);
    sealed(packet)
}

fn ipv6(next: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend((payload.len() as u16).to_be_bytes());
    packet.extend([next, 64]);
    packet.extend([[0x20; 16], [0xfd; 16]].concat());
    packet.extend(payload);
    packet
}

fn fragment6(next: u8, offset: u16, more: bool, payload: &[u8]) -> Vec<u8> {
    let place = (offset << 3 | u16::from(more)).to_be_bytes();
    ipv6(44, &[&[next, 0][..], &place, &[0, 0, 0, 99], payload].concat())
}

fn ethernet(kind: u16, payload: &[u8]) -> Vec<u8> {
    [&[2; 12][..], &kind.to_be_bytes(), payload].concat()
}

fn snap(payload: &[u8]) -> Vec<u8> {
    [&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0][..], payload].concat()
}

fn token_ring(control: u8, source: u8, route: &[u8], body: &[u8]) -> Vec<u8> {
    [&[0x10, control][..], &[2; 6], &[source; 6], route, body].concat()
}

fn ppi(link: u32, fields: &[u8], body: &[u8]) -> Vec<u8> {
    let len = (8 + fields.len()) as u16;
    [&[0, 0][..], &len.to_le_bytes(), &link.to_le_bytes(), fields, body].concat()
}

fn pktap(link: u32, body: &[u8]) -> Vec<u8> {
    [&[108, 0, 0, 0, 1, 0, 0, 0][..], &link.to_le_bytes(), &[0; 96], body].concat()
}

/// A header, a nested attribute, a prefix of 5 bytes with padding, the packet.
fn nflog(family: u8, order: fn(u16) -> [u8; 2], packet: &[u8]) -> Vec<u8> {
    let header = |len: usize, kind: u16| [order(len as u16 + 4), order(kind)].concat();
    let prefix = [header(5, 10), b"fire\0\0\0\0".to_vec()].concat();
    let nested = [header(4, 18 | 0x8000), vec![0; 4]].concat();
    [&[family, 0, 0, 1][..], &nested, &prefix, &header(packet.len(), 9), packet].concat()
}

/// A network service header of this many words.
fn nsh(next: u8, words: u8, packet: &[u8]) -> Vec<u8> {
    let metadata = vec![0; usize::from(words) * 4 - 8];
    let kind = if words == 6 { 1 } else { 2 };
    [&[0x0f, 0xc0 | words, kind, next, 0, 0, 7, 255][..], &metadata, packet].concat()
}

/// Data with a MACsec tag and a check value.
fn macsec(bits: u8, size: u8, data: &[u8]) -> Vec<u8> {
    let channel = vec![7; if bits & 0x20 != 0 { 8 } else { 0 }];
    [&[bits, size, 0, 0, 0, 1][..], &channel, data, &[0xaa; 16]].concat()
}

/// The same packet in every encapsulation: name, link type, frame.
fn encapsulations() -> Vec<(&'static str, u16, Vec<u8>)> {
    let (four, six) = (ipv4(17, 0, &UDP), ipv6(17, &UDP));
    let pppoe = |packet: &[u8]| {
        let len = (packet.len() as u16).to_be_bytes();
        [&[0x11, 0, 0, 1][..], &len, packet].concat()
    };
    let ppp = |number: &[u8], packet: &[u8]| [number, packet].concat();
    let label = |label: u32, bottom: u32| (label << 12 | bottom << 8 | 64).to_be_bytes();
    let wlan = |control: [u8; 2], len: usize, body: &[u8]| {
        let mut header = vec![0; len];
        header[..2].copy_from_slice(&control);
        [&header[..], body].concat()
    };
    let length = |packet: &[u8]| ethernet(packet.len() as u16, packet);
    let radiotap = |flags: u8, body: &[u8]| [&[0, 0, 9, 0, 2, 0, 0, 0, flags][..], body].concat();
    let amsdu = |body: &[u8]| {
        let len = (body.len() as u16).to_be_bytes();
        let mut header = [0; 26];
        (header[0], header[24]) = (0x88, 0x80);
        [&header[..], &[4; 12], &len, body, &[0, 0, 9, 9]].concat()
    };
    vec![
        ("ethernet", 1, ethernet(0x0800, &four)),
        ("ethernet", 1, ethernet(0x86dd, &six)),
        ("802.3 snap", 1, length(&snap(&four))),
        (
            "802.3 snap, numbered",
            1,
            length(&[&[0xaa, 0xaa, 0, 0, 0, 0, 0, 8, 0][..], &four].concat()),
        ),
        ("802.3 llc ip", 1, length(&[&[6, 6, 3][..], &four].concat())),
        ("vlan 9200", 1, ethernet(0x9200, &ppp(&[0, 5, 8, 0], &four))),
        ("vlan llc", 1, ethernet(0x8100, &[&[0, 5, 0, 40][..], &snap(&four)].concat())),
        ("mpls", 1, ethernet(0x8847, &[&label(5, 1)[..], &four].concat())),
        ("mpls 2", 1, ethernet(0x8848, &[&label(5, 0)[..], &label(6, 1), &six].concat())),
        (
            "mpls channel",
            1,
            ethernet(0x8847, &[&label(13, 1)[..], &[0x10, 0, 0, 0x21], &four].concat()),
        ),
        (
            "pseudowire",
            1,
            ethernet(0x8847, &[&label(5, 1)[..], &[0; 4], &ethernet(0x0800, &four)].concat()),
        ),
        (
            "pseudowire, no word",
            1,
            ethernet(0x8847, &[&label(5, 1)[..], &ethernet(0x0800, &four)].concat()),
        ),
        ("pppoe", 1, ethernet(0x8864, &pppoe(&ppp(&[0, 0x21], &four)))),
        ("pppoe, compressed", 1, ethernet(0x8864, &pppoe(&ppp(&[0x57], &six)))),
        ("bridge", 1, ethernet(0x6558, &ethernet(0x0800, &four))),
        ("pbb", 1, ethernet(0x88e7, &[&[0, 0, 0, 5][..], &ethernet(0x0800, &four)].concat())),
        ("cmd", 1, ethernet(0x8909, &ppp(&[1, 1, 0, 1, 0, 5, 8, 0], &four))),
        ("vn-tag", 1, ethernet(0x8926, &ppp(&[0x80, 7, 0, 9, 8, 0], &four))),
        ("vlan in vn-tag", 1, ethernet(0x8926, &ppp(&[0, 7, 0, 9, 0x81, 0, 0, 5, 8, 0], &four))),
        ("e-tag", 1, ethernet(0x893f, &ppp(&[0x20, 1, 0, 9, 0, 0, 8, 0], &four))),
        ("fabricpath", 1, ethernet(0x8903, &ppp(&[0, 0x60], &ethernet(0x0800, &four)))),
        ("hsr", 1, ethernet(0x892f, &ppp(&[0x10, 38, 0, 1, 8, 0], &four))),
        ("prp", 1, ethernet(0x0800, &ppp(&four, &[0, 1, 0xa0, 38, 0x88, 0xfb]))),
        ("prp snap", 1, ppp(&length(&snap(&four)), &[0, 1, 0xb0, 46, 0x88, 0xfb])),
        ("nsh", 1, ethernet(0x894f, &nsh(1, 2, &four))),
        ("nsh, v6", 1, ethernet(0x894f, &nsh(2, 6, &six))),
        ("nsh, ethernet", 1, ethernet(0x894f, &nsh(3, 4, &ethernet(0x0800, &four)))),
        ("nsh, nsh", 1, ethernet(0x894f, &nsh(4, 2, &nsh(1, 2, &four)))),
        ("nsh, mpls", 1, ethernet(0x894f, &nsh(5, 2, &[&label(5, 1)[..], &four].concat()))),
        ("macsec", 1, ethernet(0x88e5, &macsec(0, 34, &ppp(&[8, 0], &four)))),
        ("macsec, channel", 1, ethernet(0x88e5, &macsec(0x20, 0, &ppp(&[0x86, 0xdd], &six)))),
        (
            "vlan in macsec",
            1,
            ethernet(0x88e5, &macsec(0x20, 38, &ppp(&[0x81, 0, 0, 5, 8, 0], &four))),
        ),
        ("ppp", 9, ppp(&[0xff, 3, 0, 0x21], &four)),
        ("ppp, bare", 9, ppp(&[0, 0x21], &four)),
        ("ppp, compressed", 50, ppp(&[0x21], &four)),
        ("ppp, mpls", 50, [&[0xff, 3, 2, 0x81][..], &label(5, 1), &four].concat()),
        ("ppp, multilink", 50, ppp(&[0xff, 3, 0, 0x3d, 0xc0, 0, 0, 1, 0, 0x21], &four)),
        ("ppp, cisco", 50, ppp(&[0x0f, 0, 0x86, 0xdd], &six)),
        ("ppp ether", 51, pppoe(&ppp(&[0, 0x21], &four))),
        ("c-hdlc", 104, ppp(&[0x8f, 0, 8, 0], &four)),
        ("sll", 113, [&[0; 14][..], &[8, 0], &four].concat()),
        ("sll llc", 113, [&[0; 14][..], &[0, 4], &snap(&four)].concat()),
        ("sll2", 276, [&[0x86, 0xdd][..], &[0; 18], &six].concat()),
        ("raw", 101, four.clone()),
        ("raw", 12, six.clone()),
        ("raw", 14, four.clone()),
        ("raw ipv4", 228, four.clone()),
        ("raw ipv6", 229, six.clone()),
        ("null little", 0, ppp(&[2, 0, 0, 0], &four)),
        ("null big", 0, ppp(&[0, 0, 0, 2], &four)),
        ("null 16 bits", 0, ppp(&[0, 2, 0, 0], &four)),
        ("null ethertype", 0, ppp(&[0, 8, 0, 0], &four)),
        ("null macos", 0, ppp(&[30, 0, 0, 0], &six)),
        ("null freebsd", 0, ppp(&[0, 0, 0, 28], &six)),
        ("null linux", 0, ppp(&[10, 0, 0, 0], &six)),
        ("loop", 108, ppp(&[0, 0, 0, 24], &six)),
        ("802.11", 105, wlan([8, 1], 24, &snap(&four))),
        ("802.11 qos", 105, wlan([0x88, 1], 26, &snap(&four))),
        ("802.11 ht control", 105, wlan([0x88, 0x81], 30, &snap(&four))),
        ("802.11 4 addresses", 105, wlan([8, 3], 30, &snap(&four))),
        ("802.11 a-msdu", 105, amsdu(&snap(&four))),
        ("radiotap", 127, radiotap(0, &wlan([8, 1], 24, &snap(&four)))),
        ("radiotap, padded", 127, radiotap(0x20, &wlan([0x88, 1], 28, &snap(&four)))),
        (
            "radiotap, time",
            127,
            [&[0, 0, 17, 0, 3, 0, 0, 0][..], &[0; 8], &[0x20], &wlan([0x88, 1], 28, &snap(&four))]
                .concat(),
        ),
        (
            "prism",
            119,
            [&[0x44, 0, 0, 0, 144, 0, 0, 0][..], &[0; 136], &wlan([8, 1], 24, &snap(&four))]
                .concat(),
        ),
        ("token ring", 6, token_ring(0x40, 2, &[], &snap(&four))),
        ("token ring, routed", 6, token_ring(0x40, 0x82, &[6, 0, 1, 2, 3, 4], &snap(&four))),
        ("fddi", 10, [&[0x54][..], &[2; 12], &snap(&four)].concat()),
        ("fddi, synchronous", 10, [&[0xd0][..], &[2; 12], &snap(&four)].concat()),
        ("atm", 100, snap(&four)),
        (
            "atm, bridged",
            100,
            [&[0xaa, 0xaa, 3, 0, 0x80, 0xc2, 0, 7, 0, 0][..], &ethernet(0x86dd, &six)].concat(),
        ),
        ("frame relay", 107, ppp(&[0x18, 0x41, 3, 0xcc], &four)),
        ("frame relay, v6", 107, ppp(&[0x18, 0x41, 3, 0x8e], &six)),
        ("frame relay, 3 bytes", 107, ppp(&[0x18, 0x40, 0x41, 3, 0, 0xcc], &four)),
        ("frame relay, 4 bytes", 107, ppp(&[0x18, 0x40, 0x40, 0x41, 3, 0xcc], &four)),
        ("frame relay, snap", 107, ppp(&[0x18, 0x41, 3, 0, 0x80, 0, 0, 0, 8, 0], &four)),
        (
            "frame relay, bridged",
            107,
            ppp(&[0x18, 0x41, 3, 0, 0x80, 0, 0x80, 0xc2, 0, 7], &ethernet(0x0800, &four)),
        ),
        ("frame relay, cisco", 107, ppp(&[0x18, 0x41, 8, 0], &four)),
        ("frame relay, direction", 206, ppp(&[1, 0x18, 0x41, 3, 0xcc], &four)),
        ("enc little", 109, ppp(&[2, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8], &four)),
        ("enc big", 109, ppp(&[0, 0, 0, 24, 1, 2, 3, 4, 5, 6, 7, 8], &six)),
        ("pflog", 117, [&[61, 2][..], &[0; 62], &four].concat()),
        ("pflog, v6", 117, [&[100, 24][..], &[0; 98], &six].concat()),
        ("fibre channel", 122, [&[2; 16][..], &snap(&four)].concat()),
        ("pppd", 166, ppp(&[1, 3, 0, 0x21], &four)),
        ("arcnet bsd", 7, ppp(&[1, 2, 212, 0, 0, 1], &four)),
        ("arcnet bsd, v6", 7, ppp(&[1, 2, 196, 0, 0, 1], &six)),
        ("arcnet bsd, exception", 7, ppp(&[1, 2, 212, 0xff, 0xff, 0xff, 212, 0, 0, 1], &four)),
        ("arcnet bsd, old", 7, ppp(&[1, 2, 240], &four)),
        ("arcnet linux", 129, ppp(&[1, 2, 0, 0, 212, 0, 0, 1], &four)),
        ("arcnet linux, old", 129, ppp(&[1, 2, 0, 0, 240], &four)),
        ("juniper ethernet", 178, ppp(b"MGC\x01", &ethernet(0x0800, &four))),
        (
            "juniper ethernet, extensions",
            178,
            ppp(b"MGC\x80\0\x06\x02\x01\0\x03\x01\x01", &ethernet(0x86dd, &six)),
        ),
        ("juniper ethernet, ip", 178, ppp(b"MGC\x02\x02\0\0\0", &four)),
        ("juniper ppp", 179, ppp(b"MGC\0\xff\x03\0\x21", &four)),
        ("juniper frame relay", 180, ppp(b"MGC\0\x18\x41\x03\xcc", &four)),
        ("juniper hdlc", 181, ppp(b"MGC\x01\x0f\0\x08\0", &four)),
        ("ppi", 192, ppi(1, &[], &ethernet(0x0800, &four))),
        ("ppi, radio", 192, ppi(105, &[2, 0, 4, 0, 1, 2, 3, 4], &wlan([8, 1], 24, &snap(&four)))),
        ("ppi, ppi", 192, ppi(192, &[], &ppi(101, &[], &six))),
        ("ppi, atm", 192, ppi(11, &[], &snap(&four))),
        ("ppp, direction", 204, ppp(&[0, 0xff, 3, 0, 0x21], &four)),
        ("c-hdlc, direction", 205, ppp(&[1, 0x0f, 0, 8, 0], &four)),
        ("ipnet", 226, [&[1, 2][..], &[0; 22], &four].concat()),
        ("ipnet, v6", 226, [&[1, 26][..], &[0; 22], &six].concat()),
        ("nflog little", 239, nflog(2, u16::to_le_bytes, &four)),
        ("nflog big", 239, nflog(10, u16::to_be_bytes, &six)),
        ("netanalyzer", 240, [&[0, 0, 0, 0][..], &ethernet(0x0800, &four), &[9; 4]].concat()),
        (
            "netanalyzer, preamble",
            241,
            [&[0; 4][..], &[0x55; 7], &[0xd5], &ethernet(0x0800, &four), &[9; 4]].concat(),
        ),
        ("infiniband", 242, [&[0; 40][..], &[8, 0, 0, 0], &four].concat()),
        ("infiniband, v6", 242, [&[0; 40][..], &[0x86, 0xdd, 0, 0], &six].concat()),
        ("pktap", 258, pktap(1, &ethernet(0x0800, &four))),
        ("pktap, null", 258, pktap(0, &ppp(&[30, 0, 0, 0], &six))),
        (
            "avs",
            163,
            [&[0x80, 0x21, 0x10, 1, 0, 0, 0, 64][..], &[0; 56], &wlan([8, 1], 24, &snap(&four))]
                .concat(),
        ),
    ]
}

/// Of the outermost stack; a frame in it may have another one.
#[test]
fn the_upper_two_labels_are_kept() {
    let entry = |label: u32, bottom: u32| (label << 12 | bottom << 8 | 64).to_be_bytes();
    let stack = |labels: &[u32]| {
        let last = labels.len() - 1;
        let entries = labels.iter().enumerate();
        entries.flat_map(|(at, label)| entry(*label, u32::from(at == last))).collect::<Vec<_>>()
    };
    let four = ipv4(17, 0, &UDP);
    let inside = |labels: &[u32]| {
        [stack(labels), ethernet(0x8847, &[&stack(&[99, 98])[..], &four].concat())].concat()
    };
    let cases = [
        ([stack(&[16]), four.clone()].concat(), (Some(16), None)),
        ([stack(&[16, 0]), four.clone()].concat(), (Some(16), Some(0))),
        ([stack(&[0xfffff, 17, 18, 19]), four.clone()].concat(), (Some(0xfffff), Some(17))),
        (inside(&[16]), (Some(16), None)),
        (inside(&[16, 17]), (Some(16), Some(17))),
    ];
    for (payload, labels) in cases {
        let (frame, paths) = (ethernet(0x8847, &payload), Arc::new(Paths::new()));
        let mut out = PacketRecord::EMPTY;
        let mut decoder = Decoder::new(HashKey::from_seed(1), Arc::clone(&paths));
        let decoded = decoder.decode(LinkType::ETHERNET, 0, &frame, frame.len() as u32, &mut out);
        assert_eq!(decoded, Decoded::Ipv4, "{labels:?}");
        let path = paths.get(out.path);
        assert_eq!((path.mpls_label, path.mpls_second_label), labels);
    }
}

#[test]
fn every_encapsulation_leads_to_the_same_packet() {
    for (name, link, frame) in encapsulations() {
        let (decoded, out) = decode(LinkType(link), &frame);
        assert!(matches!(decoded, Decoded::Ipv4 | Decoded::Ipv6), "{name}: {decoded:?}");
        assert!(out.flags.contains(Flags::PORTS), "{name}: {out:?}");
        assert_eq!(
            (out.src_port, out.dst_port, out.protocol, out.ttl),
            (0x1234, 80, 17, 64),
            "{name}"
        );
        assert_eq!(out.ip_len, if decoded == Decoded::Ipv4 { 32 } else { 52 }, "{name}");
        assert_eq!(out.flags.contains(Flags::VLAN), name.starts_with("vlan"), "{name}");
        assert!(LinkType::SUPPORTED.contains(&LinkType(link)));
    }
}

/// tshark finds the same packet in all of them, except those that it does not decode.
#[test]
fn tshark_finds_the_same_packet() {
    /// Encapsulations that tshark does not decode, or for which it needs further fields.
    const UNSUPPORTED: [&str; 12] = [
        "vlan 9200",
        "pseudowire, no word",
        "null linux",
        "fddi, synchronous",
        "frame relay, direction",
        "pppd",
        "c-hdlc, direction",
        "ipnet",
        "ipnet, v6",
        "nflog big",
        "netanalyzer",
        "netanalyzer, preamble",
    ];
    let block = |kind: u32, body: &[u8]| {
        let padded = [body, &vec![0; body.len().next_multiple_of(4) - body.len()]].concat();
        let len = (12 + padded.len() as u32).to_le_bytes();
        [&kind.to_le_bytes()[..], &len, &padded, &len].concat()
    };
    let words =
        |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
    let cases = encapsulations();
    let mut bytes = block(0x0a0d_0d0a, &words(&[0x1a2b_3c4d, 1, u32::MAX, u32::MAX]));
    for (number, (_, link, frame)) in (0..).zip(&cases) {
        bytes.extend(block(1, &words(&[u32::from(*link), 0])));
        let len = frame.len() as u32;
        bytes.extend(block(6, &[words(&[number, 0, 1_000_000, len, len]), frame.clone()].concat()));
    }
    let mut tshark = Command::new("tshark");
    let fields = [
        "-n",
        "-T",
        "fields",
        "-E",
        "occurrence=f",
        "-e",
        "udp.srcport",
        "-e",
        "ip.len",
        "-e",
        "ipv6.plen",
    ];
    tshark.args(["-r", "-"]).args(fields);
    let pipes = tshark.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let Ok(mut child) = pipes.spawn() else {
        eprintln!("SKIPPED: tshark is not installed");
        return;
    };
    child.stdin.take().unwrap().write_all(&bytes).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), cases.len(), "{}", String::from_utf8_lossy(&output.stderr));
    let found = |line: &str| ["4660\t32\t", "4660\t\t12"].contains(&line);
    let differs: Vec<_> = (cases.iter().zip(text.lines()))
        .filter(|((name, ..), line)| found(line) == UNSUPPORTED.contains(name))
        .map(|((name, link, _), line)| (name, link, line))
        .collect();
    assert_eq!(differs, []);
}

#[test]
fn frames_without_ip_have_a_reason() {
    let link = NonIp::Truncated(Layer::Link);
    let malformed = NonIp::Malformed(Layer::Link);
    let cases: [(u16, Vec<u8>, NonIp, u16); 54] = [
        (1, ethernet(0x0806, &[0; 46]), NonIp::EtherType(0x0806), 0x0806),
        (1, ethernet(0x8863, &[0; 46]), NonIp::EtherType(0x8863), 0x8863),
        (1, ethernet(3, &[0x42, 0x42, 3, 0, 0]), NonIp::Llc(0x42), 0),
        (1, ethernet(8, &[0xaa, 0xaa, 3, 0, 0, 0x0c, 0x20, 0]), NonIp::Snap, 0),
        (1, ethernet(30, &[0xff; 30]), NonIp::RawIpx, 0),
        (1, vec![0; 13], NonIp::Truncated(Layer::Link), 0),
        (1, ethernet(0x8100, &[0, 1, 8]), NonIp::Truncated(Layer::Vlan), 0),
        (1, ethernet(0x8100, &[0x81, 0].repeat(200)), NonIp::TooDeep, 0),
        (1, ethernet(0x8847, &[0; 400]), NonIp::TooDeep, 0),
        (1, ethernet(0x8847, &[0, 0, 0x51, 1, 0x50, 0, 0, 0]), NonIp::Mpls, 0),
        (1, ethernet(0x86dd, &ipv4(17, 0, &UDP)), NonIp::Malformed(Layer::Ip), 0),
        (9, vec![0xff, 3, 0xc0, 0x21, 1], NonIp::Ppp(0xc021), 0),
        (0, vec![7, 0, 0, 0, 1], NonIp::Family(7), 0),
        (113, [&[0, 0, 3, 0x38][..], &[0; 40]].concat(), NonIp::Netlink, 0),
        (105, vec![0x80; 40], NonIp::Management80211, 0),
        (105, vec![0xd4; 10], NonIp::Control80211, 0),
        (105, vec![0x48; 24], NonIp::NoData80211, 0),
        (105, vec![0x08, 0x41, 0, 0], NonIp::Encrypted80211, 0),
        (127, vec![0, 0, 200, 0, 0, 0, 0, 0], NonIp::Truncated(Layer::Radio), 0),
        (147, vec![0; 60], NonIp::UnsupportedLink(147), 0),
        (6, token_ring(0, 2, &[], &[0; 40]), NonIp::LanControl, 0),
        (6, token_ring(0x40, 0x82, &[1, 0], &[0; 40]), malformed, 0),
        (6, token_ring(0x40, 0x82, &[30, 0], &[0; 4]), link, 0),
        (10, vec![0x41; 30], NonIp::LanControl, 0),
        (100, vec![0xfe, 0xfe, 3, 0x83], NonIp::Llc(0xfe), 0),
        (107, vec![0x18, 0x41, 3, 0x83, 0], NonIp::Nlpid(0x83), 0),
        (107, vec![0x19, 0x41, 3, 0xcc], malformed, 0),
        (107, vec![0; 40], malformed, 0),
        (107, vec![0x18, 0], link, 0),
        (107, vec![0x18, 0x41, 8, 6, 0, 0], NonIp::EtherType(0x0806), 0x0806),
        (109, vec![9; 12], NonIp::Family(0x0909), 0),
        (117, vec![8; 60], malformed, 0),
        (192, ppi(0x1_0001, &[], &[]), malformed, 0),
        (192, ppi(147, &[], &[0; 40]), NonIp::UnsupportedLink(147), 0),
        (192, (0..9).fold(vec![], |inner, _| ppi(192, &[], &inner)), NonIp::TooDeep, 0),
        (239, [&[2, 0, 0, 0][..], &[8, 0, 5, 0], &[0; 4], &[3, 0, 9, 0]].concat(), malformed, 0),
        (258, vec![108, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0], malformed, 0),
        (1, ethernet(0x8926, &[0; 5]), NonIp::Truncated(Layer::Tag), 0),
        (1, ethernet(0x8903, &[0]), NonIp::Truncated(Layer::Tag), 0),
        (1, ethernet(0x893f, &[0, 0, 0, 0, 0, 0, 8, 6, 0]), NonIp::EtherType(0x0806), 0x0806),
        (1, ethernet(0x892f, &[0x89, 0x2f].repeat(200)), NonIp::TooDeep, 0),
        (1, ethernet(0x894f, &[0, 2, 1]), NonIp::Truncated(Layer::Nsh), 0),
        (1, ethernet(0x894f, &[0, 6, 1, 1, 0, 0, 0, 1]), NonIp::Truncated(Layer::Nsh), 0),
        (1, ethernet(0x894f, &[0, 1, 1, 1, 0, 0, 0, 1]), NonIp::Malformed(Layer::Nsh), 0),
        (1, ethernet(0x894f, &[0x40, 2, 1, 1, 0, 0, 0, 1]), NonIp::Malformed(Layer::Nsh), 0),
        (1, ethernet(0x894f, &[0, 2, 1, 9, 0, 0, 0, 1]), NonIp::EtherType(0x894f), 0x894f),
        (1, ethernet(0x894f, &[0, 2, 2, 4, 0, 0, 0, 1].repeat(40)), NonIp::TooDeep, 0),
        (1, ethernet(0x88e5, &macsec(0x2c, 0, &[0; 60])), NonIp::EtherType(0x88e5), 0x88e5),
        (1, ethernet(0x88e5, &macsec(0x80, 0, &[0; 60])), NonIp::Malformed(Layer::Macsec), 0),
        (1, ethernet(0x88e5, &macsec(0, 0, &[8])), NonIp::Truncated(Layer::Macsec), 0),
        (7, vec![1, 2, 213, 0, 0, 1], NonIp::EtherType(0x0806), 0x0806),
        (7, vec![1, 2, 212, 2, 0, 1, 0x45], NonIp::Arcnet(212), 0),
        (129, vec![1, 2, 0, 0, 250, 0, 0, 1], NonIp::Arcnet(250), 0),
        (178, b"MGD\0............".to_vec(), malformed, 0),
    ];
    for (link, frame, reason, dst_port) in cases {
        let (decoded, out) = decode(LinkType(link), &frame);
        assert_eq!(decoded, Decoded::NonIp(reason), "{link} {frame:02x?}");
        assert!(!out.is_ip() && out.pair_hash == 0 && out.ip_len == 0);
        assert_eq!(out.dst_port, dst_port);
        assert!(!reason.to_string().is_empty());
    }
}

#[test]
fn an_invalid_ipv4_header_still_counts() {
    let mut other_version = ipv4(17, 0, &UDP);
    other_version[0] = 0x55;
    let mut short_header = ipv4(17, 0, &UDP);
    short_header[0] = 0x44;
    let mut short_total = ipv4(17, 0, &UDP);
    short_total[3] = 19;
    let cut = ipv4(17, 0x2000, &UDP)[..12].to_vec();
    for (packet, ip_len, fragment) in [
        (other_version, 0, false),
        (short_header, 0, false),
        (short_total, 19, false),
        (cut, 32, true),
        (vec![], 0, false),
    ] {
        let (decoded, out) = decode(LinkType::ETHERNET, &ethernet(0x0800, &packet));
        assert_eq!((decoded, out.ip_len), (Decoded::Ipv4, ip_len), "{packet:02x?}");
        assert!(out.flags.contains(Flags::BAD_HEADER) && out.pair_hash == 0);
        assert_eq!(out.flags.contains(Flags::FRAGMENT), fragment);
    }
}

#[test]
fn lengths_limit_the_packet() {
    // The total length has no room for ports; the rest is padding.
    let mut packet = ipv4(17, 0, &UDP);
    packet[3] = 22;
    let (_, out) = decode(LinkType::ETHERNET, &ethernet(0x0800, &packet));
    assert!(!out.flags.contains(Flags::PORTS) && out.ip_len == 22 && out.dst_port == 0);
    // Segmentation offload leaves 0: the length on the wire counts.
    packet[3] = 0;
    let mut out = PacketRecord::EMPTY;
    let mut decoder = Decoder::new(HashKey::from_seed(1), Default::default());
    decoder.decode(LinkType::ETHERNET, 0, &ethernet(0x0800, &packet), 14 + 9000, &mut out);
    assert!(out.flags.contains(Flags::PORTS) && out.ip_len == 9000 && out.wire_len == 9014);
    // A length beyond the frame is used as it is.
    packet[2] = 0xff;
    let (_, out) = decode(LinkType::ETHERNET, &ethernet(0x0800, &packet));
    assert!(out.flags.contains(Flags::PORTS) && out.ip_len == 0xff00);
}

/// Both families, any headers before the data: a length of 0 is that of the frame on the wire, at most that of the jumbo
/// option.
#[test]
fn a_packet_without_a_length_ends_with_its_frame() {
    let zeroed = |mut packet: Vec<u8>, at: usize| {
        packet[at..at + 2].copy_from_slice(&[0, 0]);
        packet
    };
    let jumbo = |len: u32| [&[6, 0, 0xc2, 4][..], &len.to_be_bytes()].concat();
    let mut tcp = vec![0x12, 0x34, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 16, 1, 0, 0, 0, 0, 0];
    tcp.extend(b"data");
    let six = |next, chain: &[u8]| zeroed(ipv6(next, &[chain, &tcp].concat()), 4);
    let options = [6, 0, 1, 4, 0, 0, 0, 0];
    let four = zeroed(ipv4(6, 0, &tcp), 2);
    let cases = [
        (0x0800, four, 200_000, 200_000, 200_000 - 40),
        (0x86dd, six(6, &[]), 200_000, 200_000, 200_000 - 60),
        (0x86dd, six(6, &[]), 0, 64, 4),
        (0x86dd, six(60, &options), 200_000, 200_000, 200_000 - 68),
        (0x86dd, six(0, &jumbo(100_028)), 100_068, 100_068, 100_000),
        // A trailer of the link is not part of the packet; an option beyond the frame or of too small a size is wrong.
        (0x86dd, six(0, &jumbo(100_028)), 100_100, 100_068, 100_000),
        (0x86dd, six(0, &jumbo(u32::MAX)), 100_068, 100_068, 100_000),
        (0x86dd, six(0, &jumbo(7)), 100_068, 100_068, 100_000),
    ];
    for (ether_type, packet, wire, ip_len, data_len) in cases {
        let frame = ethernet(ether_type, &packet);
        let mut decoder =
            Decoder::new(HashKey::from_seed(1), Default::default()).with_segments(true);
        let mut out = PacketRecord::EMPTY;
        decoder.decode(LinkType::ETHERNET, 0, &frame, 14 + wire, &mut out);
        assert_eq!((out.ip_len, out.src_port, out.dst_port), (ip_len, 0x1234, 80), "{packet:x?}");
        assert!(out.flags.contains(Flags::DATA));
        assert_eq!(decoder.segment(&out).unwrap().data_len, data_len);
        assert_eq!(decoder.payload(LinkType::ETHERNET, &frame, &out).unwrap().bytes, b"data");
        // Truncated within its header.
        let cut = &frame[..14 + 8];
        decoder.decode(LinkType::ETHERNET, 0, cut, 14 + wire.max(64), &mut out);
        assert!(out.ip_len >= ip_len && out.ip_len <= wire.max(64), "{packet:x?} {}", out.ip_len);
    }
    // A packet without payload is no super-frame: only padding follows.
    let mut none = ethernet(0x86dd, &ipv6(59, &[]));
    none.extend([0; 6]);
    assert_eq!(decode(LinkType::ETHERNET, &none).1.ip_len, 40);
}

/// The payload of a label has no type: an Ethernet frame may look like IP, a control word or a control channel.
#[test]
fn the_payload_of_a_label_is_what_its_bytes_confirm() {
    let label = [0, 1, 1, 0x40];
    let (four, six) = (ipv4(17, 0, &UDP), ipv6(17, &UDP));
    let below = |payload: &[u8]| ethernet(0x8847, &[&label[..], payload].concat());
    let frame = |first: u8, ether_type: u16, packet: &[u8]| {
        // The fourth byte makes a length of IPv4 that fits, the sixth one of IPv6.
        let macs = [first, 0, 0, 40, 0, 8, 17, 64, 2, 0, 0, 0];
        [&macs[..], &ether_type.to_be_bytes(), packet].concat()
    };
    let word = [0, 0, 0, 7];
    let tagged = [&[0, 5, 8, 0][..], &four].concat();
    for first in (0..=15).flat_map(|nibble| [nibble << 4, nibble << 4 | 5]) {
        for (ether_type, packet) in [(0x0800, &four), (0x86dd, &six), (0x8100, &tagged)] {
            let inner = frame(first, ether_type, packet);
            for payload in [inner.clone(), [&word[..], &inner].concat()] {
                let (_, out) = decode(LinkType::ETHERNET, &below(&payload));
                let len = if ether_type == 0x86dd { 52 } else { 32 };
                assert_eq!((out.dst_port, out.ip_len), (80, len), "{first:x} {ether_type:x}");
                let hash = pair_hash(
                    &HashKey::from_seed(1),
                    &TunnelPorts::default(),
                    LinkType::ETHERNET,
                    &below(&payload),
                    0,
                );
                assert_eq!(hash, Some(out.pair_hash));
            }
        }
        let arp = frame(first, 0x0806, &[&[0, 1, 8, 0, 6, 4, 0, 1][..], &[9; 20]].concat());
        let (decoded, _) = decode(LinkType::ETHERNET, &below(&arp));
        assert_eq!(decoded, Decoded::NonIp(NonIp::EtherType(0x0806)), "{first:x}");
        let noise = [&[first][..], &[0x33; 60]].concat();
        let (decoded, _) = decode(LinkType::ETHERNET, &below(&noise));
        assert_eq!(decoded, Decoded::NonIp(NonIp::Mpls), "{first:x}");
    }
    // An IPv6 source whose third word is an EtherType.
    for ether_type in [0x0800, 0x0806, 0x8100, 0x8847, 0x86dd_u16] {
        let mut packet = six.clone();
        packet[12..14].copy_from_slice(&ether_type.to_be_bytes());
        assert_eq!(decode(LinkType::ETHERNET, &below(&packet)).1.dst_port, 80, "{ether_type:x}");
    }
    // IPv4 with one wrong byte; IPv4 that is longer than its frame.
    let mut wrong = four.clone();
    wrong[12] ^= 1;
    let mut long = four.clone();
    long[2] = 1;
    for packet in [wrong, sealed(long)] {
        let (decoded, _) = decode(LinkType::ETHERNET, &below(&packet));
        assert_eq!(decoded, Decoded::NonIp(NonIp::Mpls));
    }
    // Frames within frames end at the limit of nesting.
    let nested = (0..60).fold(four, |inner, _| below(&[&word[..], &below(&inner)].concat()));
    let (decoded, _) = decode(LinkType::ETHERNET, &nested);
    assert!(matches!(decoded, Decoded::NonIp(NonIp::Mpls | NonIp::TooDeep)), "{decoded:?}");
}

#[test]
fn other_transports_have_ports_too() {
    for protocol in [33, 132, 136] {
        for (kind, packet) in [(0x0800, ipv4(protocol, 0, &UDP)), (0x86dd, ipv6(protocol, &UDP))] {
            let (_, out) = decode(LinkType::ETHERNET, &ethernet(kind, &packet));
            assert!(out.flags.contains(Flags::PORTS));
            assert_eq!((out.src_port, out.dst_port, out.protocol), (0x1234, 80, protocol));
        }
    }
}

#[test]
fn extension_headers_are_walked_to_the_end_of_the_chain() {
    let one = |next: u8| [next, 0, 1, 4, 0, 0, 0, 0];
    // Hop-by-hop, destination options, routing, shim6, then UDP.
    let chain = [&one(60)[..], &one(43), &one(140), &one(17), &UDP].concat();
    let (_, out) = decode(LinkType::ETHERNET, &ethernet(0x86dd, &ipv6(0, &chain)));
    assert!(out.flags.contains(Flags::PORTS) && out.protocol == 17 && out.dst_port == 80);
    // No header may follow mobility, host identity, ESP and no-next.
    for end in [135, 139, 50, 59] {
        let chain = [&one(end)[..], &one(17), &UDP].concat();
        let (_, out) = decode(LinkType::ETHERNET, &ethernet(0x86dd, &ipv6(60, &chain)));
        assert!(!out.flags.contains(Flags::PORTS));
        assert_eq!((out.protocol, out.dst_port), (end, 0));
    }
    // An endless chain is not followed to its end; a header that is longer than the packet is rejected.
    let (_, out) = decode(LinkType::ETHERNET, &ethernet(0x86dd, &ipv6(60, &one(60).repeat(500))));
    assert_eq!((out.protocol, out.src_port), (60, 0));
    let (_, out) =
        decode(LinkType::ETHERNET, &ethernet(0x86dd, &ipv6(60, &[17, 200, 0, 0, 0, 0, 0, 0])));
    assert_eq!((out.protocol, out.src_port), (60, 0));
}

/// Decodes packets in order, a second apart, with one decoder.
fn sequence(kind: u16, packets: &[(u64, Vec<u8>)]) -> Vec<PacketRecord> {
    let mut decoder = Decoder::new(HashKey::from_seed(1), Default::default());
    let decode = |(second, packet): &(u64, Vec<u8>)| {
        let mut out = PacketRecord::EMPTY;
        let frame = ethernet(kind, packet);
        decoder.decode(LinkType::ETHERNET, second * 1_000_000_000, &frame, 0, &mut out);
        out
    };
    packets.iter().map(decode).collect()
}

fn facts(out: &PacketRecord) -> (bool, bool, bool, bool, u16, u8) {
    let has = |flag| out.flags.contains(flag);
    let (own, first) = (has(Flags::PORTS), has(Flags::PORTS_FROM_FIRST));
    (has(Flags::FRAGMENT), has(Flags::LATER_FRAGMENT), own, first, out.src_port, out.protocol)
}

#[test]
fn later_fragments_get_the_ports_of_the_first() {
    let (first, later) = (ipv4(17, 0x2000, &UDP), ipv4(17, 0x0002, &[0; 40]));
    let records = sequence(
        0x0800,
        &[
            (0, later.clone()),
            (1, first.clone()),
            (2, later.clone()),
            (31, later.clone()),
            (32, later.clone()),
        ],
    );
    let known: Vec<_> = records.iter().map(facts).collect();
    let found = (true, true, false, true, 0x1234, 17);
    let unknown = (true, true, false, false, 0, 17);
    assert_eq!(known, [unknown, (true, false, true, false, 0x1234, 17), found, found, unknown]);
    assert!(records.iter().all(|out| out.pair_hash == records[0].pair_hash));

    // A first fragment without complete ports makes its identification unknown.
    let tiny = ipv4(17, 0x2000, &UDP[..2]);
    let records = sequence(0x0800, &[(0, first), (1, tiny), (2, later)]);
    assert_eq!(facts(&records[1]), (true, false, false, false, 0, 17));
    assert_eq!(facts(&records[2]), unknown);
}

#[test]
fn fragments_are_parts_of_their_datagram() {
    let part = |frame: &[u8], original_len: u32| {
        let mut out = PacketRecord::EMPTY;
        let mut decoder = Decoder::new(HashKey::from_seed(1), Default::default());
        decoder.decode(LinkType::ETHERNET, 0, frame, original_len, &mut out);
        decoder
            .part(LinkType::ETHERNET, frame, &out)
            .map(|part| (part.protocol, part.offset, part.more, part.bytes.to_vec()))
    };
    let padded = |packet: &[u8]| [packet, &[9; 20]].concat();
    for (place, offset, more) in [(0x2000, 0, true), (0x2002, 16, true), (3, 24, false)] {
        let frame = ethernet(0x0800, &padded(&ipv4(17, place, &UDP)));
        assert_eq!(part(&frame, 0), Some((17, offset, more, UDP.to_vec())));
        // Cut within the packet.
        assert_eq!(part(&frame[..frame.len() - 21], 100), None);
        let place = (offset as u16 | u16::from(more)).to_be_bytes();
        let header = [17, 0, place[0], place[1], 0, 0, 0, 7];
        let options = [44, 0, 1, 4, 0, 0, 0, 0];
        let chain = [&options[..], &header, &UDP].concat();
        let frame = ethernet(0x86dd, &padded(&ipv6(60, &chain)));
        assert_eq!(part(&frame, 0), Some((17, offset, more, UDP.to_vec())));
        assert_eq!(part(&frame[..frame.len() - 21], 100), None);
    }
    assert_eq!(part(&ethernet(0x0800, &ipv4(17, 0, &UDP)), 0), None);
}

/// A datagram that was joined has the ports and the payload of one that arrived in one packet.
#[test]
fn a_joined_datagram_is_like_a_whole_one() {
    let flags = Flags::IPV4.0 | Flags::FRAGMENT.0 | Flags::LATER_FRAGMENT.0;
    let last = PacketRecord { flags: Flags(flags | Flags::VLAN.0), ..PacketRecord::EMPTY };
    let (record, payload) = joined(&last, 17, &UDP).unwrap();
    assert_eq!((record.src_port, record.dst_port, payload.bytes), (0x1234, 80, &b"data"[..]));
    let whole = Flags::IPV4.0 | Flags::VLAN.0 | Flags::PORTS.0 | Flags::DATA.0;
    assert_eq!(record.flags.0, whole);
    assert_eq!(joined(&last, 17, &UDP[..7]), None);
    assert_eq!(joined(&last, 50, &UDP), None);
}

#[test]
fn ipv6_fragments_learn_protocol_and_ports() {
    let options = [17, 0, 1, 4, 0, 0, 0, 0];
    let records = sequence(
        0x86dd,
        &[
            (0, fragment6(60, 0, true, &[&options[..], &UDP].concat())),
            (1, fragment6(60, 3, false, &[0; 40])),
            (2, fragment6(17, 0, false, &UDP)),
            (3, fragment6(58, 0, true, &[128, 0, 0, 0])),
            (4, fragment6(58, 1, false, &[0; 8])),
        ],
    );
    assert_eq!(facts(&records[0]), (true, false, true, false, 0x1234, 17));
    assert_eq!(facts(&records[1]), (true, true, false, true, 0x1234, 17));
    // Atomic: a complete datagram with a fragment header.
    assert_eq!(facts(&records[2]), (true, false, true, false, 0x1234, 17));
    assert_eq!(records[3].dst_port, 128 << 8);
    assert_eq!(
        (facts(&records[4]), records[4].dst_port),
        ((true, true, false, true, 0, 58), 128 << 8)
    );
}

/// `peek` is certain of all common packets, and never of one that may be a tunnel.
#[test]
fn peek_returns_the_pair_unless_the_packet_may_be_a_tunnel() {
    let key = HashKey::from_seed(1);
    let udp =
        |port: u16| [&[0x12, 0x34][..], &port.to_be_bytes(), &[0, 12, 0, 0, 1, 2, 3, 4]].concat();
    let v4 = |packet: Vec<u8>| ethernet(0x0800, &packet);
    let v6 = |packet: Vec<u8>| ethernet(0x86dd, &packet);
    let certain = [
        v4(ipv4(17, 0, &UDP)),
        v4(ipv4(6, 0, &[0; 20])),
        v4(ipv4(6, 0, &[])),
        v4(ipv4(1, 0, &[8, 0])),
        v4(ipv4(50, 0, &[0; 8])),
        v4(ipv4(17, 0x2000, &UDP)),
        // A later fragment has no ports, whatever its bytes are.
        v4(ipv4(17, 5, &udp(4789))),
        v6(ipv6(17, &UDP)),
        v6(ipv6(58, &[128, 0])),
        // Behind other headers, a first fragment, and a later one whose bytes look like a tunnel's ports.
        v6(ipv6(0, &[&[17, 0, 0, 0, 0, 0, 0, 0], &UDP[..]].concat())),
        v6(ipv6(51, &[&[58, 4], &[0; 22][..], &[128, 0]].concat())),
        v6(ipv6(60, &[&[6, 0, 0, 0, 0, 0, 0, 0], &[0; 20][..]].concat())),
        v6(ipv6(0, &[17, 9, 0, 0])),
        v6(fragment6(17, 0, true, &UDP)),
        v6(fragment6(17, 8, false, &udp(4789))),
        [&[2; 12][..], &[0x81, 0, 0, 7, 0x08, 0], &ipv4(17, 0, &UDP)].concat(),
        snap(&ipv4(17, 0, &UDP)).splice(0..0, ethernet(40, &[])).collect(),
        ethernet(0x0806, &[0; 28]),
        vec![1, 2, 3],
    ];
    for frame in certain {
        let (_, record) = decode(LinkType::ETHERNET, &frame);
        assert_eq!(
            pair_hash(&key, &TunnelPorts::default(), LinkType::ETHERNET, &frame, 0),
            Some(record.pair_hash),
            "{frame:x?}"
        );
    }
    let uncertain = [
        v4(ipv4(4, 0, &ipv4(17, 0, &UDP))),
        v4(ipv4(41, 0, &ipv6(17, &UDP))),
        v4(ipv4(47, 0, &[0; 8])),
        v6(ipv6(4, &ipv4(17, 0, &UDP))),
        v6(ipv6(0, &[17, 0, 0, 0, 0, 0, 0, 0])),
        v6(ipv6(60, &[&[17, 0, 0, 0, 0, 0, 0, 0], &udp(4789)[..]].concat())),
        v6(ipv6(60, &[&[41, 0, 0, 0, 0, 0, 0, 0], &ipv6(17, &UDP)[..]].concat())),
        v6(fragment6(17, 0, true, &udp(2152))),
        v4(ipv4(17, 0, &[0x12])),
        v4(ipv4(17, 0, &UDP)[..19].to_vec()),
        v6(ipv6(17, &UDP)[..39].to_vec()),
        v6(ipv4(17, 0, &UDP)),
        // The card sets the length of 0, but not a header of 52 bytes that is longer than the packet.
        v4([&[0x4d, 0, 0, 0], &ipv4(6, 0, &[0; 24])[4..]].concat()),
    ];
    let ports = [4789, 8472, 6081, 2152, 3544];
    let tunnels =
        ports.into_iter().flat_map(|port| [v4(ipv4(17, 0, &udp(port))), v6(ipv6(17, &udp(port)))]);
    for frame in uncertain.into_iter().chain(tunnels) {
        assert_eq!(
            pair_hash(&key, &TunnelPorts::default(), LinkType::ETHERNET, &frame, 0),
            None,
            "{frame:x?}"
        );
    }
}
