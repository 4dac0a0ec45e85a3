//! Hand-made tunnels: all kinds, nested, truncated, malformed, fragmented.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::Arc;

use crate::sealed;

use ringtap_wire::{
    Decoder, Flags, HashKey, LinkType, PacketRecord, Path, Paths, Tunnel, TunnelKind, TunnelPorts,
    Tunnels, pair_hash,
};

const FOUR: u16 = 0x0800;
const SIX: u16 = 0x86dd;
const GRE: u8 = 47;

fn cat(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

fn ipv4_at(place: u16, ends: [u8; 2], protocol: u8, payload: &[u8]) -> Vec<u8> {
    let numbers = [20 + payload.len() as u16, 7, place].map(u16::to_be_bytes).concat();
    let ends = [10, 0, 0, ends[0], 10, 0, 0, ends[1]];
    sealed(cat(&[&[0x45, 0], &numbers, &[60, protocol, 0, 0], &ends, payload]))
}

fn ipv4(ends: [u8; 2], protocol: u8, payload: &[u8]) -> Vec<u8> {
    ipv4_at(0, ends, protocol, payload)
}

/// The last byte of a Teredo client's address.
fn address6(last: u8) -> [u8; 16] {
    let mut address = [0; 16];
    (address[0], address[1], address[15]) = (0x20, 1, last);
    address
}

fn ipv6(ends: [u8; 2], next: u8, payload: &[u8]) -> Vec<u8> {
    let len = (payload.len() as u16).to_be_bytes();
    let ends = ends.map(address6).concat();
    cat(&[&[0x60, 0, 0, 0], &len, &[next, 60], &ends, payload])
}

fn udp(ports: [u16; 2], data: &[u8]) -> Vec<u8> {
    let header = [ports[0], ports[1], 8 + data.len() as u16, 0].map(u16::to_be_bytes).concat();
    cat(&[&header, data])
}

fn ethernet(ether_type: u16, packet: &[u8]) -> Vec<u8> {
    cat(&[&[1; 6], &[2; 6], &ether_type.to_be_bytes(), packet])
}

const INNER_MACS: [u8; 12] = [3, 3, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4];

/// The frame in a tunnel.
fn inner_ethernet(ether_type: u16, packet: &[u8]) -> Vec<u8> {
    cat(&[&INNER_MACS, &ether_type.to_be_bytes(), packet])
}

/// The frame in a tunnel, with IPv4 in it.
fn inner_frame(packet: &[u8]) -> Vec<u8> {
    inner_ethernet(FOUR, packet)
}

fn vxlan(network: u8, frame: &[u8]) -> Vec<u8> {
    udp([999, 4789], &cat(&[&[8, 0, 0, 0, 0, 0, network, 0], frame]))
}

/// The inner packet, IPv4 and IPv6.
fn user4() -> Vec<u8> {
    ipv4([3, 4], 17, &udp([1234, 80], b"data"))
}

fn user6() -> Vec<u8> {
    ipv6([3, 4], 17, &udp([1234, 80], b"data"))
}

fn decoder(tunnels: Tunnels) -> (Decoder, Arc<Paths>) {
    let paths = Arc::new(Paths::new());
    let decoder = Decoder::new(HashKey::from_seed(1), Arc::clone(&paths));
    (decoder.with_tunnels(tunnels), paths)
}

fn decode(
    decoder: &mut Decoder,
    frame: &[u8],
    wire: usize,
) -> (PacketRecord, Option<PacketRecord>) {
    let mut out = PacketRecord::EMPTY;
    decoder.decode(LinkType::ETHERNET, 5, frame, wire as u32, &mut out);
    (out, decoder.inner(&out).copied())
}

/// All kinds of tunnels: name, protocol and payload of the outer IP packet, kind and identifier.
fn cases() -> Vec<(&'static str, u8, Vec<u8>, TunnelKind, u32)> {
    use TunnelKind::*;
    let (four, six) = (user4(), user6());
    let frame = inner_frame(&four);
    let gre = |flags: u16, protocol: u16, rest: &[u8]| {
        cat(&[&flags.to_be_bytes(), &protocol.to_be_bytes(), rest])
    };
    let label = (77u32 << 12 | 0x100 | 64).to_be_bytes();
    let sequence = [0, 0, 0, 9];
    let two = [0x10, 5, 0x00, 0x2a, 0, 0, 0, 0];
    let three =
        |frame_type: u8, option: u8| [0x20, 5, 0, 0x2b, 0, 0, 0, 1, 0, 0, frame_type << 2, option];
    let geneve = |words: u8, protocol: u16, rest: &[u8]| {
        let options = vec![0; usize::from(words) * 4];
        let protocol = protocol.to_be_bytes();
        let header = [words, 0, protocol[0], protocol[1], 0, 0, 6, 0];
        udp([999, 6081], &cat(&[&header, &options, rest]))
    };
    let gtp = |ports: [u16; 2], flags: u8, optional: &[u8], packet: &[u8]| {
        let len = ((optional.len() + packet.len()) as u16).to_be_bytes();
        udp(ports, &cat(&[&[0x30 | flags, 255, len[0], len[1], 0, 0, 0, 8], optional, packet]))
    };
    let teredo = |header: &[u8]| udp([3544, 999], &cat(&[header, &six]));
    let authentication = cat(&[&[0, 1, 2, 3], &[0xaa; 2 + 3], &[0xbb; 9]]);
    let pptp = |flags: u16, rest: &[u8], packet: &[u8]| {
        let ppp = cat(&[&[0xff, 3, 0, 0x21], packet]);
        let len = (ppp.len() as u16).to_be_bytes();
        gre(flags, 0x880b, &cat(&[&len, &[0, 9], rest, &ppp]))
    };
    let route = [0, 2, 0, 4, 9, 9, 9, 9, 0, 0, 0, 0];
    let labelled = cat(&[&label, &four]);
    let gpe = |flags: u8, next: u8, packet: &[u8]| {
        udp([999, 4790], &cat(&[&[flags, 0, 0, next, 0, 0, 7, 0], packet]))
    };
    let nsh = cat(&[&[0, 2, 2, 1, 0, 0, 1, 9], &four]);
    let ppp = |packet: &[u8]| cat(&[&[0xff, 3, 0, 0x21], packet]);
    let l2tp =
        |flags: u8, header: &[u8]| udp([1701, 999], &cat(&[&[flags, 2], header, &ppp(&four)]));
    let l2tp3 = |before: &[u8], frame: &[u8]| {
        udp([1701, 1701], &cat(&[&[0, 3, 0, 0, 0, 0, 1, 2], before, frame]))
    };
    let wlan = |control: [u8; 2], packet: &[u8]| {
        let addresses = [4; 18];
        cat(&[&control, &[0, 0], &addresses, &[0; 2], &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0], packet])
    };
    let capwap = |bits: [u8; 3], options: &[u8], frame: &[u8]| {
        udp([5247, 999], &cat(&[&[0], &bits, &[0; 4], options, frame]))
    };
    vec![
        ("ip in ip", 4, four.clone(), IpIp, 0),
        ("6in4", 41, six.clone(), SixInFour, 0),
        ("gre", GRE, gre(0, FOUR, &four), Gre, 0),
        ("gre, ipv6", GRE, gre(0, SIX, &six), Gre, 0),
        ("gre, checksum", GRE, gre(0x8000, FOUR, &cat(&[&[0; 4], &four])), Gre, 0),
        ("gre, key", GRE, gre(0x2000, FOUR, &cat(&[&[1, 0, 0, 2], &four])), Gre, 1 << 24 | 2),
        (
            "gre, all",
            GRE,
            gre(0xf000, FOUR, &cat(&[&[0; 4], &[0, 0, 0, 3], &sequence, &route, &four])),
            Gre,
            3,
        ),
        ("gre, routing", GRE, gre(0x4000, FOUR, &cat(&[&[0; 4], &route, &four])), Gre, 0),
        ("gre, mpls", GRE, gre(0, 0x8847, &cat(&[&label, &four])), Gre, 0),
        ("gre, ethernet", GRE, gre(0, 0x6558, &frame), Gre, 0),
        (
            "gre, vlan",
            GRE,
            gre(0, 0x6558, &inner_ethernet(0x8100, &cat(&[&[0, 5, 8, 0], &four]))),
            Gre,
            0,
        ),
        ("gre, wccp", GRE, gre(0, 0x883e, &four), Gre, 0),
        ("gre, wccp 2", GRE, gre(0, 0x883e, &cat(&[&[0, 1, 2, 3], &four])), Gre, 0),
        ("gre, ppp", GRE, gre(0, 0x880b, &cat(&[&[0, 0x21], &four])), Gre, 0),
        ("pptp", GRE, pptp(0x3001, &sequence, &four), Gre, 9),
        ("pptp, acknowledging", GRE, pptp(0x3081, &cat(&[&sequence, &sequence]), &four), Gre, 9),
        ("erspan i", GRE, gre(0, 0x88be, &frame), Erspan, 0),
        ("erspan ii", GRE, gre(0x1000, 0x88be, &cat(&[&sequence, &two, &frame])), Erspan, 42),
        (
            "erspan iii",
            GRE,
            gre(0x1000, 0x22eb, &cat(&[&sequence, &three(0, 0), &frame])),
            Erspan,
            43,
        ),
        (
            "erspan iii, sub-header",
            GRE,
            gre(0x1000, 0x22eb, &cat(&[&sequence, &three(0, 1), &[7; 8], &frame])),
            Erspan,
            43,
        ),
        (
            "erspan iii, ip",
            GRE,
            gre(0x1000, 0x22eb, &cat(&[&sequence, &three(2, 0), &six])),
            Erspan,
            43,
        ),
        ("vxlan", 17, vxlan(5, &frame), Vxlan, 5),
        ("vxlan, ipv6", 17, vxlan(5, &inner_ethernet(SIX, &six)), Vxlan, 5),
        (
            "vxlan, old port",
            17,
            udp([999, 8472], &cat(&[&[8, 0, 0, 0, 1, 0, 0, 0], &frame])),
            Vxlan,
            1 << 16,
        ),
        ("geneve", 17, geneve(0, 0x6558, &frame), Geneve, 6),
        ("geneve, options", 17, geneve(63, 0x6558, &frame), Geneve, 6),
        ("geneve, ip", 17, geneve(1, SIX, &six), Geneve, 6),
        ("gtp", 17, gtp([999, 2152], 0, &[], &four), GtpU, 8),
        ("gtp, from its port", 17, gtp([2152, 999], 0, &[], &six), GtpU, 8),
        // Without the extension bit the last byte has no meaning.
        ("gtp, sequence", 17, gtp([2152, 2152], 2, &[0, 1, 0, 0x85], &four), GtpU, 8),
        (
            "gtp, extensions",
            17,
            gtp([2152, 2152], 4, &[0, 0, 0, 0x85, 1, 0, 0, 0xc0, 2, 0, 0, 0, 0, 0, 0, 0], &four),
            GtpU,
            8,
        ),
        ("teredo", 17, teredo(&[]), Teredo, 0),
        ("teredo, origin", 17, teredo(&[0, 0, 1, 2, 3, 4, 5, 6]), Teredo, 0),
        ("teredo, authentication", 17, teredo(&authentication), Teredo, 0),
        (
            "teredo, both",
            17,
            teredo(&cat(&[&authentication, &[0, 0, 1, 2, 3, 4, 5, 6]])),
            Teredo,
            0,
        ),
        ("teredo, any port", 17, udp([40_000, 50_000], &six), Teredo, 0),
        ("gre, nsh", GRE, gre(0, 0x894f, &nsh), Gre, 0),
        ("gre, aruba", GRE, gre(0, 0x8200, &wlan([8, 1], &four)), Gre, 0),
        ("gre, aruba, last", GRE, gre(0, 0x8370, &wlan([8, 2], &four)), Gre, 0),
        (
            "gre in udp",
            17,
            udp([999, 4754], &gre(0x2000, FOUR, &cat(&[&[0, 0, 1, 1], &four]))),
            GreUdp,
            257,
        ),
        ("gre in udp, ethernet", 17, udp([999, 4754], &gre(0, 0x6558, &frame)), GreUdp, 0),
        ("mpls in udp", 17, udp([999, 6635], &labelled), MplsUdp, 0),
        ("vxlan-gpe", 17, gpe(0x0c, 3, &frame), VxlanGpe, 7),
        ("vxlan-gpe, ip", 17, gpe(0x0c, 1, &four), VxlanGpe, 7),
        ("vxlan-gpe, ipv6", 17, gpe(0x0c, 2, &six), VxlanGpe, 7),
        ("vxlan-gpe, nsh", 17, gpe(0x0c, 4, &nsh), VxlanGpe, 7),
        ("vxlan-gpe, mpls", 17, gpe(0x0c, 5, &labelled), VxlanGpe, 7),
        ("vxlan-gpe, no protocol", 17, gpe(0x08, 0, &frame), VxlanGpe, 7),
        ("l2tp", 17, l2tp(0, &[0, 1, 0, 2]), L2tp, 1 << 16 | 2),
        (
            "l2tp, length",
            17,
            l2tp(0x40, &cat(&[&[0, 8 + 4 + 32], &[0, 1, 0, 2]])),
            L2tp,
            1 << 16 | 2,
        ),
        (
            "l2tp, all",
            17,
            l2tp(0x4b, &cat(&[&[0, 18 + 4 + 32], &[0, 1, 0, 2], &[0, 5, 0, 6], &[0, 2, 9, 9]])),
            L2tp,
            1 << 16 | 2,
        ),
        ("l2tp 3", 17, l2tp3(&[], &frame), L2tp, 258),
        ("l2tp 3, sublayer", 17, l2tp3(&[0x40, 0, 0, 1], &frame), L2tp, 258),
        ("l2tp 3, cookie", 17, l2tp3(&[1, 2, 3, 4, 5, 6, 7, 8, 0x40, 0, 0, 1], &frame), L2tp, 258),
        ("l2tp 3, ppp", 17, l2tp3(&[0x40, 0, 0, 1], &ppp(&four)), L2tp, 258),
        ("l2tp over ip", 115, cat(&[&[0, 0, 0, 9], &[0x40, 0, 0, 1], &frame]), L2tpIp, 9),
        ("l2tp over ip, ipv6", 115, cat(&[&[0, 0, 0, 9], &inner_ethernet(SIX, &six)]), L2tpIp, 9),
        ("etherip", 97, cat(&[&[0x30, 0], &frame]), EtherIp, 0),
        ("gue", 17, udp([999, 6080], &cat(&[&[0, 4, 0, 0], &four])), Gue, 0),
        ("gue, ipv6", 17, udp([999, 6080], &cat(&[&[1, 41, 0, 0, 1, 2, 3, 4], &six])), Gue, 0),
        ("gue, gre", 17, udp([999, 6080], &cat(&[&[0, GRE, 0, 0], &gre(0, FOUR, &four)])), Gue, 0),
        ("gue 1", 17, udp([999, 6080], &four), Gue, 0),
        ("gue 1, ipv6", 17, udp([999, 6080], &six), Gue, 0),
        ("lisp", 17, udp([999, 4341], &cat(&[&[0xc0, 1, 2, 3, 0, 0, 0, 1], &four])), Lisp, 0),
        (
            "lisp, instance",
            17,
            udp([999, 4341], &cat(&[&[8, 0, 0, 0, 0, 1, 0, 1], &six])),
            Lisp,
            256,
        ),
        ("capwap", 17, capwap([0x10, 0x02, 0], &[], &frame), Capwap, 0),
        ("capwap, 802.11", 17, capwap([0x10, 0x43, 0], &[], &wlan([8, 1], &four)), Capwap, 0),
        (
            "capwap, swapped",
            17,
            capwap([0x20, 0x43, 0x30], &[6, 1, 2, 3, 4, 5, 6, 0], &wlan([1, 8], &four)),
            Capwap,
            0,
        ),
    ]
}

/// Returns true if this is the record of the inner packet, except for its path.
fn is_users(inner: &PacketRecord) -> bool {
    let has = |flag| inner.flags.contains(flag);
    let (src, dst) = if has(Flags::IPV4) {
        ([10, 0, 0, 3, 0], [10, 0, 0, 4, 0])
    } else {
        ([0x20, 1, 0, 0, 0], [0x20, 1, 0, 0, 0])
    };
    has(Flags::INNER)
        && has(Flags::PORTS)
        && has(Flags::DATA)
        && !has(Flags::TUNNEL)
        && (&inner.src[..5], &inner.dst[..5]) == (&src, &dst)
        && (inner.src_port, inner.dst_port, inner.protocol, inner.ttl) == (1234, 80, 17, 60)
        && inner.ip_len == if has(Flags::IPV4) { 32 } else { 52 }
        && inner.pair_hash == HashKey::from_seed(1).pair(&inner.src, &inner.dst)
        && inner.ts_ns == 5
}

#[test]
fn every_kind_is_opened_in_both_versions() {
    for (name, protocol, payload, kind, id) in cases() {
        let mut src = [0; 16];
        (src[0], src[3]) = (10, 1);
        let (mut dst, six) = (src, [address6(1), address6(2)]);
        dst[3] = 2;
        for (ether_type, packet, ends) in [
            (FOUR, ipv4([1, 2], protocol, &payload), [src, dst]),
            (SIX, ipv6([1, 2], protocol, &payload), six),
        ] {
            let frame = ethernet(ether_type, &packet);
            let (mut decoder, paths) = decoder(Tunnels::Inner);
            let (outer, inner) = decode(&mut decoder, &frame, frame.len());
            let inner = inner.unwrap_or_else(|| panic!("{name}: {outer:?}"));
            assert!(is_users(&inner), "{name}: {inner:?}");
            assert_eq!(inner.wire_len, frame.len() as u32);
            assert!(outer.flags.contains(Flags::TUNNEL) && !outer.flags.contains(Flags::INNER));
            assert_eq!((outer.src, outer.dst, outer.protocol), (ends[0], ends[1], protocol));
            let macs = [[2; 6], [1; 6]];
            let tunnel = Tunnel { kind, ipv6: ether_type == SIX, src: ends[0], dst: ends[1], id };
            let path = Path { macs, ..Path::default() };
            assert_eq!(*paths.get(outer.path), path, "{name}");
            let mut within = Path { tunnel: Some(tunnel), ..path };
            if payload.windows(12).any(|bytes| bytes == INNER_MACS) {
                (within.macs, within.outer_macs) = ([[4; 6], [3; 6]], macs);
            }
            assert_eq!(*paths.get(inner.path), within, "{name}");
        }
    }
}

#[test]
fn an_unopened_tunnel_is_an_ordinary_packet() {
    for (name, protocol, payload, ..) in cases() {
        let frame = ethernet(FOUR, &ipv4([1, 2], protocol, &payload));
        let (mut inner, _) = decoder(Tunnels::Inner);
        let (mut opened, _) = decode(&mut inner, &frame, frame.len());
        opened.flags.0 &= !Flags::TUNNEL.0;
        let (mut outer, _) = decoder(Tunnels::Outer);
        assert_eq!(decode(&mut outer, &frame, frame.len()), (opened, None), "{name}");
    }
}

#[test]
fn a_truncated_tunnel_is_opened_if_its_inner_header_is_complete() {
    for (name, protocol, payload, ..) in cases() {
        let frame = ethernet(FOUR, &ipv4([1, 2], protocol, &payload));
        let mut opened_at = None;
        for len in 0..=frame.len() {
            let (mut decoder, _) = decoder(Tunnels::Inner);
            let (outer, inner) = decode(&mut decoder, &frame[..len], frame.len());
            let Some(inner) = inner else {
                assert!(opened_at.is_none() && !outer.flags.contains(Flags::TUNNEL), "{name}");
                continue;
            };
            opened_at.get_or_insert(len);
            assert_eq!(inner.ttl, 60, "{name}");
            assert_eq!(inner.flags.contains(Flags::TRUNCATED), len < frame.len());
            assert!(!inner.flags.contains(Flags::BAD_HEADER));
        }
        // 12 more bytes follow the inner addresses.
        assert_eq!(opened_at, Some(frame.len() - 12), "{name}");
    }
}

/// A super-frame in a tunnel: no header says a length.
#[test]
fn packets_without_lengths_are_opened() {
    let zeroed = |mut packet: Vec<u8>, at: usize| {
        packet[at..at + 2].copy_from_slice(&[0, 0]);
        packet
    };
    let outer4 = |protocol, payload: &[u8]| {
        ethernet(FOUR, &sealed(zeroed(ipv4([1, 2], protocol, payload), 2)))
    };
    let outer6 =
        |protocol, payload: &[u8]| ethernet(SIX, &zeroed(ipv6([1, 2], protocol, payload), 4));
    for (ether_type, user, number) in
        [(FOUR, sealed(zeroed(user4(), 2)), 4), (SIX, zeroed(user6(), 4), 41)]
    {
        let datagram = vxlan(1, &ethernet(ether_type, &user));
        for (frame, before) in [
            (outer4(number, &user), 34),
            (outer6(number, &user), 54),
            (outer4(17, &datagram), 34 + 8 + 8 + 14),
            (outer6(17, &datagram), 54 + 8 + 8 + 14),
        ] {
            let (mut decoder, _) = decoder(Tunnels::Both);
            let (outer, inner) = decode(&mut decoder, &frame, 150_000);
            let inner = inner.unwrap();
            assert_eq!((outer.ip_len, inner.ip_len), (150_000 - 14, 150_000 - before));
            assert_eq!((inner.src_port, inner.dst_port), (1234, 80));
        }
    }
}

/// tshark finds the same packet in all of them, except those that it does not decode.
#[test]
fn tshark_opens_the_same_tunnels() {
    /// Tunnels that tshark does not decode, or for which it needs its preferences.
    const UNSUPPORTED: [&str; 13] = [
        "erspan iii, ip",
        "vxlan-gpe, no protocol",
        // Without the control messages that say what the session carries.
        "l2tp 3",
        "l2tp 3, sublayer",
        "l2tp 3, cookie",
        "l2tp 3, ppp",
        "l2tp over ip",
        "l2tp over ip, ipv6",
        "gue",
        "gue, ipv6",
        "gue, gre",
        "gue 1",
        // It swaps the control bytes always or never.
        "capwap, 802.11",
    ];
    let word = |word: u32| word.to_le_bytes();
    let cases = cases();
    let mut bytes = [0xa1b2_c3d4, 4 << 16 | 2, 0, 0, 1 << 18, 1].map(word).concat();
    for (number, (_, protocol, payload, ..)) in (0..).zip(&cases) {
        let frame = ethernet(FOUR, &ipv4([1, 2], *protocol, payload));
        let len = frame.len() as u32;
        bytes.extend([number, 0, len, len].map(word).concat());
        bytes.extend(frame);
    }
    let mut tshark = Command::new("tshark");
    let options = ["-n", "-T", "fields", "-E", "occurrence=l", "-e", "udp.srcport", "-e", "ip.len"];
    tshark.args(["-r", "-"]).args(options).args(["-e", "ipv6.plen"]);
    tshark.args(["-d", "udp.port==8472,vxlan", "--enable-heuristic", "teredo_udp"]);
    let pipes = tshark.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let Ok(mut child) = pipes.spawn() else {
        eprintln!("SKIPPED: tshark is not installed");
        return;
    };
    child.stdin.take().unwrap().write_all(&bytes).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), cases.len(), "{}", String::from_utf8_lossy(&output.stderr));
    let found = |line: &str| {
        let columns: Vec<_> = line.split('\t').collect();
        columns[0] == "1234" && (columns[1] == "32" || columns[2] == "12")
    };
    let differs: Vec<_> = (cases.iter().zip(text.lines()))
        .filter(|((name, ..), line)| found(line) == UNSUPPORTED.contains(name))
        .map(|((name, ..), line)| (name, line))
        .collect();
    assert_eq!(differs, []);
}

#[test]
fn tunnels_are_opened_on_added_ports() {
    let frame = ethernet(FOUR, &user4());
    let datagram = udp([999, 9000], &cat(&[&[8, 0, 0, 0, 0, 0, 5, 0], &frame]));
    let packet = ethernet(FOUR, &ipv4([1, 2], 17, &datagram));
    for (list, kind) in [
        ("9000=vxlan", Some(TunnelKind::Vxlan)),
        ("9000=vxlan-gpe", Some(TunnelKind::VxlanGpe)),
        ("9000=geneve", None),
        ("9000=none,9001=vxlan", None),
    ] {
        let ports: TunnelPorts = list.parse().unwrap();
        let (decoder, paths) = decoder(Tunnels::Inner);
        let mut decoder = decoder.with_tunnel_ports(ports.clone());
        let (_, inner) = decode(&mut decoder, &packet, packet.len());
        let own = inner.and_then(|inner| paths.get(inner.path).tunnel);
        assert_eq!(own.map(|tunnel| tunnel.kind), kind, "{list}");
        let hash = pair_hash(&HashKey::from_seed(1), &ports, LinkType::ETHERNET, &packet, 0);
        assert_eq!(hash, None, "{list}");
    }
    // Assigned ports without their tunnels.
    for (list, datagram) in [
        ("4789=none", vxlan(5, &frame)),
        ("3544=none", udp([3544, 999], &user6())),
        ("999=none", udp([3544, 999], &user6())),
    ] {
        let (decoder, _) = decoder(Tunnels::Inner);
        let mut decoder = decoder.with_tunnel_ports(list.parse().unwrap());
        let packet = ethernet(FOUR, &ipv4([1, 2], 17, &datagram));
        assert_eq!(decode(&mut decoder, &packet, packet.len()).1, None, "{list}");
    }
}

#[test]
fn malformed_tunnels_are_not_opened() {
    let (four, six) = (user4(), user6());
    let frame = ethernet(FOUR, &four);
    let with = |packet: &[u8], at: usize, byte: u8| {
        let mut packet = packet.to_vec();
        packet[at] = byte;
        if packet[0] == 0x45 { sealed(packet) } else { packet }
    };
    let gre = |head: &[u8], rest: &[u8]| (GRE, cat(&[head, rest]));
    let gtp = |head: &[u8], rest: &[u8]| (17, udp([2152, 2152], &cat(&[head, rest])));
    let teredo = |data: &[u8]| (17, udp([3544, 3544], data));
    let cases = [
        ("another version", (4, six.clone())),
        ("another version", (41, four.clone())),
        ("a short header", (4, with(&four, 0, 0x44))),
        ("a length too short", (4, with(&four, 3, 19))),
        ("gre of another version", gre(&[0, 2, 8, 0], &four)),
        ("gre with arp", gre(&[0, 0, 8, 6], &four)),
        ("gre with a length", gre(&[0, 0, 0, 100], &four)),
        ("gre with a route beyond the end", gre(&[0x40, 0, 8, 0, 0, 0, 0, 0, 0, 2, 0, 255], &four)),
        ("pptp without data", gre(&[0x20, 0x81, 0x88, 0x0b, 0, 0, 0, 1, 0, 0, 0, 1], &[])),
        ("pptp, compressed", gre(&[0x30, 1, 0x88, 0x0b, 0, 60, 0, 1, 0, 0, 0, 1, 0, 0xfd], &four)),
        (
            "erspan of another version",
            gre(&[0x10, 0, 0x88, 0xbe, 0, 0, 0, 1], &cat(&[&[0; 8], &frame])),
        ),
        ("vxlan without a network", (17, udp([9, 4789], &cat(&[&[0; 8], &frame])))),
        ("vxlan with arp", (17, vxlan(1, &ethernet(0x0806, &four)))),
        ("vxlan that is longer than it is", (17, vxlan(1, &ethernet(FOUR, &with(&four, 3, 200))))),
        (
            "vxlan with a wrong checksum",
            (17, vxlan(1, &ethernet(FOUR, &cat(&[&four[..12], &[11], &four[13..]])))),
        ),
        (
            "vxlan's port as source",
            (17, udp([4789, 9], &cat(&[&[8, 0, 0, 0, 0, 0, 1, 0], &frame]))),
        ),
        (
            "geneve of another version",
            (17, udp([9, 6081], &cat(&[&[0x40, 0, 8, 0, 0, 0, 1, 0], &four]))),
        ),
        (
            "geneve with too many options",
            (17, udp([9, 6081], &cat(&[&[63, 0, 8, 0, 0, 0, 1, 0], &four]))),
        ),
        ("gtp, echo", gtp(&[0x30, 1, 0, 32, 0, 0, 0, 1], &four)),
        ("gtp prime", gtp(&[0x20, 255, 0, 32, 0, 0, 0, 1], &four)),
        ("gtp 2", gtp(&[0x50, 255, 0, 32, 0, 0, 0, 1], &four)),
        ("gtp, too long", gtp(&[0x30, 255, 0, 33, 0, 0, 0, 1], &four)),
        ("gtp with ethernet", gtp(&[0x30, 255, 0, 46, 0, 0, 0, 1], &frame)),
        (
            "gtp with an extension of nothing",
            gtp(&[0x34, 255, 0, 40, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0], &four),
        ),
        ("teredo with ipv4", teredo(&four)),
        ("teredo without a client", teredo(&with(&with(&six, 9, 2), 25, 2))),
        ("teredo, too long", teredo(&with(&six, 5, 13))),
        ("gre of aruba, odd", gre(&[0, 0, 0x82, 0x01], &[8; 80])),
        ("gre of aruba, encrypted", gre(&[0, 0, 0x82, 0x00, 8, 0x41], &[0; 80])),
        ("gre in udp of another version", (17, udp([9, 4754], &cat(&[&[0, 2, 8, 0], &four])))),
        ("etherip of another version", (97, cat(&[&[0x40, 0], &frame]))),
        ("l2tp, control", (17, udp([1701, 1701], &cat(&[&[0xc8, 2, 0, 44, 0, 1, 0, 2], &four])))),
        (
            "l2tp, a length too short",
            (17, udp([1701, 1701], &cat(&[&[0x40, 2, 0, 3, 0, 1, 0, 2, 0, 0x21], &four]))),
        ),
        ("l2tp 3, session 0", (115, cat(&[&[0; 4], &frame]))),
        (
            "l2tp 3 with a wrong checksum",
            (115, cat(&[&[1; 4], &ethernet(FOUR, &cat(&[&four[..10], &[0, 0], &four[12..]]))])),
        ),
        ("gue, control", (17, udp([9, 6080], &cat(&[&[0x20, 4, 0, 0], &four])))),
        ("gue with udp", (17, udp([9, 6080], &cat(&[&[0, 17, 0, 0], &four])))),
        ("gue of another variant", (17, udp([9, 6080], &cat(&[&[0x80, 4, 0, 0], &four])))),
        ("lisp with ethernet", (17, udp([9, 4341], &cat(&[&[0; 8], &frame])))),
        ("vxlan-gpe, control", (17, udp([9, 4790], &cat(&[&[0x0d, 0, 0, 1, 0, 0, 1, 0], &four])))),
        (
            "vxlan-gpe, unknown protocol",
            (17, udp([9, 4790], &cat(&[&[0x0c, 0, 0, 9, 0, 0, 1, 0], &four]))),
        ),
        ("capwap, dtls", (17, udp([5247, 9], &cat(&[&[1, 0x10, 2, 0, 0, 0, 0, 0], &frame])))),
        (
            "capwap, fragment",
            (17, udp([5247, 9], &cat(&[&[0, 0x10, 2, 0x80, 0, 0, 0, 0], &frame]))),
        ),
        ("capwap, no header", (17, udp([5247, 9], &cat(&[&[0, 0, 2, 0, 0, 0, 0, 0], &frame])))),
        ("mpls in udp without ip", (17, udp([9, 6635], &[0, 5, 1, 64, 0x50, 0, 0, 0, 0, 0]))),
        ("teredo's shape without a client", (17, udp([1, 2], &with(&with(&six, 9, 2), 25, 2)))),
        ("teredo's shape, longer", (17, udp([1, 2], &cat(&[&six, &[0; 8]])))),
        (
            "udp without a port of a tunnel",
            (17, udp([1, 2], &cat(&[&[8, 0, 0, 0, 0, 0, 1, 0], &frame]))),
        ),
        ("another protocol", (50, four.clone())),
    ];
    for (name, (protocol, payload)) in cases {
        let frame = ethernet(FOUR, &ipv4([1, 2], protocol, &payload));
        let (mut decoder, paths) = decoder(Tunnels::Inner);
        let (outer, inner) = decode(&mut decoder, &frame, frame.len());
        assert_eq!(inner, None, "{name}");
        assert_eq!((outer.protocol, outer.flags.contains(Flags::TUNNEL)), (protocol, false));
        assert_eq!(*paths.get(outer.path + 1), Path::default(), "{name}: no path of a tunnel");
    }
}

#[test]
fn the_innermost_packet_and_the_outermost_tunnel_are_reported() {
    let gre = cat(&[&[0, 0, 8, 0], &user4()]);
    let within = inner_frame(&ipv4([5, 6], GRE, &gre));
    let packet = ipv4([7, 8], 17, &vxlan(3, &within));
    let tag = |packet: &[u8]| cat(&[&[0x20, 9, 8, 0], packet]);
    let (mut decoder, paths) = decoder(Tunnels::Both);
    let frame = ethernet(0x88a8, &tag(&packet));
    let (outer, inner) = decode(&mut decoder, &frame, frame.len());
    let inner = inner.unwrap();
    assert!(is_users(&inner));
    assert!(outer.flags.contains(Flags::VLAN) && inner.flags.contains(Flags::VLAN));
    let path = paths.get(inner.path);
    let tunnel = path.tunnel.unwrap();
    assert_eq!(
        (tunnel.kind, tunnel.id, tunnel.src[3], tunnel.dst[3]),
        (TunnelKind::Vxlan, 3, 7, 8)
    );
    assert_eq!((path.vlans, path.vlan_tags), ([9, 0], 1));
    assert_eq!(path.macs, [[4; 6], [3; 6]]);
    let around = Path { tunnel: None, macs: path.outer_macs, outer_macs: [[0; 6]; 2], ..*path };
    assert_eq!(*paths.get(outer.path), around);
}

#[test]
fn at_most_eight_tunnels_are_opened() {
    for depth in 1..40u8 {
        let mut packet = user4();
        for level in 0..depth {
            packet = ipv4([100 + level, 200], 4, &packet);
        }
        let (mut decoder, _) = decoder(Tunnels::Inner);
        let frame = ethernet(FOUR, &packet);
        let (_, inner) = decode(&mut decoder, &frame, frame.len());
        let expected = if depth <= 8 { 3 } else { 100 + depth - 9 };
        assert_eq!(inner.unwrap().src[3], expected, "{depth}");
    }
}

#[test]
fn the_first_fragment_of_a_tunnel_is_opened() {
    let packet = ipv4([3, 4], 17, &udp([1234, 80], &[0; 400]));
    let datagram = vxlan(3, &ethernet(FOUR, &packet));
    let first = ethernet(FOUR, &ipv4_at(0x2000, [1, 2], 17, &datagram[..200]));
    let later = ethernet(FOUR, &ipv4_at(200 / 8, [1, 2], 17, &datagram[200..]));
    let (mut decoder, _) = decoder(Tunnels::Inner);
    let (outer, inner) = decode(&mut decoder, &first, first.len());
    assert!(outer.flags.contains(Flags::FRAGMENT) && outer.flags.contains(Flags::TUNNEL));
    let inner = inner.unwrap();
    assert_eq!((inner.dst_port, inner.ip_len), (80, 428));
    assert!(!inner.flags.contains(Flags::FRAGMENT));
    let (outer, inner) = decode(&mut decoder, &later, later.len());
    assert!(outer.flags.contains(Flags::PORTS_FROM_FIRST) && inner.is_none());
    assert_eq!((outer.dst_port, outer.flags.contains(Flags::DATA)), (4789, true));
}

#[test]
fn fragments_in_different_tunnels_do_not_match() {
    let first = |port| ipv4_at(0x2000, [3, 4], 17, &udp([port, 80], &[0; 16]));
    let later = ipv4_at(3, [3, 4], 17, &[0; 40]);
    let (mut decoder, _) = decoder(Tunnels::Inner);
    let mut port = |network: Option<u8>, packet: &[u8]| {
        let frame = match network {
            Some(network) => {
                ethernet(FOUR, &ipv4([1, 2], 17, &vxlan(network, &ethernet(FOUR, packet))))
            }
            None => ethernet(FOUR, packet),
        };
        let (outer, inner) = decode(&mut decoder, &frame, frame.len());
        let record = inner.unwrap_or(outer);
        assert_eq!(record.src[3], 3);
        record.src_port
    };
    assert_eq!(
        [port(None, &first(1)), port(Some(1), &first(2)), port(Some(2), &first(3))],
        [1, 2, 3]
    );
    let found = [None, Some(1), Some(2), Some(3)].map(|network| port(network, &later));
    assert_eq!(found, [1, 2, 3, 0]);
}

#[test]
fn padding_behind_a_packet_is_not_data() {
    let mut tcp = vec![0, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0x60, 16, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1];
    let data = |ether_type, packet: &[u8], padding: usize| {
        let frame = cat(&[&ethernet(ether_type, packet), &vec![0; padding]]);
        let (mut decoder, _) = decoder(Tunnels::Inner);
        decode(&mut decoder, &frame, frame.len()).0.flags.contains(Flags::DATA)
    };
    // The second packet of each pair is not decoded inline: options, an extension header.
    let four = |protocol, payload: &[u8]| {
        let plain = ipv4([3, 4], protocol, payload);
        let mut optional = cat(&[&plain[..20], &[1; 4], payload]);
        (optional[0], optional[3]) = (0x46, optional.len() as u8);
        [plain, optional]
    };
    let six = |protocol, payload: &[u8]| {
        let extended = cat(&[&[protocol, 0, 1, 4, 0, 0, 0, 0], payload]);
        [ipv6([3, 4], protocol, payload), ipv6([3, 4], 60, &extended)]
    };
    for expected in [false, true] {
        let datagram = udp([1, 2], if expected { &[0; 7] } else { &[] });
        for padding in [0, 6, 18] {
            for (protocol, payload) in [(6, &tcp), (17, &datagram)] {
                for packet in four(protocol, payload) {
                    assert_eq!(data(FOUR, &packet, padding), expected, "{protocol} {padding}");
                }
                for packet in six(protocol, payload) {
                    assert_eq!(data(SIX, &packet, padding), expected, "{protocol} {padding}");
                }
            }
            // The payload of these is not counted as data.
            for protocol in [33, 132, 136] {
                assert!(!data(FOUR, &ipv4([3, 4], protocol, &[1; 40]), padding));
            }
        }
        tcp.push(0);
    }
    // A TCP header has at least 20 bytes.
    tcp.truncate(20);
    tcp[12] = 0x10;
    assert!(four(6, &tcp).iter().all(|packet| !data(FOUR, packet, 0)));
}
