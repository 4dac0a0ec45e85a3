//! Reasons why a frame has no IP packet, as small values that can be counted.
//!
//! Invariant: reasons are few enough for a counter each, for any traffic: no variant carries more than 16 bits.

use std::fmt;

/// The reason why a frame has no IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NonIp {
    /// Another protocol, by its EtherType (ARP is 0x0806).
    EtherType(u16),
    /// Another protocol, by its IEEE 802.2 destination service access point.
    Llc(u8),
    /// Another protocol behind a Frame Relay header, by its network layer protocol identifier.
    Nlpid(u8),
    /// A Token Ring or FDDI management frame.
    LanControl,
    /// A SNAP header of an organisation whose protocols are not EtherTypes.
    Snap,
    /// Novell's IPX directly behind an IEEE 802.3 length, without LLC.
    RawIpx,
    /// Another protocol, by its PPP number (LCP is 0xc021).
    Ppp(u16),
    /// Another protocol or a later part of a packet, by its ARCnet type.
    Arcnet(u8),
    /// Another protocol, by the address family in a BSD loopback header (low 16 bits).
    Family(u16),
    /// A Netlink message in a Linux cooked capture.
    Netlink,
    /// Another payload below the last MPLS label.
    Mpls,
    /// IEEE 802.11 management frame.
    Management80211,
    /// IEEE 802.11 control or extension frame.
    Control80211,
    /// IEEE 802.11 data frame that carries no data (Null function).
    NoData80211,
    /// IEEE 802.11 frame whose body is encrypted.
    Encrypted80211,
    /// More nested tags or labels than real networks have.
    TooDeep,
    /// An unsupported link type, by its `LINKTYPE_…` number.
    UnsupportedLink(u16),
    /// The capture ends inside this layer's header.
    Truncated(Layer),
    /// The layer's header is inconsistent.
    Malformed(Layer),
}

/// The layer at which decoding stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    /// The outermost header, of the capture's link type.
    Link,
    /// A VLAN tag.
    Vlan,
    /// Another tag of a switch or bridge.
    Tag,
    /// A network service header.
    Nsh,
    /// A MACsec tag.
    Macsec,
    /// IEEE 802.2 LLC or SNAP.
    Llc,
    /// An MPLS label.
    Mpls,
    /// PPPoE or PPP.
    Ppp,
    /// A header of the capturing radio (radiotap, Prism, AVS).
    Radio,
    /// IEEE 802.11.
    Ieee80211,
    /// The position where an IP header should start.
    Ip,
}

impl fmt::Display for NonIp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EtherType(number) => match ether_type_name(*number) {
                Some(name) => f.write_str(name),
                None => write!(f, "ethertype {number:#06x}"),
            },
            Self::Llc(sap) => write!(f, "llc sap {sap:#04x}"),
            Self::Nlpid(number) => write!(f, "nlpid {number:#04x}"),
            Self::LanControl => f.write_str("lan control"),
            Self::Snap => f.write_str("snap"),
            Self::RawIpx => f.write_str("ipx"),
            Self::Ppp(number) => write!(f, "ppp {number:#06x}"),
            Self::Arcnet(kind) => write!(f, "arcnet type {kind:#04x}"),
            Self::Family(number) => write!(f, "address family {number}"),
            Self::Netlink => f.write_str("netlink"),
            Self::Mpls => f.write_str("mpls payload"),
            Self::Management80211 => f.write_str("802.11 management"),
            Self::Control80211 => f.write_str("802.11 control"),
            Self::NoData80211 => f.write_str("802.11 no data"),
            Self::Encrypted80211 => f.write_str("802.11 encrypted"),
            Self::TooDeep => f.write_str("nested too deep"),
            Self::UnsupportedLink(number) => write!(f, "unsupported link type {number}"),
            Self::Truncated(layer) => write!(f, "truncated {layer}"),
            Self::Malformed(layer) => write!(f, "malformed {layer}"),
        }
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Link => "link header",
            Self::Vlan => "vlan tag",
            Self::Tag => "switch tag",
            Self::Nsh => "nsh header",
            Self::Macsec => "macsec tag",
            Self::Llc => "llc header",
            Self::Mpls => "mpls label",
            Self::Ppp => "ppp header",
            Self::Radio => "radio header",
            Self::Ieee80211 => "802.11 header",
            Self::Ip => "ip header",
        })
    }
}

/// Whether an EtherType is that of a common protocol.
pub(crate) fn is_known(number: u16) -> bool {
    ether_type_name(number).is_some()
}

fn ether_type_name(number: u16) -> Option<&'static str> {
    Some(match number {
        0x0806 => "arp",
        0x8035 => "rarp",
        0x8137 => "ipx",
        0x8624 => "ndn",
        0x8808 => "flow control",
        0x8809 => "slow protocols",
        0x8863 => "pppoe discovery",
        0x888e => "eapol",
        0x88cc => "lldp",
        0x88e5 => "macsec",
        0x88f7 => "ptp",
        0x88fb => "prp supervision",
        0x894f => "nsh",
        0x9000 => "loopback test",
        _ => return None,
    })
}
