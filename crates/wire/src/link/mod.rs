//! Link layers: parses headers from the capture's link type to the network layer.
//!
//! The numbers are the `LINKTYPE_…` values of the pcap file format
//! (<https://www.tcpdump.org/linktypes.html>).
//!
//! Invariants: a link layer reads only the version of an IP header, except where no field declares the packet (MPLS);
//! `ip/` checks whether the packet is what the link layer *declares*. [`Stack`] counts nested headers, so no loop or recursion exceeds [`Stack::DEPTH_MAX`].

mod cooked;
mod ethernet;
mod frame_relay;
mod ieee80211;
mod lan;
mod loopback;
mod mpls;
mod names;
mod ppp;
mod radio;
mod system;
mod wrapped;

use crate::path::Path;
use crate::reason::{Layer, NonIp};
use crate::span::Span;

/// A link-layer header type, as pcap files number them (`LINKTYPE_…`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkType(pub u16);

impl LinkType {
    /// BSD loopback, address family in the writer's byte order.
    pub const NULL: Self = Self(0);
    /// Ethernet.
    pub const ETHERNET: Self = Self(1);
    /// PPP, with or without address and control bytes.
    pub const PPP: Self = Self(9);
    /// Raw IP, the number of some BSD systems.
    pub const RAW_BSD: Self = Self(12);
    /// Raw IP, the number of OpenBSD.
    pub const RAW_OPENBSD: Self = Self(14);
    /// PPP in HDLC framing.
    pub const PPP_HDLC: Self = Self(50);
    /// PPPoE session data without Ethernet.
    pub const PPP_ETHER: Self = Self(51);
    /// Raw IP, version 4 or 6.
    pub const RAW: Self = Self(101);
    /// Cisco HDLC.
    pub const C_HDLC: Self = Self(104);
    /// IEEE 802.11.
    pub const IEEE802_11: Self = Self(105);
    /// OpenBSD loopback, address family in network byte order.
    pub const LOOP: Self = Self(108);
    /// Linux cooked capture.
    pub const LINUX_SLL: Self = Self(113);
    /// Prism radio header before IEEE 802.11.
    pub const IEEE802_11_PRISM: Self = Self(119);
    /// Radiotap header before IEEE 802.11.
    pub const IEEE802_11_RADIOTAP: Self = Self(127);
    /// AVS radio header before IEEE 802.11.
    pub const IEEE802_11_AVS: Self = Self(163);
    /// Raw IPv4.
    pub const IPV4: Self = Self(228);
    /// Raw IPv6.
    pub const IPV6: Self = Self(229);
    /// Linux cooked capture, version 2.
    pub const LINUX_SLL2: Self = Self(276);
    /// Token Ring.
    pub const IEEE802_5: Self = Self(6);
    /// FDDI.
    pub const FDDI: Self = Self(10);
    /// ATM adaptation layer 5 with LLC.
    pub const ATM_RFC1483: Self = Self(100);
    /// Frame Relay.
    pub const FRELAY: Self = Self(107);
    /// OpenBSD's IPsec.
    pub const ENC: Self = Self(109);
    /// OpenBSD's packet filter.
    pub const PFLOG: Self = Self(117);
    /// IP over Fibre Channel.
    pub const IP_OVER_FC: Self = Self(122);
    /// PPP with a direction instead of the address byte.
    pub const PPP_PPPD: Self = Self(166);
    /// Per-packet information before a frame of another link type.
    pub const PPI: Self = Self(192);
    /// PPP behind a direction.
    pub const PPP_WITH_DIR: Self = Self(204);
    /// Cisco HDLC behind a direction.
    pub const C_HDLC_WITH_DIR: Self = Self(205);
    /// Frame Relay behind a direction.
    pub const FRELAY_WITH_DIR: Self = Self(206);
    /// IP on Solaris.
    pub const IPNET: Self = Self(226);
    /// Linux' netfilter log.
    pub const NFLOG: Self = Self(239);
    /// Hilscher's netANALYZER.
    pub const NETANALYZER: Self = Self(240);
    /// Hilscher's netANALYZER in transparent mode.
    pub const NETANALYZER_TRANSPARENT: Self = Self(241);
    /// IP over InfiniBand.
    pub const IPOIB: Self = Self(242);
    /// Darwin's packet tap header before a frame of another link type.
    pub const PKTAP: Self = Self(258);

    /// All supported link types.
    pub const SUPPORTED: [Self; 36] = [
        Self::NULL,
        Self::ETHERNET,
        Self::PPP,
        Self::RAW_BSD,
        Self::RAW_OPENBSD,
        Self::PPP_HDLC,
        Self::PPP_ETHER,
        Self::RAW,
        Self::C_HDLC,
        Self::IEEE802_11,
        Self::LOOP,
        Self::LINUX_SLL,
        Self::IEEE802_11_PRISM,
        Self::IEEE802_11_RADIOTAP,
        Self::IEEE802_11_AVS,
        Self::IPV4,
        Self::IPV6,
        Self::LINUX_SLL2,
        Self::IEEE802_5,
        Self::FDDI,
        Self::ATM_RFC1483,
        Self::FRELAY,
        Self::ENC,
        Self::PFLOG,
        Self::IP_OVER_FC,
        Self::PPP_PPPD,
        Self::PPI,
        Self::PPP_WITH_DIR,
        Self::C_HDLC_WITH_DIR,
        Self::FRELAY_WITH_DIR,
        Self::IPNET,
        Self::NFLOG,
        Self::NETANALYZER,
        Self::NETANALYZER_TRANSPARENT,
        Self::IPOIB,
        Self::PKTAP,
    ];
}

/// The network layer that the link layer declares, and its packet.
#[derive(Clone, Copy)]
pub(crate) enum Network<'a> {
    Ipv4(Span<'a>),
    Ipv6(Span<'a>),
}

/// State of the headers removed so far.
#[derive(Clone, Copy, Default)]
pub(crate) struct Stack {
    /// Destination and source of the outermost Ethernet header; zeros without one.
    pub(crate) macs: [u8; 12],
    /// Number of VLAN tags.
    pub(crate) vlan_tags: u8,
    /// Identifiers of the outermost two tags.
    vlans: [u16; 2],
    /// The top MPLS label.
    pub(crate) mpls_label: Option<u32>,
    depth: u32,
    /// Number of headers that contain the link type of the next header.
    wrappers: u32,
}

impl Stack {
    /// Most nested tags, labels and inner frames; real networks have fewer.
    const DEPTH_MAX: u32 = 32;
    /// Most headers that capture programs put in front of a frame.
    const WRAPPERS_MAX: u32 = 4;

    /// Stores Ethernet addresses, only those of the outermost header.
    #[inline(always)]
    fn ethernet(&mut self, header: &[u8; 14]) {
        let [macs @ .., _, _] = header;
        if self.depth == 0 && self.vlan_tags == 0 {
            self.macs = *macs;
        }
    }

    /// Stores a VLAN tag: the identifiers of the outermost two are kept.
    fn tag(&mut self, tag: [u8; 2]) {
        if let Some(vlan) = self.vlans.get_mut(usize::from(self.vlan_tags)) {
            *vlan = u16::from_be_bytes(tag) & 0x0fff;
        }
        // No overflow, because the nesting is limited.
        self.vlan_tags += 1;
    }

    /// The path, as far as the link layer defines it.
    pub(crate) fn path(&self) -> Path {
        let [d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5] = self.macs;
        Path {
            macs: [[s0, s1, s2, s3, s4, s5], [d0, d1, d2, d3, d4, d5]],
            vlan_tags: self.vlan_tags,
            vlans: self.vlans,
            mpls_label: self.mpls_label,
            tunnel: None,
            ingress: 0,
        }
    }

    /// Counts a further header in front of another link type.
    fn wrapped(&mut self) -> Result<(), NonIp> {
        self.wrappers += 1;
        if self.wrappers > Self::WRAPPERS_MAX { Err(NonIp::TooDeep) } else { Ok(()) }
    }

    /// Counts a further nested header.
    fn deeper(&mut self) -> Result<(), NonIp> {
        self.depth += 1;
        if self.depth > Self::DEPTH_MAX { Err(NonIp::TooDeep) } else { Ok(()) }
    }
}

/// Removes all link headers.
#[inline(always)]
pub(crate) fn strip<'a>(
    link: LinkType,
    frame: Span<'a>,
    stack: &mut Stack,
) -> Result<Network<'a>, NonIp> {
    match link {
        LinkType::ETHERNET => ethernet::frame(frame, stack),
        _ => strip_other(link, frame, stack),
    }
}

/// Parses the payload of an EtherType outside the link layer.
pub(crate) fn ether_type<'a>(
    number: u16,
    packet: Span<'a>,
    stack: &mut Stack,
) -> Result<Network<'a>, NonIp> {
    ethernet::ether_type(number, packet, stack)
}

#[inline(never)]
fn strip_other<'a>(
    link: LinkType,
    frame: Span<'a>,
    stack: &mut Stack,
) -> Result<Network<'a>, NonIp> {
    match link {
        LinkType::IPV4 => Ok(Network::Ipv4(frame)),
        LinkType::IPV6 => Ok(Network::Ipv6(frame)),
        LinkType::RAW | LinkType::RAW_BSD | LinkType::RAW_OPENBSD => loopback::raw(frame, stack),
        LinkType::NULL => loopback::null(frame, stack),
        LinkType::LOOP => loopback::network_order(frame),
        LinkType::LINUX_SLL => cooked::version_1(frame, stack),
        LinkType::LINUX_SLL2 => cooked::version_2(frame, stack),
        LinkType::PPP | LinkType::PPP_HDLC => ppp::framed(frame, stack),
        LinkType::PPP_ETHER => ppp::pppoe_session(frame, stack),
        LinkType::C_HDLC => ppp::cisco_hdlc(frame, stack),
        LinkType::IEEE802_11 => ieee80211::frame(frame, false, stack),
        LinkType::IEEE802_11_RADIOTAP => radio::radiotap(frame, stack),
        LinkType::IEEE802_11_PRISM => radio::prism(frame, stack),
        LinkType::IEEE802_11_AVS => radio::avs(frame, stack),
        LinkType::IEEE802_5 => lan::token_ring(frame, stack),
        LinkType::FDDI => lan::fddi(frame, stack),
        LinkType::ATM_RFC1483 => lan::atm(frame, stack),
        LinkType::IP_OVER_FC => lan::fibre_channel(frame, stack),
        LinkType::IPOIB => lan::infiniband(frame, stack),
        LinkType::NETANALYZER => lan::net_analyzer(frame, 0, stack),
        LinkType::NETANALYZER_TRANSPARENT => lan::net_analyzer(frame, 8, stack),
        LinkType::FRELAY => frame_relay::frame(frame, stack),
        LinkType::ENC => system::enc(frame),
        LinkType::PFLOG => system::pflog(frame),
        LinkType::IPNET => system::ipnet(frame),
        LinkType::NFLOG => system::nflog(frame),
        LinkType::PPP_PPPD => system::pppd(frame, stack),
        LinkType::PPI => wrapped::ppi(frame, stack),
        LinkType::PKTAP => wrapped::pktap(frame, stack),
        LinkType::PPP_WITH_DIR | LinkType::C_HDLC_WITH_DIR | LinkType::FRELAY_WITH_DIR => {
            let (_, frame) = frame.take::<1>().ok_or(NonIp::Truncated(Layer::Link))?;
            match link {
                LinkType::PPP_WITH_DIR => ppp::framed(frame, stack),
                LinkType::C_HDLC_WITH_DIR => ppp::cisco_hdlc(frame, stack),
                _ => frame_relay::frame(frame, stack),
            }
        }
        LinkType(number) => Err(NonIp::UnsupportedLink(number)),
    }
}

/// IP of the version in the first four bits; `None` if these are not 4 or 6.
pub(crate) fn ip_by_version(packet: Span<'_>) -> Result<Option<Network<'_>>, NonIp> {
    let [first, ..] = packet.bytes else { return Err(NonIp::Truncated(Layer::Ip)) };
    Ok(match first >> 4 {
        4 => Some(Network::Ipv4(packet)),
        6 => Some(Network::Ipv6(packet)),
        _ => None,
    })
}
