//! The decoder against `etherparse`, a complete but slower parser: random stacks of VLAN tags, IPv4 options, IPv6
//! extension headers and transport headers, complete and truncated at every length.

use etherparse::{
    IpNumber, Ipv4Header, Ipv4Options, Ipv6FlowLabel, Ipv6Header, LinkSlice, NetSlice,
    PacketBuilder, SlicedPacket, TransportSlice,
};
use proptest::prelude::*;
use std::sync::{Arc, LazyLock};

use ringtap_wire::{Decoded, Decoder, Flags, HashKey, LinkType, NonIp, PacketRecord, Path, Paths};

const KEY: HashKey = HashKey::from_seed(3);
static PATHS: LazyLock<Arc<Paths>> = LazyLock::new(Arc::default);

/// The parameters of a random frame.
#[derive(Clone, Debug)]
struct Plan {
    tags: Vec<(u16, u16)>,
    v6: bool,
    src: [u8; 16],
    dst: [u8; 16],
    tos: u8,
    ttl: u8,
    option_words: u8,
    extensions: Vec<(u8, u8)>,
    transport: Transport,
    payload: Vec<u8>,
    trailer: Vec<u8>,
    /// The header has length 0.
    unset: bool,
}

#[derive(Clone, Copy, Debug)]
enum Transport {
    Tcp(u16, u16, u8),
    /// Ports, and how many octets behind its length follow.
    Udp(u16, u16, u8),
    Icmp(u8, u8),
    Other(u8),
}

impl Transport {
    fn number(self, v6: bool) -> u8 {
        match self {
            Self::Tcp(..) => 6,
            Self::Udp(..) => 17,
            Self::Icmp(..) if v6 => 58,
            Self::Icmp(..) => 1,
            Self::Other(number) => number,
        }
    }

    fn bytes(self, payload: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self {
            Self::Tcp(src, dst, bits) => {
                bytes.extend([src.to_be_bytes(), dst.to_be_bytes()].concat());
                bytes.extend([0, 0, 0, 1, 0, 0, 0, 2, 0x50, bits, 4, 0, 0, 0, 0, 0]);
            }
            Self::Udp(src, dst, behind) => {
                // At least an octet of data, so that there are data by both lengths.
                let behind = payload.len().saturating_sub(1).min(behind.into());
                let len = (8 + payload.len() - behind) as u16;
                bytes.extend([src, dst, len, 0].map(u16::to_be_bytes).concat());
            }
            Self::Icmp(kind, code) => bytes.extend([kind, code, 0, 0, 0, 0, 0, 0]),
            Self::Other(_) => {}
        }
        bytes.extend(payload);
        bytes
    }
}

impl Plan {
    /// Where the length in the IP header is.
    fn length_at(&self) -> usize {
        14 + 4 * self.tags.len() + if self.v6 { 4 } else { 2 }
    }

    /// The frame with a length that reaches to its end, if its header has none.
    fn filled(&self) -> Vec<u8> {
        let mut frame = self.frame();
        let at = self.length_at();
        let no_payload = self.v6 && frame[at + 2] == 59;
        if frame[at..at + 2] == [0, 0] && !no_payload {
            // The fields count from behind the header of IPv6, from the start of that of IPv4.
            let len = if self.v6 { frame.len() - at - 36 } else { frame.len() - at + 2 };
            frame[at..at + 2].copy_from_slice(&(len as u16).to_be_bytes());
        }
        frame
    }

    fn frame(&self) -> Vec<u8> {
        let body = self.transport.bytes(&self.payload);
        let number = self.transport.number(self.v6);
        let mut frame = [&self.dst[..6], &self.src[..6]].concat();
        for (kind, tag) in &self.tags {
            frame.extend([kind.to_be_bytes(), tag.to_be_bytes()].concat());
        }
        if self.v6 {
            let mut next = number;
            let mut chain = Vec::new();
            for &(kind, words) in self.extensions.iter().rev() {
                let len = if kind == 51 {
                    (usize::from(words) * 2 + 4) * 4
                } else {
                    (usize::from(words) + 1) * 8
                };
                let mut header = vec![0; len];
                header[0] = next;
                header[1] = if kind == 51 { words * 2 + 2 } else { words };
                chain = [header, chain].concat();
                next = kind;
            }
            let header = Ipv6Header {
                traffic_class: self.tos,
                flow_label: Ipv6FlowLabel::ZERO,
                payload_length: (chain.len() + body.len()) as u16,
                next_header: IpNumber(next),
                hop_limit: self.ttl,
                source: self.src,
                destination: self.dst,
            };
            frame.extend([0x86, 0xdd]);
            header.write(&mut frame).unwrap();
            frame.extend(chain);
        } else {
            let options = vec![1; usize::from(self.option_words) * 4];
            let mut header = Ipv4Header {
                options: Ipv4Options::try_from(&options[..]).unwrap(),
                time_to_live: self.ttl,
                protocol: IpNumber(number),
                source: self.src[..4].try_into().unwrap(),
                destination: self.dst[..4].try_into().unwrap(),
                ..Ipv4Header::default()
            };
            header.dscp = (self.tos >> 2).try_into().unwrap();
            header.ecn = (self.tos & 3).try_into().unwrap();
            header.set_payload_len(body.len()).unwrap();
            frame.extend([8, 0]);
            header.write_raw(&mut frame).unwrap();
        }
        frame.extend(body);
        frame.extend(&self.trailer);
        if self.unset {
            frame[self.length_at()..][..2].copy_from_slice(&[0, 0]);
        }
        frame
    }
}

fn plans() -> impl Strategy<Value = Plan> {
    let tag = (prop::sample::select(vec![0x8100u16, 0x88a8, 0x9100]), any::<u16>());
    // Hop-by-hop must come first, so it is added below.
    let extension = (prop::sample::select(vec![43u8, 51, 60]), 0u8..4);
    let transport = prop_oneof![
        (any::<u16>(), any::<u16>(), any::<u8>()).prop_map(|(s, d, b)| Transport::Tcp(s, d, b)),
        (any::<u16>(), any::<u16>(), prop_oneof![3 => Just(0), 1 => 1u8..9])
            .prop_map(|(s, d, behind)| Transport::Udp(s, d, behind)),
        (any::<u8>(), any::<u8>())
            .prop_filter("etherparse requires 20 octets of a timestamp", |(k, c)| {
                !(matches!(k, 13 | 14) && *c == 0)
            })
            .prop_map(|(k, c)| Transport::Icmp(k, c)),
        prop::sample::select(vec![103u8, 47, 50, 59, 89, 253]).prop_map(Transport::Other),
    ];
    (
        (prop::collection::vec(tag, 0..4), any::<bool>(), any::<[u8; 16]>(), any::<[u8; 16]>()),
        (any::<u8>(), any::<u8>(), 0u8..11, any::<bool>()),
        prop::collection::vec(extension, 0..4),
        transport,
        prop_oneof![Just(Vec::new()), prop::collection::vec(any::<u8>(), 0..60)],
        (prop::collection::vec(any::<u8>(), 0..20), any::<bool>()),
    )
        .prop_map(
            |(
                (tags, v6, src, dst),
                (tos, ttl, option_words, hop),
                mut extensions,
                transport,
                payload,
                (mut trailer, unset),
            )| {
                // The length in the UDP header is not unset, and would contradict the frame's.
                if unset && matches!(transport, Transport::Udp(..)) {
                    trailer.clear();
                }
                if hop {
                    extensions.insert(0, (0, 1));
                }
                Plan {
                    tags,
                    v6,
                    src,
                    dst,
                    tos,
                    ttl,
                    option_words,
                    extensions,
                    transport,
                    payload,
                    trailer,
                    unset,
                }
            },
        )
}

fn decode(frame: &[u8], original_len: usize) -> (Decoded, PacketRecord) {
    let mut out = PacketRecord::EMPTY;
    let mut decoder = Decoder::new(KEY, Arc::clone(&PATHS));
    let decoded = decoder.decode(LinkType::ETHERNET, 9, frame, original_len as u32, &mut out);
    (decoded, out)
}

/// The expected record of a frame, from etherparse.
fn expect(frame: &[u8]) -> (Decoded, PacketRecord) {
    let sliced = SlicedPacket::from_ethernet(frame).unwrap();
    let mut out = PacketRecord { ts_ns: 9, wire_len: frame.len() as u32, ..PacketRecord::EMPTY };
    let tags = sliced.vlan_ids();
    let vlan = |at: usize| tags.get(at).map_or(0, |tag| tag.value());
    let Some(LinkSlice::Ethernet2(link)) = &sliced.link else { panic!("Ethernet is built") };
    out.path = PATHS.number(&Path {
        macs: [link.source(), link.destination()],
        vlans: [vlan(0), vlan(1)],
        vlan_tags: tags.len() as u8,
        ..Path::default()
    });
    if !tags.is_empty() {
        out.flags.insert(Flags::VLAN);
    }
    let decoded = match sliced.net.unwrap() {
        NetSlice::Ipv4(ip) => {
            let header = ip.header();
            out.src[..4].copy_from_slice(&header.source());
            out.dst[..4].copy_from_slice(&header.destination());
            out.ip_len = u32::from(header.total_len());
            out.protocol = header.protocol().0;
            out.ttl = header.ttl();
            out.tos = header.dcp().value() << 2 | header.ecn().value();
            out.flags.insert(Flags::IPV4);
            Decoded::Ipv4
        }
        NetSlice::Ipv6(ip) => {
            let header = ip.header();
            out.src = header.source();
            out.dst = header.destination();
            out.ip_len = 40 + u32::from(header.payload_length());
            out.protocol = ip.payload().ip_number.0;
            out.ttl = header.hop_limit();
            out.tos = header.traffic_class();
            out.flags.insert(Flags::IPV6);
            Decoded::Ipv6
        }
        NetSlice::Arp(_) => panic!("no ARP is built"),
    };
    let mut data = false;
    match sliced.transport {
        Some(TransportSlice::Tcp(tcp)) => {
            out.src_port = tcp.source_port();
            out.dst_port = tcp.destination_port();
            out.tcp_flags = tcp.slice()[13];
            out.flags.insert(Flags::PORTS);
            data = !tcp.payload().is_empty();
        }
        Some(TransportSlice::Udp(udp)) => {
            out.src_port = udp.source_port();
            out.dst_port = udp.destination_port();
            out.flags.insert(Flags::PORTS);
            data = !udp.payload().is_empty();
            let headers = if out.flags.contains(Flags::IPV6) { 48 } else { 28 };
            if out.ip_len != headers + udp.payload().len() as u32 {
                out.flags.insert(Flags::IRREGULAR);
            }
        }
        Some(TransportSlice::Icmpv4(icmp)) => {
            out.dst_port = u16::from_be_bytes([icmp.type_u8(), icmp.code_u8()]);
        }
        Some(TransportSlice::Icmpv6(icmp)) => {
            out.dst_port = u16::from_be_bytes([icmp.type_u8(), icmp.code_u8()]);
        }
        _ => {}
    }
    if data {
        out.flags.insert(Flags::DATA);
    }
    out.pair_hash = KEY.pair(&out.src, &out.dst);
    (decoded, out)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_field_equals_the_oracle(plan in plans()) {
        let frame = plan.frame();
        prop_assert_eq!(decode(&frame, frame.len()), expect(&plan.filled()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_truncated_frame_has_no_flag_that_the_complete_one_lacks(plan in plans()) {
        let frame = plan.frame();
        let (_, whole) = decode(&frame, frame.len());
        let mut claims_before = 0;
        for len in 0..frame.len() {
            let (decoded, cut) = decode(&frame[..len], frame.len());
            prop_assert!(cut.flags.contains(Flags::TRUNCATED));
            prop_assert_eq!(cut.wire_len, whole.wire_len);
            if !cut.is_ip() {
                prop_assert!(matches!(decoded, Decoded::NonIp(NonIp::Truncated(_))), "{:?}", decoded);
                continue;
            }
            prop_assert_eq!(cut.path, whole.path);
            if cut.ip_len != 0 {
                prop_assert_eq!(cut.ip_len, whole.ip_len);
            }
            if !cut.flags.contains(Flags::BAD_HEADER) {
                prop_assert_eq!((cut.src, cut.dst), (whole.src, whole.dst));
                prop_assert_eq!((cut.pair_hash, cut.ttl, cut.tos), (whole.pair_hash, whole.ttl, whole.tos));
            }
            if cut.flags.contains(Flags::PORTS) {
                prop_assert_eq!((cut.src_port, cut.dst_port), (whole.src_port, whole.dst_port));
                prop_assert_eq!(cut.protocol, whole.protocol);
            }
            prop_assert!(cut.tcp_flags == 0 || cut.tcp_flags == whole.tcp_flags);
            // More captured bytes never clear a flag.
            let claims = cut.flags.0
                & (Flags::PORTS.0 | Flags::DATA.0 | Flags::VLAN.0 | Flags::IPV4.0 | Flags::IPV6.0);
            prop_assert_eq!(claims & claims_before, claims_before);
            claims_before = claims;
        }
    }
}

#[test]
fn frames_of_the_oracle_are_decoded() {
    let mut frame = Vec::new();
    PacketBuilder::ethernet2([1; 6], [2; 6])
        .double_vlan(100.try_into().unwrap(), 200.try_into().unwrap())
        .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
        .tcp(1234, 80, 1, 1024)
        .syn()
        .write(&mut frame, &[0; 30])
        .unwrap();
    let (decoded, out) = decode(&frame, frame.len());
    assert_eq!(
        (decoded, PATHS.get(out.path).vlans[0], out.src_port, out.dst_port),
        (Decoded::Ipv4, 100, 1234, 80)
    );
    assert_eq!((out.tcp_flags, out.ip_len, out.protocol), (2, 70, 6));
}
