//! Link layers: parses headers from the capture's link type to the network layer.
//!
//! The numbers are the `LINKTYPE_…` values of the pcap file format
//! (<https://www.tcpdump.org/linktypes.html>).
//!
//! Invariants: a link layer reads only the version of an IP header, except where no field declares the packet (MPLS);
//! `ip/` checks whether the packet is what the link layer *declares*. A parser returns what comes next, and [`follow`] calls
//! the parser of that. [`Stack`] counts nested headers, so no loop or recursion exceeds [`Stack::DEPTH_MAX`].

mod arcnet;
mod cooked;
mod ethernet;
mod frame_relay;
mod ieee80211;
mod juniper;
mod lan;
mod link_type;
mod loopback;
mod macsec;
mod mpls;
mod names;
mod next;
mod nsh;
mod ppp;
mod radio;
mod stack;
mod system;
mod tags;
mod wrapped;

use crate::network::Network;
use crate::reason::{Layer, NonIp};
use crate::span::Span;
use next::Next;

pub use link_type::LinkType;
pub(crate) use stack::{Stack, from_to};

/// Removes all link headers.
#[inline(always)]
pub(crate) fn strip<'a>(
    link: LinkType,
    frame: Span<'a>,
    stack: &mut Stack,
) -> Result<Network<'a>, NonIp> {
    match link {
        LinkType::ETHERNET => match ethernet::header(frame, stack)? {
            (ethernet::IPV4, rest) => Ok(Network::Ipv4(rest)),
            (ethernet::IPV6, rest) => Ok(Network::Ipv6(rest)),
            (number, rest) => follow(Next::EtherType(number, rest), stack),
        },
        _ => follow(Next::Frame(link, frame), stack),
    }
}

/// Parses the payload of an EtherType outside the link layer.
pub(crate) fn ether_type<'a>(
    number: u16,
    packet: Span<'a>,
    stack: &mut Stack,
) -> Result<Network<'a>, NonIp> {
    follow(ethernet::ether_type(number, packet, stack)?, stack)
}

/// Parses the payload of a network service header outside the link layer, by its number.
pub(crate) fn service<'a>(
    number: u8,
    packet: Span<'a>,
    stack: &mut Stack,
) -> Result<Network<'a>, NonIp> {
    follow(nsh::by_number(number, packet, stack)?, stack)
}

/// Parses an IEEE 802.11 frame whose two control bytes may be swapped.
pub(crate) fn wireless<'a>(frame: Span<'a>, stack: &mut Stack) -> Result<Network<'a>, NonIp> {
    let next = ieee80211::frame(frame, false, stack);
    let next = next.or_else(|reason| ieee80211::swapped(frame, stack).map_err(|_| reason));
    follow(next?, stack)
}

/// Removes headers up to the network layer.
#[inline(never)]
fn follow<'a>(mut next: Next<'a>, stack: &mut Stack) -> Result<Network<'a>, NonIp> {
    loop {
        next = match next {
            Next::Ipv4(packet) => return Ok(Network::Ipv4(packet)),
            Next::Ipv6(packet) => return Ok(Network::Ipv6(packet)),
            Next::Frame(link, frame) => header(link, frame, stack)?,
            Next::EtherType(number, rest) => ethernet::type_or_length(number, rest, stack)?,
            Next::Labels(rest) => return mpls::labels(rest, stack, strip),
        };
    }
}

/// Removes the first headers of a frame.
fn header<'a>(link: LinkType, frame: Span<'a>, stack: &mut Stack) -> Result<Next<'a>, NonIp> {
    match link {
        LinkType::ETHERNET => ethernet::frame(frame, stack),
        LinkType::IPV4 => Ok(Next::Ipv4(frame)),
        LinkType::IPV6 => Ok(Next::Ipv6(frame)),
        LinkType::RAW | LinkType::RAW_BSD | LinkType::RAW_OPENBSD => loopback::raw(frame, stack),
        LinkType::NULL => loopback::null(frame, stack),
        LinkType::LOOP => loopback::network_order(frame),
        LinkType::LINUX_SLL => cooked::version_1(frame, stack),
        LinkType::LINUX_SLL2 => cooked::version_2(frame, stack),
        LinkType::PPP | LinkType::PPP_HDLC => ppp::framed(frame, stack),
        LinkType::PPP_ETHER => ppp::pppoe_session(frame, stack),
        LinkType::C_HDLC => ppp::cisco_hdlc(frame),
        LinkType::IEEE802_11 => ieee80211::frame(frame, false, stack),
        LinkType::IEEE802_11_RADIOTAP => radio::radiotap(frame, stack),
        LinkType::IEEE802_11_PRISM => radio::prism(frame, stack),
        LinkType::IEEE802_11_AVS => radio::avs(frame, stack),
        LinkType::ARCNET_BSD => arcnet::bsd(frame, stack),
        LinkType::ARCNET_LINUX => arcnet::linux(frame, stack),
        LinkType::JUNIPER_ETHER => juniper::frame(LinkType::ETHERNET, frame),
        LinkType::JUNIPER_PPP => juniper::frame(LinkType::PPP, frame),
        LinkType::JUNIPER_FRELAY => juniper::frame(LinkType::FRELAY, frame),
        LinkType::JUNIPER_CHDLC => juniper::frame(LinkType::C_HDLC, frame),
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
                LinkType::C_HDLC_WITH_DIR => ppp::cisco_hdlc(frame),
                _ => frame_relay::frame(frame, stack),
            }
        }
        LinkType(number) => Err(NonIp::UnsupportedLink(number)),
    }
}
