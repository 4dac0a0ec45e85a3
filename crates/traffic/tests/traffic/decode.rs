//! Frames are read by an independent parser, etherparse, and every length and checksum is verified.
//!
//! Payloads are zeros, so a truncated frame is completed before it is read.

use etherparse::{IpNumber, LinkExtHeader, NetHeaders, PacketHeaders, TransportHeader, UdpHeader};
use ringtap_traffic::GeneratedFrame;
use std::net::IpAddr;

/// The fields of a frame.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) wire: u64,
    pub(crate) captured: u64,
    pub(crate) vlan: bool,
    /// `None` for ARP.
    pub(crate) ip: Option<Ip>,
}

#[derive(Clone, Debug)]
pub(crate) struct Ip {
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    pub(crate) protocol: u8,
    pub(crate) octets: u64,
    pub(crate) fragment: bool,
    /// Source and destination; `None` for ICMP and later fragments.
    pub(crate) ports: Option<(u16, u16)>,
    pub(crate) tcp: Option<Tcp>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Tcp {
    pub(crate) syn: bool,
    pub(crate) ack: bool,
    pub(crate) fin: bool,
    pub(crate) rst: bool,
    pub(crate) seq: u32,
    pub(crate) ack_number: u32,
    pub(crate) payload: u32,
}

/// Reads a frame; panics if any field is wrong.
pub(crate) fn decode(frame: &GeneratedFrame) -> Seen {
    assert!(frame.data.len() <= frame.original_len as usize && frame.original_len >= 60);
    let mut whole = frame.data.to_vec();
    whole.resize(frame.original_len as usize, 0);
    let packet = PacketHeaders::from_ethernet_slice(&whole).unwrap();
    let tags = packet.link_exts.iter().filter(|ext| matches!(ext, LinkExtHeader::Vlan(_))).count();
    Seen {
        wire: frame.original_len.into(),
        captured: frame.data.len() as u64,
        vlan: tags > 0,
        ip: decode_ip(&packet, whole.len() - 14 - 4 * tags),
    }
}

fn decode_ip(packet: &PacketHeaders, room: usize) -> Option<Ip> {
    let payload = packet.payload.slice();
    let (source, destination, octets, first, fragment, protocol) = match packet.net.as_ref()? {
        NetHeaders::Arp(arp) => {
            assert_eq!((arp.sender_protocol_addr().len(), room.max(28)), (4, room));
            return None;
        }
        NetHeaders::Ipv4(ip, _) => {
            assert_eq!(ip.header_checksum, ip.calc_header_checksum());
            let offset = ip.fragment_offset.value();
            assert!(!ip.dont_fragment || !ip.is_fragmenting_payload());
            let source = IpAddr::from(ip.source);
            let destination = IpAddr::from(ip.destination);
            let fragment = ip.is_fragmenting_payload();
            (source, destination, ip.total_len.into(), offset == 0, fragment, ip.protocol)
        }
        NetHeaders::Ipv6(ip, extensions) => {
            let fragment = extensions.fragment.as_ref();
            let protocol = fragment.map_or(ip.next_header, |header| header.next_header);
            let first = fragment.is_none_or(|header| header.fragment_offset.value() == 0);
            let octets = 40 + u64::from(ip.payload_length);
            let (source, destination) = (IpAddr::from(ip.source), IpAddr::from(ip.destination));
            (source, destination, octets, first, fragment.is_some(), protocol)
        }
    };
    assert!(
        octets <= room as u64 && (octets == room as u64 || room <= 46),
        "padding only if small"
    );
    let mut seen =
        Ip { source, destination, protocol: protocol.0, octets, fragment, ports: None, tcp: None };
    match packet.transport.as_ref() {
        Some(TransportHeader::Tcp(tcp)) => {
            let expected = match packet.net.as_ref()? {
                NetHeaders::Ipv4(ip, _) => tcp.calc_checksum_ipv4(ip, payload),
                NetHeaders::Ipv6(ip, _) => tcp.calc_checksum_ipv6(ip, payload),
                NetHeaders::Arp(_) => return None,
            };
            assert_eq!(tcp.checksum, expected.unwrap());
            seen.ports = Some((tcp.source_port, tcp.destination_port));
            seen.tcp = Some(Tcp {
                syn: tcp.syn,
                ack: tcp.ack,
                fin: tcp.fin,
                rst: tcp.rst,
                seq: tcp.sequence_number,
                ack_number: tcp.acknowledgment_number,
                payload: payload.len() as u32,
            });
        }
        Some(TransportHeader::Udp(udp)) => {
            assert_eq!(usize::from(udp.length), 8 + payload.len());
            check_udp(udp, packet, payload);
            seen.ports = Some((udp.source_port, udp.destination_port));
        }
        Some(TransportHeader::Icmpv4(icmp)) => {
            assert_eq!(icmp.checksum, icmp.icmp_type.calc_checksum(payload));
        }
        Some(TransportHeader::Icmpv6(icmp)) => {
            let Some(NetHeaders::Ipv6(ip, _)) = &packet.net else { panic!("ICMPv6 in IPv4") };
            let expected = icmp.icmp_type.calc_checksum(ip.source, ip.destination, payload);
            assert_eq!(icmp.checksum, expected.unwrap());
        }
        Some(other) => panic!("{other:?} is not generated"),
        None => {
            assert!(fragment && protocol == IpNumber::UDP, "{packet:?}");
            if first {
                let (udp, part) = UdpHeader::from_slice(payload).unwrap();
                check_udp(&udp, packet, part);
                seen.ports = Some((udp.source_port, udp.destination_port));
            }
        }
    }
    Some(seen)
}

/// Verifies the checksum over this part of the payload, and zeros up to the length in the header.
fn check_udp(udp: &UdpHeader, packet: &PacketHeaders, part: &[u8]) {
    let mut whole = part.to_vec();
    whole.resize(usize::from(udp.length) - 8, 0);
    let expected = match &packet.net {
        Some(NetHeaders::Ipv4(ip, _)) => udp.calc_checksum_ipv4(ip, &whole),
        Some(NetHeaders::Ipv6(ip, _)) => udp.calc_checksum_ipv6(ip, &whole),
        _ => panic!("UDP outside of IP"),
    };
    assert_eq!(udp.checksum, expected.unwrap());
}
