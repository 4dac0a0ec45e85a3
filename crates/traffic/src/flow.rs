//! Background flows: a function of the flow's number gives its hosts, and 32 bytes hold its progress.
//!
//! A flow's number, permuted, splits into client, server and service:
//!
//! ```text
//! | client 16 | server 12 | service 4 |
//! ```
//!
//! The permutation and the split are bijective, so different flows differ in (client, server, server port). So they are
//! different conversations, and the SYN of one is never answered by the SYN-ACK of another. Their TCP connections begin
//! with SYN and SYN-ACK in consecutive frames: at any time at most one attempt is not answered.

use crate::address::{Address, Role};
use crate::frame::{ACK, Body, FIN, PSH, Packet, RST, SYN, WINDOW};
use crate::keyed::{Keyed, mix};
use crate::profile::{Profile, Size};

/// The part of a frame that captures do not contain.
const CHECK_SEQUENCE: u32 = 4;

// No tunnel ports: the inner packets would be zeros.
const TCP_SERVICES: [u16; 16] =
    [443, 80, 22, 25, 53, 110, 143, 389, 993, 3306, 3389, 5432, 6379, 8080, 8443, 9000];
const UDP_SERVICES: [u16; 16] =
    [443, 53, 123, 161, 500, 514, 1194, 1812, 3478, 4500, 5004, 5060, 5353, 8000, 19302, 27015];

/// Progress of a flow. Index 0 is client to server, 1 server to client.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Flow {
    /// Frames still to send.
    pub(crate) left: u32,
    /// The planned tick of its last frame.
    pub(crate) end: u32,
    /// Frames sent.
    pub(crate) packets: [u32; 2],
    /// Octets sent, at the IP layer.
    pub(crate) octets: [u64; 2],
}

impl Flow {
    fn sent(&self) -> u32 {
        self.packets[0] + self.packets[1]
    }

    /// True between a SYN and its answer, and between two fragments: the flow sends the next frame, too.
    #[inline]
    pub(crate) fn goes_on(&self, kind: Kind) -> bool {
        match kind {
            Kind::Connection { .. } => self.packets[0] == 1 && self.packets[1] == 0,
            Kind::Fragments => self.sent() % 2 == 1,
            _ => false,
        }
    }
}

/// The kind of a flow, which does not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// TCP from SYN to FIN, or to RST.
    Connection {
        reset: bool,
    },
    /// TCP seen in the middle.
    Segments {
        two_way: bool,
    },
    Datagrams {
        two_way: bool,
    },
    /// UDP, each datagram in two fragments.
    Fragments,
    Echo,
    Arp,
}

impl Kind {
    /// The least number of frames of such a flow.
    pub(crate) fn least(self) -> u32 {
        match self {
            Kind::Connection { .. } => 4,
            Kind::Segments { two_way: false } | Kind::Datagrams { two_way: false } => 1,
            _ => 2,
        }
    }

    pub(crate) fn is_tcp(self) -> bool {
        matches!(self, Kind::Connection { .. } | Kind::Segments { .. })
    }

    pub(crate) fn is_udp(self) -> bool {
        matches!(self, Kind::Datagrams { .. } | Kind::Fragments)
    }
}

/// The hosts of a flow, and its kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conversation {
    pub(crate) kind: Kind,
    pub(crate) client: Address,
    pub(crate) server: Address,
    pub(crate) client_port: u16,
    pub(crate) server_port: u16,
    vlan: u16,
    /// Random bits for sequence numbers and identifiers.
    salt: u64,
}

/// The settings of all flows of a profile. Shares are thresholds for 16 random bits.
#[derive(Clone, Debug)]
pub(crate) struct Population {
    keyed: Keyed,
    tcp: u32,
    icmp: u32,
    arp: u32,
    lifecycle: bool,
    two_way: u32,
    fragments: u32,
    ipv6: u32,
    vlan: u32,
    size: Size,
    /// Number of small frames among 2^32 frames with data, for an IMIX.
    small: u64,
}

/// Share of small frames in an IMIX: 7 of 12.
const IMIX_SMALL: f64 = 7.0 / 12.0;

impl Population {
    pub(crate) fn new(profile: &Profile, seed: u64) -> Self {
        let threshold = |share: f64| (share * 65_536.0).round() as u32;
        let tcp = threshold(profile.tcp_share);
        let icmp = tcp + threshold(profile.icmp_share);
        Self {
            keyed: Keyed::new(seed),
            tcp,
            icmp,
            arp: icmp + threshold(profile.arp_share),
            lifecycle: profile.tcp_lifecycle,
            two_way: threshold(profile.two_way_share),
            fragments: threshold(profile.fragment_share),
            ipv6: threshold(profile.ipv6_share),
            vlan: threshold(profile.vlan_share),
            size: profile.size,
            small: 0,
        }
    }

    /// Counts the frames without data, whose number is known, as small frames of an IMIX.
    pub(crate) fn balance(&mut self, flows: &[Flow]) {
        let (mut all, mut control) = (0u64, 0u64);
        for (id, flow) in (0..).zip(flows) {
            all += u64::from(flow.left);
            control += u64::from(match self.kind(id) {
                Kind::Connection { reset: true } => 4,
                Kind::Connection { reset: false } => flow.left.min(6),
                Kind::Arp => flow.left,
                _ => 0,
            });
        }
        let small = all as f64 * IMIX_SMALL - control as f64;
        let data = all.saturating_sub(control).max(1) as f64;
        self.small = ((small / data).clamp(0.0, 1.0) * (1u64 << 32) as f64) as u64;
    }

    /// The kind of the flow with this number.
    #[inline]
    pub(crate) fn kind(&self, id: u32) -> Kind {
        let bits = self.keyed.hash(id.into());
        let (protocol, manner) = (bits as u32 & 0xffff, (bits >> 16) as u32 & 0xffff);
        let two_way = manner < self.two_way;
        if protocol < self.tcp {
            match self.lifecycle {
                true => Kind::Connection { reset: manner < 65_536 / 16 },
                false => Kind::Segments { two_way },
            }
        } else if protocol < self.icmp {
            Kind::Echo
        } else if protocol < self.arp {
            Kind::Arp
        } else if ((bits >> 32) as u32 & 0xffff) < self.fragments {
            Kind::Fragments
        } else {
            Kind::Datagrams { two_way }
        }
    }

    /// The hosts and the kind of the flow with this number.
    #[inline]
    pub(crate) fn conversation(&self, id: u32) -> Conversation {
        let kind = self.kind(id);
        let permuted = self.keyed.permute(id);
        let salt = mix(self.keyed.hash(!u64::from(id)));
        let ipv6 = (salt as u32 & 0xffff) < self.ipv6 && kind != Kind::Arp;
        let tagged = ((salt >> 16) as u32 & 0xffff) < self.vlan;
        let service = (permuted & 15) as usize;
        Conversation {
            kind,
            client: Address::of(Role::Client, permuted >> 16, ipv6),
            server: Address::of(Role::Server, permuted >> 4 & 0xfff, ipv6),
            client_port: 32_768 + (salt >> 32) as u16 % 28_000,
            server_port: if kind.is_tcp() { TCP_SERVICES[service] } else { UDP_SERVICES[service] },
            vlan: if tagged { 100 + (permuted >> 16 & 7) as u16 } else { 0 },
            salt,
        }
    }

    /// The next packet of a flow that has frames left, and its direction. `random` is 64 new random bits.
    #[inline]
    pub(crate) fn packet(&self, flow: &Flow, talk: &Conversation, random: u64) -> (Packet, usize) {
        let sent = flow.sent();
        let (body, way, full) = match talk.kind {
            Kind::Connection { reset } => connection(flow, talk, reset, random),
            Kind::Segments { two_way } => {
                let way = if two_way { (random & 1) as usize } else { 0 };
                (tcp(flow, talk, way, ACK | PSH, [0; 2]), way, true)
            }
            Kind::Datagrams { two_way } => {
                (Body::Udp, if two_way { (sent & 1) as usize } else { 0 }, true)
            }
            Kind::Fragments => return (self.fragment(flow, talk), 0),
            Kind::Echo => {
                let reply = sent & 1 == 1;
                (Body::Echo { reply, seq: (sent / 2) as u16 }, usize::from(reply), true)
            }
            Kind::Arp => (Body::Arp { reply: sent & 1 == 1 }, (sent & 1) as usize, false),
        };
        let room = self.frame_size(random >> 32) - CHECK_SEQUENCE;
        let headers = Packet::headers(talk.client.ipv6, &body);
        let payload = if full { room.saturating_sub(headers).max(1) } else { 0 };
        (talk.facing(way, body, payload, sent), way)
    }

    /// Both parts of a datagram get their common size from its number.
    fn fragment(&self, flow: &Flow, talk: &Conversation) -> Packet {
        let (sent, ident) = (flow.sent(), talk.salt as u32 ^ (flow.sent() / 2));
        let first = Body::FirstFragment { more: 0 };
        let room = self.frame_size(mix(talk.salt ^ u64::from(sent / 2)) >> 32) - CHECK_SEQUENCE;
        let part = room.saturating_sub(Packet::headers(talk.client.ipv6, &first)).max(8) & !7;
        let (body, payload) = match sent & 1 {
            1 => (Body::LaterFragment { offset: part }, part),
            _ if flow.left > 1 => (Body::FirstFragment { more: part }, part),
            // With an odd number of frames, the last datagram is not fragmented.
            _ => (Body::Udp, part - 8),
        };
        Packet { ident, ..talk.facing(0, body, payload, sent) }
    }

    #[inline]
    fn frame_size(&self, random: u64) -> u32 {
        match self.size {
            Size::Fixed(bytes) => bytes,
            Size::Imix => match random & 0xffff_ffff {
                draw if draw < self.small => 64,
                // The low bits are as random as the high ones, and not used yet.
                draw if draw % 5 < 4 => 594,
                _ => 1518,
            },
        }
    }
}

impl Conversation {
    #[inline]
    fn facing(&self, way: usize, body: Body, payload: u32, sent: u32) -> Packet {
        let (source, destination) = match way {
            0 => ((self.client, self.client_port), (self.server, self.server_port)),
            _ => ((self.server, self.server_port), (self.client, self.client_port)),
        };
        Packet {
            source: source.0,
            destination: destination.0,
            // An echo has the same identifier in both directions.
            source_port: if self.kind == Kind::Echo { self.client_port } else { source.1 },
            destination_port: destination.1,
            vlan: self.vlan,
            ident: sent,
            body,
            payload,
        }
    }
}

/// The script of a connection, both directions: it begins with three frames and ends with three; a short one ends with
/// two that include the missing ACK. Between them is data, mostly to the client.
#[inline]
fn connection(flow: &Flow, talk: &Conversation, reset: bool, random: u64) -> (Body, usize, bool) {
    let (sent, left) = (flow.sent(), flow.left);
    let total = sent + left;
    let (flags, way, fins) = match (sent, left) {
        (0, _) => (SYN, 0, [0; 2]),
        (1, _) => (SYN | ACK, 1, [0; 2]),
        (_, 1) if reset => (RST | ACK, 0, [0; 2]),
        (2, _) if total > 5 || reset => (ACK, 0, [0; 2]),
        (_, 1) if total == 4 => (FIN | ACK, 1, [1, 0]),
        (_, 2) if total == 4 => (FIN | ACK, 0, [0; 2]),
        (_, 3) if !reset => (FIN | ACK, 0, [0; 2]),
        (_, 2) if !reset => (FIN | ACK, 1, [1, 0]),
        (_, 1) => (ACK, 0, [1; 2]),
        _ => (PSH | ACK, usize::from(!random.is_multiple_of(3)), [0; 2]),
    };
    (tcp(flow, talk, way, flags, fins), way, flags & PSH != 0)
}

/// A segment with the sequence numbers that follow from the data sent so far; `fins` is the number of FINs sent.
#[inline]
fn tcp(flow: &Flow, talk: &Conversation, way: usize, flags: u8, fins: [u32; 2]) -> Body {
    let headers = if talk.client.ipv6 { 60 } else { 40 };
    let position = |way: usize| {
        let first = if way == 0 { talk.salt as u32 } else { (talk.salt >> 32) as u32 };
        let payload =
            (flow.octets[way] as u32).wrapping_sub(flow.packets[way].wrapping_mul(headers));
        // A SYN uses a sequence number, and is the first segment of a side.
        let syn = u32::from(flow.packets[way] > 0);
        first.wrapping_add(payload).wrapping_add(syn).wrapping_add(fins[way])
    };
    Body::Tcp {
        flags,
        seq: position(way),
        ack: if flags & ACK != 0 { position(1 - way) } else { 0 },
        window: WINDOW,
    }
}
