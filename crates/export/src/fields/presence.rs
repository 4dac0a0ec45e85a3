//! Which records have a field.

use crate::formats::protocol::{TCP, is_icmp};
use ringtap_flow::History;

use super::view::View;

/// Defines the list: name, text of docs/OUTPUTS.md, condition. Where that is `true`, the value of the field may be absent.
macro_rules! presences {
    (|$v:ident, $d:ident| $($name:ident $text:literal = $holds:expr;)+) => {
        /// Which records have a field.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Presence {
            $($name,)+
        }

        impl Presence {
            /// The text of docs/OUTPUTS.md.
            #[cfg(test)]
            pub(crate) const fn text(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)+
                }
            }

            /// Whether a record has the field in this direction, if it has a value.
            #[inline(always)]
            pub(crate) fn holds(self, $v: &View<'_>, $d: usize) -> bool {
                match self {
                    $(Self::$name => $holds,)+
                }
            }
        }
    };
}

presences! { |v, d|
    Always "always" = true;
    Derived "always, but in a store" = true;
    Parquet "Parquet alone" = true;
    Ports "TCP, UDP, UDP-Lite, SCTP, DCCP" = v.record.key.has_ports();
    Tcp "TCP" = v.record.key.protocol == TCP;
    Icmp "ICMP, ICMPv6" = is_icmp(v.record.key.protocol);
    Sent "that direction had packets" = v.record.packets[d] > 0;
    History "TCP, and data of UDP" = v.record.history != History::EMPTY;
    Ethernet "Ethernet" = v.path.macs != [[0; 6]; 2];
    Tagged "tagged" = v.path.vlan_tags > 0;
    TaggedTwice "tagged twice" = v.path.vlan_tags > 1;
    Labelled "labelled" = true;
    LabelledTwice "labelled twice" = true;
    Tunnelled "tunnelled" = true;
    TunnelId "tunnelled, and not 0" = true;
    TwoPaths "[not the mirror](#the-paths-of-both-directions)" = v.reverse_path.is_some();
    TunnelEthernet "tunnelled, with Ethernet inside and outside" = v.path.outer_macs != [[0; 6]; 2];
    Interfaces "runs over interfaces" = true;
    TwoInterfaces "runs over interfaces, [not the mirror](#the-paths-of-both-directions)" = v.reverse_path.is_some();
    Extract "with `--extract`" = true;
    Tls "TLS, DTLS, QUIC" = true;
    Quic "QUIC" = true;
    Dns "DNS" = true;
    Http "HTTP/1" = true;
    Ssh "SSH" = true;
    Dhcp "DHCP, DHCPv6" = true;
    Ntp "NTP" = true;
    Certificate "SSL 3.0 to TLS 1.2" = true;
    Proxy "PROXY protocol" = true;
    Syn "`--extract syn`, seen" = true;
    Omitted "JSON alone, if there are some" = true;
    Label "it has one" = true;
    Reason "with `application`" = true;
    Handshake "`--analyses tcp`, seen" = true;
    Samples "`--analyses tcp`, samples" = true;
    Measured "`--analyses tcp`, TCP" = true;
    Payload "UDP, if known; TCP with `--analyses tcp`" = true;
    Answered "`--analyses tcp`, a response" = true;
    Statistics "`--analyses statistics`, values" = true;
    Lists "`--analyses statistics`, not empty" = true;
    Entropy "`--statistics-octets`, payload" = true;
    Parts "with `--cut`" = v.record.part.is_some();
    Networks "with `--networks`" = true;
    Geo "with `--geo`" = true;
    Vendors "with `--oui`" = true;
    Vlans "with `--vlans`, tagged" = true;
}

impl Presence {
    /// The flag without which no record has such a field, if there is one.
    pub(crate) const fn flag(self) -> Option<&'static str> {
        Some(match self {
            Self::Handshake | Self::Samples | Self::Measured | Self::Answered => "--analyses tcp",
            Self::Statistics | Self::Lists => "--analyses statistics",
            Self::Entropy => "--statistics-octets",
            Self::Syn => "--extract all,syn",
            Self::Parts => "--cut",
            Self::Networks => "--networks",
            Self::Geo => "--geo",
            Self::Vendors => "--oui",
            _ => return None,
        })
    }
}

/// The origins that a run adds to its records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origins {
    /// Names of networks.
    pub networks: bool,
    /// Countries and autonomous systems.
    pub geo: bool,
    /// Vendors of network cards.
    pub vendors: bool,
    /// Names of VLANs.
    pub vlans: bool,
}

/// The columns that not all runs have.
#[derive(Clone, Copy, Debug, Default)]
pub struct Columns {
    /// The receiving interface.
    pub ingress: bool,
    /// The origins of source and destination.
    pub origins: Origins,
    /// Which part of its flow a record is.
    pub parts: bool,
    /// The statistics of packets.
    pub statistics: bool,
    /// The entropy of payloads.
    pub entropy: bool,
    /// The columns are those of a store: without what can be computed from others.
    pub stored: bool,
}

impl Columns {
    /// Whether the run has the columns of fields with this presence.
    #[inline(always)]
    pub(crate) const fn has(self, presence: Presence) -> bool {
        match presence {
            Presence::Interfaces | Presence::TwoInterfaces => self.ingress,
            Presence::Parts => self.parts,
            Presence::Statistics | Presence::Lists => self.statistics,
            Presence::Entropy => self.entropy,
            Presence::Derived => !self.stored,
            Presence::Networks => self.origins.networks,
            Presence::Geo => self.origins.geo,
            Presence::Vendors => self.origins.vendors,
            Presence::Vlans => self.origins.vlans,
            _ => true,
        }
    }
}
