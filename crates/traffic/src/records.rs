//! The flow records of a run, from the generator's own state: each packet is metered by the definitions below, in order
//! and in the simplest form.
//!
//! A flow is both directions of (address, port) pairs and protocol; a later fragment has the ports of its datagram,
//! ICMP has none. Before a packet counts in its flow, these conditions are checked in order; the first that is true
//! ends the flow, and the packet begins the next one:
//!
//! | | condition | ended |
//! |---|---|---|
//! | 1 | open, and no packet for more than the idle timeout of its protocol | idle |
//! | 2 | closed, and no packet for more than the timeout of FIN or RST | detected |
//! | 3 | the active timeout or more since the first packet | active |
//! | 4 | closed, and the packet is a SYN without ACK | detected |
//!
//! A TCP connection is closed by FIN from both sides or by RST. After 3 it is the same
//! connection: its initiator, its FINs, and how it was closed are kept. At the end of the run, 1 and 2 are checked for
//! all flows; the others end as detected if they are closed, else as forced.
//!
//! Invariant: written from this description alone, so that it does not share errors with a meter.

use crate::frame::{ACK, Body, FIN, Packet, RST, SYN};
use serde::Serialize;
use std::collections::HashMap;
use std::net::IpAddr;

/// The flow key and the timeouts; times in nanoseconds.
#[derive(Serialize, Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowRules {
    /// Idle timeout of an open TCP connection.
    pub tcp_ns: u64,
    /// Idle timeout of a TCP connection after FIN from both sides.
    pub tcp_fin_ns: u64,
    /// Idle timeout of a TCP connection after RST.
    pub tcp_rst_ns: u64,
    /// Idle timeout of a UDP flow.
    pub udp_ns: u64,
    /// Idle timeout of an ICMP or ICMPv6 flow.
    pub icmp_ns: u64,
    /// Active timeout.
    pub active_ns: u64,
    /// Each direction is a separate flow, initiated by its sender.
    pub uniflow: bool,
}

impl Default for FlowRules {
    /// Idle timeout 30 s, 5 s after the end of a connection, active timeout 120 s; both directions in one flow.
    fn default() -> Self {
        const SECOND: u64 = 1_000_000_000;
        Self {
            tcp_ns: 30 * SECOND,
            tcp_fin_ns: 5 * SECOND,
            tcp_rst_ns: 5 * SECOND,
            udp_ns: 30 * SECOND,
            icmp_ns: 30 * SECOND,
            active_ns: 120 * SECOND,
            uniflow: false,
        }
    }
}

/// How the initiator of a flow was determined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Began {
    /// The sender of the first packet.
    FirstPacket,
    /// The sender of the first packet, a SYN.
    Syn,
    /// Who was sent a SYN-ACK first.
    SynAck,
}

/// Why a flow ended; the numbers are those of IPFIX.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ended {
    /// Silence.
    Idle = 1,
    /// Age.
    Active = 2,
    /// FIN, RST or a new SYN.
    Detected = 3,
    /// The end of the run.
    Forced = 4,
}

/// The truth about one flow. Index 0 of a pair is from the initiator, 1 to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordTruth {
    /// Address of the initiator.
    pub source: IpAddr,
    /// Address of the other end.
    pub destination: IpAddr,
    /// 0 for ICMP.
    pub source_port: u16,
    /// 0 for ICMP.
    pub destination_port: u16,
    /// IP protocol.
    pub protocol: u8,
    /// First packet, nanoseconds since 1970.
    pub first_ns: u64,
    /// Last packet, nanoseconds since 1970.
    pub last_ns: u64,
    /// Packets.
    pub packets: [u64; 2],
    /// Octets of IP packets.
    pub octets: [u64; 2],
    /// TCP control bits, or-ed.
    pub tcp_flags: [u8; 2],
    /// ICMP type (upper byte) and code of the first packet, else 0.
    pub icmp_type_code: u16,
    /// How the initiator was determined.
    pub began: Began,
    /// Why it ended.
    pub ended: Ended,
}

/// Totals of records.
#[derive(Serialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordSums {
    /// The rules of metering.
    pub rules: FlowRules,
    /// All records.
    pub records: u64,
    /// Records by end reason.
    pub end_reasons: EndReasons,
    /// IP packets in them.
    pub packets: u64,
    /// Octets of IP packets in them.
    pub octets: u64,
}

/// Records by end reason.
#[derive(Serialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndReasons {
    /// Idle timeout.
    pub idle: u64,
    /// Active timeout.
    pub active: u64,
    /// FIN, RST or a new SYN.
    pub end_detected: u64,
    /// The end of the run.
    pub forced: u64,
}

impl RecordSums {
    pub(crate) fn of(rules: FlowRules, records: &[RecordTruth]) -> Self {
        let mut sums = Self { rules, records: records.len() as u64, ..Self::default() };
        for record in records {
            *match record.ended {
                Ended::Idle => &mut sums.end_reasons.idle,
                Ended::Active => &mut sums.end_reasons.active,
                Ended::Detected => &mut sums.end_reasons.end_detected,
                Ended::Forced => &mut sums.end_reasons.forced,
            } += 1;
            sums.packets += record.packets[0] + record.packets[1];
            sums.octets += record.octets[0] + record.octets[1];
        }
        sums
    }
}

/// Meters the generated packets. Memory grows with the flows, open and ended.
#[derive(Clone, Debug)]
pub(crate) struct Records {
    rules: FlowRules,
    live: HashMap<Key, Live>,
    ended: Vec<RecordTruth>,
    last_ns: u64,
}

/// Protocol and both ends: the smaller one first, or in a uniflow the sender.
type Key = (u8, (IpAddr, u16), (IpAddr, u16));

#[derive(Clone, Copy, Debug)]
struct Live {
    /// As if the flow were forced to end now.
    record: RecordTruth,
    /// FIN seen from the initiator, and from the other side.
    fins: [bool; 2],
    closed: Option<Closed>,
}

/// How a connection was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Closed {
    Fin,
    Rst,
}

/// The fields of a packet that flows use.
struct Observed {
    protocol: u8,
    source: (IpAddr, u16),
    destination: (IpAddr, u16),
    tcp_flags: u8,
    icmp_type_code: u16,
    octets: u64,
    ts_ns: u64,
}

impl Records {
    pub(crate) fn new(rules: FlowRules) -> Self {
        Self { rules, live: HashMap::new(), ended: Vec::new(), last_ns: 0 }
    }

    pub(crate) fn rules(&self) -> FlowRules {
        self.rules
    }

    /// Counts the next frame; `ip_octets` is the length of its IP packet.
    pub(crate) fn add(&mut self, packet: &Packet, ip_octets: u32, ts_ns: u64) {
        self.last_ns = ts_ns;
        if let Some(observed) = Observed::of(packet, ip_octets, ts_ns) {
            self.count(&observed);
        }
    }

    fn count(&mut self, packet: &Observed) {
        let (a, b) = (packet.source, packet.destination);
        let (a, b) = if self.rules.uniflow { (a, b) } else { (a.min(b), a.max(b)) };
        let key = (packet.protocol, a, b);
        let Some(live) = self.live.get_mut(&key) else {
            self.live.insert(key, Live::begun_by(packet, &self.rules));
            return;
        };
        match live.ended_before(packet, &self.rules) {
            None => {}
            Some(Ended::Active) => {
                self.ended.push(RecordTruth { ended: Ended::Active, ..live.record });
                live.record = RecordTruth {
                    first_ns: packet.ts_ns,
                    packets: [0; 2],
                    octets: [0; 2],
                    tcp_flags: [0; 2],
                    icmp_type_code: packet.icmp_type_code,
                    ..live.record
                };
            }
            Some(ended) => {
                self.ended.push(RecordTruth { ended, ..live.record });
                *live = Live::begun_by(packet, &self.rules);
                return;
            }
        }
        live.count(packet);
    }

    /// All records, as if the run ended with the last frame; sorted.
    pub(crate) fn all(&self) -> Vec<RecordTruth> {
        let live = self.live.values().map(|live| {
            let left = if live.closed.is_some() { Ended::Detected } else { Ended::Forced };
            let ended = live.silent_at(self.last_ns, &self.rules).unwrap_or(left);
            RecordTruth { ended, ..live.record }
        });
        let mut all: Vec<RecordTruth> = self.ended.iter().copied().chain(live).collect();
        all.sort_unstable();
        all
    }
}

impl Live {
    /// The sender of the first packet is the initiator, unless it answers a SYN.
    fn begun_by(packet: &Observed, rules: &FlowRules) -> Self {
        let began = match packet.tcp_flags & (SYN | ACK) {
            SYN => Began::Syn,
            flags if flags == SYN | ACK && !rules.uniflow => Began::SynAck,
            _ => Began::FirstPacket,
        };
        let (from, to) = match began {
            Began::SynAck => (packet.destination, packet.source),
            _ => (packet.source, packet.destination),
        };
        let mut live = Self {
            record: RecordTruth {
                source: from.0,
                destination: to.0,
                source_port: from.1,
                destination_port: to.1,
                protocol: packet.protocol,
                first_ns: packet.ts_ns,
                last_ns: packet.ts_ns,
                packets: [0; 2],
                octets: [0; 2],
                tcp_flags: [0; 2],
                icmp_type_code: packet.icmp_type_code,
                began,
                ended: Ended::Forced,
            },
            fins: [false; 2],
            closed: None,
        };
        live.count(packet);
        live
    }

    fn count(&mut self, packet: &Observed) {
        let record = &mut self.record;
        let back = packet.source != (record.source, record.source_port);
        let way = usize::from(back);
        record.last_ns = packet.ts_ns;
        record.packets[way] += 1;
        record.octets[way] += packet.octets;
        record.tcp_flags[way] |= packet.tcp_flags;
        self.fins[way] |= packet.tcp_flags & FIN != 0;
        if packet.tcp_flags & RST != 0 {
            self.closed.get_or_insert(Closed::Rst);
        } else if self.fins == [true; 2] {
            self.closed.get_or_insert(Closed::Fin);
        }
    }

    fn ended_before(&self, packet: &Observed, rules: &FlowRules) -> Option<Ended> {
        if let Some(ended) = self.silent_at(packet.ts_ns, rules) {
            return Some(ended);
        }
        if packet.ts_ns - self.record.first_ns >= rules.active_ns {
            return Some(Ended::Active);
        }
        let opens = packet.tcp_flags & (SYN | ACK) == SYN;
        (opens && self.closed.is_some()).then_some(Ended::Detected)
    }

    /// Why the flow has ended by `now_ns` without another packet; `None` if it has not.
    fn silent_at(&self, now_ns: u64, rules: &FlowRules) -> Option<Ended> {
        let (outlived_ns, ended) = match (self.closed, self.record.protocol) {
            (Some(Closed::Fin), _) => (rules.tcp_fin_ns, Ended::Detected),
            (Some(Closed::Rst), _) => (rules.tcp_rst_ns, Ended::Detected),
            (None, 6) => (rules.tcp_ns, Ended::Idle),
            (None, 17) => (rules.udp_ns, Ended::Idle),
            (None, _) => (rules.icmp_ns, Ended::Idle),
        };
        (now_ns - self.record.last_ns > outlived_ns).then_some(ended)
    }
}

impl Observed {
    /// `None` for frames without IP.
    fn of(packet: &Packet, ip_octets: u32, ts_ns: u64) -> Option<Self> {
        let ipv6 = packet.source.ipv6;
        let (protocol, tcp_flags, icmp_type) = match packet.body {
            Body::Tcp { flags, .. } => (6, flags, None),
            Body::Udp | Body::FirstFragment { .. } | Body::LaterFragment { .. } => (17, 0, None),
            Body::Echo { reply, .. } => match (ipv6, reply) {
                (false, false) => (1, 0, Some(8)),
                (false, true) => (1, 0, Some(0)),
                (true, false) => (58, 0, Some(128)),
                (true, true) => (58, 0, Some(129)),
            },
            Body::Arp { .. } => return None,
        };
        let port = |port| if icmp_type.is_some() { 0 } else { port };
        Some(Self {
            protocol,
            source: (packet.source.to_ip(), port(packet.source_port)),
            destination: (packet.destination.to_ip(), port(packet.destination_port)),
            tcp_flags,
            icmp_type_code: icmp_type.map_or(0, |kind: u16| kind << 8),
            octets: ip_octets.into(),
            ts_ns,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::{Address, Role};

    const S: u64 = 1_000_000_000;

    /// Meters segments of one connection: time in seconds, whether it comes from the server,
    /// flags. Returns began, ended, packets and first time in seconds of every record, by time.
    fn metered(segments: &[(u64, bool, u8)]) -> Vec<(Began, Ended, [u64; 2], u64)> {
        let mut records = Records::new(FlowRules { tcp_rst_ns: 2 * S, ..FlowRules::default() });
        for &(second, back, flags) in segments {
            let client = (Address::of(Role::Client, 1, false), 40_000);
            let server = (Address::of(Role::Server, 1, false), 80);
            let (source, destination) = if back { (server, client) } else { (client, server) };
            let packet = Packet {
                source: source.0,
                destination: destination.0,
                source_port: source.1,
                destination_port: destination.1,
                vlan: 0,
                ident: 0,
                body: Body::Tcp { flags, seq: 0, ack: 0, window: 0 },
                payload: 0,
            };
            records.add(&packet, 40, second * S);
        }
        let mut all = records.all();
        assert!(all.iter().all(|record| (record.source_port, record.protocol) == (40_000, 6)));
        all.sort_unstable_by_key(|record| record.first_ns);
        all.iter().map(|r| (r.began, r.ended, r.packets, r.first_ns / S)).collect()
    }

    #[test]
    fn a_pause_of_exactly_the_idle_timeout_does_not_end_a_flow() {
        use Began::Syn;
        assert_eq!(
            metered(&[(0, false, SYN), (30, true, SYN | ACK), (60, false, ACK)]),
            [(Syn, Ended::Forced, [2, 1], 0)]
        );
        assert_eq!(
            metered(&[(0, false, SYN), (31, true, SYN | ACK), (61, false, ACK)]),
            [(Syn, Ended::Idle, [1, 0], 0), (Began::SynAck, Ended::Forced, [1, 1], 31)]
        );
    }

    #[test]
    fn a_flow_of_the_active_age_is_cut_and_keeps_its_initiator() {
        let every_ten: Vec<_> = (0..=24).map(|n| (n * 10, n % 2 == 0, ACK)).collect();
        let mut segments = vec![(0, false, SYN)];
        segments.extend(&every_ten);
        let found = metered(&segments);
        assert_eq!(
            found,
            [
                (Began::Syn, Ended::Active, [7, 6], 0),
                (Began::Syn, Ended::Active, [6, 6], 120),
                (Began::Syn, Ended::Forced, [0, 1], 240),
            ]
        );
    }

    #[test]
    fn the_grace_counts_from_the_last_packet_whatever_it_is() {
        let close = [(0, false, FIN | ACK), (1, true, FIN | ACK)];
        let with = |more: &[(u64, bool, u8)]| metered(&[&close[..], more].concat());
        let first = Began::FirstPacket;
        assert_eq!(
            with(&[(6, false, ACK), (11, false, ACK)]),
            [(first, Ended::Detected, [3, 1], 0)]
        );
        assert_eq!(
            with(&[(6, false, ACK), (12, false, ACK)]),
            [(first, Ended::Detected, [2, 1], 0), (first, Ended::Forced, [1, 0], 12)]
        );
    }

    #[test]
    fn a_reset_closes_at_once_and_a_new_syn_begins_anew() {
        let segments = [(0, false, SYN), (1, true, RST | ACK)];
        let with = |more: &[(u64, bool, u8)]| metered(&[&segments[..], more].concat());
        use Began::Syn;
        assert_eq!(with(&[]), [(Syn, Ended::Detected, [1, 1], 0)]);
        assert_eq!(with(&[(2, false, ACK)]), [(Syn, Ended::Detected, [2, 1], 0)]);
        assert_eq!(
            with(&[(2, false, SYN)]),
            [(Syn, Ended::Detected, [1, 1], 0), (Syn, Ended::Forced, [1, 0], 2)]
        );
        assert_eq!(
            with(&[(4, false, ACK)]),
            [(Syn, Ended::Detected, [1, 1], 0), (Began::FirstPacket, Ended::Forced, [1, 0], 4)]
        );
    }

    #[test]
    fn one_fin_closes_nothing_and_a_cut_keeps_it() {
        let half = [(0, false, SYN), (1, true, FIN | ACK)];
        let with = |more: &[(u64, bool, u8)]| metered(&[&half[..], more].concat());
        assert_eq!(with(&[(20, false, ACK)]), [(Began::Syn, Ended::Forced, [2, 1], 0)]);
        let kept: Vec<_> = (1..=12).map(|n| (n * 10, false, ACK)).collect();
        let closed = [&kept[..], &[(125, false, FIN | ACK)]].concat();
        assert_eq!(
            with(&closed),
            [(Began::Syn, Ended::Active, [12, 1], 0), (Began::Syn, Ended::Detected, [2, 0], 120)]
        );
    }
}
