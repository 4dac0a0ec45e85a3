//! `LinkType`: the numbers of link types.

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
    /// ARCnet on BSD systems.
    pub const ARCNET_BSD: Self = Self(7);
    /// ARCnet on Linux.
    pub const ARCNET_LINUX: Self = Self(129);
    /// Juniper's header before Ethernet.
    pub const JUNIPER_ETHER: Self = Self(178);
    /// Juniper's header before PPP.
    pub const JUNIPER_PPP: Self = Self(179);
    /// Juniper's header before Frame Relay.
    pub const JUNIPER_FRELAY: Self = Self(180);
    /// Juniper's header before Cisco HDLC.
    pub const JUNIPER_CHDLC: Self = Self(181);

    /// All supported link types.
    pub const SUPPORTED: [Self; 42] = [
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
        Self::ARCNET_BSD,
        Self::ARCNET_LINUX,
        Self::JUNIPER_ETHER,
        Self::JUNIPER_PPP,
        Self::JUNIPER_FRELAY,
        Self::JUNIPER_CHDLC,
    ];
}
