//! The truth about traffic, from the generator's own state.
//!
//! Frames are counted when they are returned; conversations and talkers are summed over the flows, and scans and facts
//! are found by replaying the scripts of actors and exchanges, on request.
//!
//! Definitions: `octets.ip` is IPv4's total length, or 40 + payload length for IPv6; a
//! conversation is a distinct unordered pair of (address, port); a failed attempt is a TCP SYN to
//! a distinct (address, port) that no SYN-ACK answered; a vertical scan is one source and one
//! target with more failed ports than the threshold, a horizontal one is one source and one port
//! with more failed targets.

use crate::actor::{Act, Actor, Cast};
use crate::address::Address;
use crate::exchanges::{ApplicationTruth, Attempt, Exchanges, Replayed};
use crate::flow::{Conversation, Flow};
use crate::profile::{Profile, ScanSpec, Seen};
use crate::records::RecordSums;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;

/// Talkers in each list.
const TALKERS: usize = 10;

/// The truth about the frames that a generator has returned.
#[derive(Serialize, Clone, Debug)]
pub struct Truth {
    /// Name of the profile.
    pub profile: String,
    /// Seed of the generator.
    pub seed: u64,
    /// Frames.
    pub packets: u64,
    /// Their octets.
    pub octets: Octets,
    /// IPv4 packets.
    pub ipv4: u64,
    /// IPv6 packets.
    pub ipv6: u64,
    /// Frames without an IP packet.
    pub non_ip: u64,
    /// IPv4 with MF or an offset, or IPv6 with a fragment header.
    pub fragments: u64,
    /// Frames truncated at the snaplen.
    pub truncated: u64,
    /// Frames with a VLAN tag.
    pub vlan: u64,
    /// Packets by protocol.
    pub protocols: Protocols,
    /// Distinct pairs of (address, port), regardless of the initiator.
    pub conversations: Conversations,
    /// Distinct pairs of (address, port) with a direction: a conversation with both directions counts twice.
    pub one_way_flows: Conversations,
    /// Sources with more failed attempts than this are scans in `scans`.
    pub scan_threshold: u32,
    /// Scans at that threshold.
    pub scans: Scans,
    /// Scans over UDP at that threshold; an attempt that is answered offsets a failed one.
    #[serde(skip_serializing_if = "Scans::is_empty")]
    pub udp_scans: Scans,
    /// The ten sources with the most traffic.
    pub talkers: Talkers,
    /// Totals of the flow records, if the generator metered them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub records: Option<RecordSums>,
    /// Messages and TCP connections, if the profile has them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub applications: Option<ApplicationTruth>,
    #[serde(skip)]
    actors: Vec<Actor>,
    /// The attempts, besides those of actors, that were not answered yet.
    #[serde(skip)]
    open: BTreeSet<Attempt>,
}

/// Octets of three kinds.
#[derive(Serialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Octets {
    /// Original lengths of the frames.
    pub wire: u64,
    /// Captured lengths of the frames.
    pub captured: u64,
    /// Lengths of the IP packets.
    pub ip: u64,
}

/// Packets by IP protocol; fragments count for their protocol.
#[derive(Serialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Protocols {
    /// Protocol 6.
    pub tcp: u64,
    /// Protocol 17.
    pub udp: u64,
    /// Protocol 1.
    pub icmp: u64,
    /// Protocol 58.
    pub icmpv6: u64,
}

/// Numbers of conversations or flows.
#[derive(Serialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Conversations {
    /// Of TCP.
    pub tcp: u64,
    /// Of UDP.
    pub udp: u64,
}

/// All scans, sorted by their keys.
#[derive(Serialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct Scans {
    /// Many ports of one target.
    pub vertical: Vec<VerticalScan>,
    /// One port of many targets.
    pub horizontal: Vec<HorizontalScan>,
}

/// One source that tries many ports of one target.
#[derive(Serialize, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct VerticalScan {
    /// The scanning source.
    pub source: IpAddr,
    /// The scanned target.
    pub target: IpAddr,
    /// Distinct ports with failed attempts.
    pub ports: u32,
}

/// One source that tries one port of many targets.
#[derive(Serialize, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HorizontalScan {
    /// The scanning source.
    pub source: IpAddr,
    /// The scanned port.
    pub port: u16,
    /// Distinct targets with failed attempts.
    pub targets: u32,
}

/// Sources with the most traffic, in descending order; equal ones by address.
#[derive(Serialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct Talkers {
    /// By octets of IP packets.
    pub by_octets: Vec<Talker>,
    /// By packets.
    pub by_packets: Vec<Talker>,
}

/// The traffic of one source.
#[derive(Serialize, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Talker {
    /// The source.
    pub source: IpAddr,
    /// IP packets sent.
    pub packets: u64,
    /// Their octets.
    pub octets: u64,
}

/// Counters of frames.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) packets: u64,
    pub(crate) octets: Octets,
    pub(crate) ipv4: u64,
    pub(crate) ipv6: u64,
    pub(crate) non_ip: u64,
    pub(crate) fragments: u64,
    pub(crate) truncated: u64,
    pub(crate) vlan: u64,
    pub(crate) protocols: Protocols,
}

/// The senders of the frames.
pub(crate) struct Members<'a, F> {
    /// The flows that sent something.
    pub(crate) flows: F,
    pub(crate) actors: &'a [Actor],
    pub(crate) exchanges: Option<&'a Exchanges>,
}

impl Truth {
    /// `open` is the flow that waits for its SYN-ACK.
    pub(crate) fn new(
        profile: &Profile,
        seed: u64,
        counts: &Counts,
        members: Members<'_, impl Iterator<Item = (Conversation, Flow)>>,
        open: Option<Conversation>,
    ) -> Self {
        let mut sums = Sums::default();
        let Members { flows, actors, exchanges } = members;
        let open = open.map(|t| (t.client.to_ip(), t.server.to_ip(), t.server_port));
        let mut open = BTreeSet::from_iter(open);
        let mut answered = BTreeSet::new();
        flows.for_each(|(talk, flow)| sums.add_flow(&talk, &flow));
        if let Some(exchanges) = exchanges {
            exchanges.replay(|replayed| {
                sums.add_exchange(replayed);
                if let Some((attempt, is_answered)) = replayed.attempt() {
                    if is_answered { &mut answered } else { &mut open }.insert(attempt);
                }
            });
        }
        open.retain(|attempt| !answered.contains(attempt));
        actors.iter().for_each(|actor| sums.add_actor(actor));
        let mut truth = Self {
            profile: profile.name.clone(),
            seed,
            packets: counts.packets,
            octets: counts.octets,
            ipv4: counts.ipv4,
            ipv6: counts.ipv6,
            non_ip: counts.non_ip,
            fragments: counts.fragments,
            truncated: counts.truncated,
            vlan: counts.vlan,
            protocols: counts.protocols,
            conversations: sums.conversations,
            one_way_flows: sums.one_way,
            scan_threshold: profile.scan_threshold,
            scans: Scans::default(),
            udp_scans: Scans::default(),
            talkers: sums.talkers(),
            records: None,
            applications: exchanges.map(Exchanges::truth),
            actors: actors.to_vec(),
            open,
        };
        truth.scans = truth.scans(profile.scan_threshold);
        truth.udp_scans = truth.udp_scans(profile.scan_threshold);
        truth
    }

    /// Scans with more than `threshold` failed attempts; with 0 every source with a failed attempt.
    pub fn scans(&self, threshold: u32) -> Scans {
        let mut scans = Scans::default();
        for actor in &self.actors {
            match &actor.cast {
                Cast::Scan { spec, .. } if !spec.udp => scans.add(actor, spec, threshold),
                Cast::Scan { .. } => {}
                Cast::Flood { spec, .. } if spec.seen == Seen::Attack && threshold == 0 => {
                    // An address that is used again with another port makes no new attempt.
                    for step in actor.replay().take(spec.sources as usize) {
                        let (source, _, target, port) = actor.parties(step.attempt);
                        scans.add_single(source.to_ip(), target.to_ip(), port);
                    }
                }
                Cast::Flood { .. } => {}
            }
        }
        scans.add_open(&self.open, threshold);
        scans.vertical.sort_unstable();
        scans.horizontal.sort_unstable();
        scans
    }
}

impl Truth {
    /// The scanners over UDP with more than `threshold` failed attempts, less those that were answered. Flows of other
    /// hosts are left out.
    pub fn udp_scans(&self, threshold: u32) -> Scans {
        let mut scans = Scans::default();
        for actor in &self.actors {
            if let Cast::Scan { spec, .. } = &actor.cast
                && spec.udp
            {
                scans.add(actor, spec, threshold);
            }
        }
        scans.vertical.sort_unstable();
        scans.horizontal.sort_unstable();
        scans
    }
}

impl Scans {
    fn is_empty(&self) -> bool {
        self.vertical.is_empty() && self.horizontal.is_empty()
    }

    /// Adds the scans of an actor.
    fn add(&mut self, actor: &Actor, spec: &ScanSpec, threshold: u32) {
        // An answer withdraws an attempt, and over UDP it also offsets another one.
        let answer = if spec.udp { -2 } else { -1 };
        let mut targets = vec![0i64; spec.targets as usize];
        let mut ports = vec![0i64; spec.ports as usize];
        for step in actor.replay() {
            let more = match step.act {
                Act::Syn => 1,
                Act::SynAck => answer,
                Act::SynAgain | Act::Reset => 0,
            };
            targets[(step.attempt % spec.targets) as usize] += more;
            ports[(step.attempt / spec.targets) as usize] += more;
        }
        let source = actor.parties(0).0.to_ip();
        let is_scan = |failed: &i64| *failed > threshold.into();
        let verticals = (0u32..).zip(targets).filter(|(_, ports)| is_scan(ports));
        self.vertical.extend(verticals.map(|(index, ports)| VerticalScan {
            source,
            target: actor.target(index).to_ip(),
            ports: ports as u32,
        }));
        let horizontals = (spec.first_port..).zip(ports).filter(|(_, targets)| is_scan(targets));
        self.horizontal.extend(horizontals.map(|(port, targets)| HorizontalScan {
            source,
            port,
            targets: targets as u32,
        }));
    }

    /// Adds the sources of distinct failed attempts.
    fn add_open(&mut self, open: &BTreeSet<Attempt>, threshold: u32) {
        let mut ports = HashMap::new();
        let mut targets = HashMap::new();
        for &(source, target, port) in open {
            *ports.entry((source, target)).or_insert(0) += 1;
            *targets.entry((source, port)).or_insert(0) += 1;
        }
        ports.retain(|_, ports| *ports > threshold);
        targets.retain(|_, targets| *targets > threshold);
        let verticals = ports.into_iter();
        self.vertical.extend(verticals.map(|((source, target), ports)| VerticalScan {
            source,
            target,
            ports,
        }));
        let horizontals = targets.into_iter();
        self.horizontal.extend(horizontals.map(|((source, port), targets)| HorizontalScan {
            source,
            port,
            targets,
        }));
    }

    /// Adds a source with one failed attempt.
    fn add_single(&mut self, source: IpAddr, target: IpAddr, port: u16) {
        self.vertical.push(VerticalScan { source, target, ports: 1 });
        self.horizontal.push(HorizontalScan { source, port, targets: 1 });
    }
}

/// Sums over flows and actors.
#[derive(Default)]
struct Sums {
    conversations: Conversations,
    one_way: Conversations,
    /// Packets and octets by source.
    sources: HashMap<Address, (u64, u64)>,
}

impl Sums {
    fn add_flow(&mut self, talk: &Conversation, flow: &Flow) {
        let ways = flow.packets.iter().filter(|&&packets| packets > 0).count() as u64;
        if talk.kind.is_tcp() {
            self.conversations.tcp += 1;
            self.one_way.tcp += ways;
        } else if talk.kind.is_udp() {
            self.conversations.udp += 1;
            self.one_way.udp += ways;
        }
        if flow.octets != [0; 2] {
            self.add_source(talk.client, flow.packets[0].into(), flow.octets[0]);
            self.add_source(talk.server, flow.packets[1].into(), flow.octets[1]);
        }
    }

    fn add_exchange(&mut self, replayed: &Replayed<'_>) {
        let volumes = replayed.volumes();
        let ways = volumes.iter().filter(|(packets, _)| *packets > 0).count() as u64;
        let tcp = replayed.is_tcp();
        for (sum, more) in [(&mut self.conversations, 1), (&mut self.one_way, ways)] {
            *if tcp { &mut sum.tcp } else { &mut sum.udp } += more;
        }
        for (host, (packets, octets)) in replayed.hosts().into_iter().zip(volumes) {
            self.add_source(host, packets, octets);
        }
    }

    fn add_actor(&mut self, actor: &Actor) {
        let is_udp = matches!(&actor.cast, Cast::Scan { spec, .. } if spec.udp);
        let headers = if is_udp { 8 } else { 20 };
        let octets = |packets: u64, address: Address| {
            packets * (headers + if address.ipv6 { 40 } else { 20 })
        };
        match &actor.cast {
            Cast::Scan { spec, .. } => {
                let (mut sent, mut answers) = (0, vec![0u64; spec.targets as usize]);
                for step in actor.replay() {
                    match step.act {
                        Act::Syn | Act::SynAgain => sent += 1,
                        Act::SynAck | Act::Reset => {
                            answers[(step.attempt % spec.targets) as usize] += 1;
                        }
                    }
                    // Each attempt is a conversation with at most one answer.
                    for (sum, is_new) in [
                        (&mut self.conversations, step.act == Act::Syn),
                        (&mut self.one_way, step.act != Act::SynAgain),
                    ] {
                        *if is_udp { &mut sum.udp } else { &mut sum.tcp } += u64::from(is_new);
                    }
                }
                let scanner = actor.parties(0).0;
                self.add_source(scanner, sent, octets(sent, scanner));
                for (index, answers) in (0..).zip(answers) {
                    let target = actor.target(index);
                    self.add_source(target, answers, octets(answers, target));
                }
            }
            Cast::Flood { spec, .. } => {
                let sent = u64::from(actor.sent);
                self.conversations.tcp += sent;
                self.one_way.tcp += sent;
                match spec.seen {
                    Seen::Attack => actor.replay().for_each(|step| {
                        let forged = actor.parties(step.attempt).0;
                        self.add_source(forged, 1, octets(1, forged));
                    }),
                    Seen::Backscatter => {
                        let victim = actor.target(0);
                        self.add_source(victim, sent, octets(sent, victim));
                    }
                }
            }
        }
    }

    fn add_source(&mut self, source: Address, packets: u64, octets: u64) {
        if packets > 0 {
            let sum = self.sources.entry(source).or_default();
            *sum = (sum.0 + packets, sum.1 + octets);
        }
    }

    fn talkers(&self) -> Talkers {
        let mut all: Vec<Talker> = self
            .sources
            .iter()
            .map(|(source, &(packets, octets))| Talker { source: source.to_ip(), packets, octets })
            .collect();
        let mut top = |weight: fn(&Talker) -> u64| {
            let order = |talker: &Talker| (Reverse(weight(talker)), talker.source);
            if all.len() > TALKERS {
                all.select_nth_unstable_by_key(TALKERS, order);
            }
            let mut top = all[..TALKERS.min(all.len())].to_vec();
            top.sort_unstable_by_key(order);
            top
        };
        Talkers { by_octets: top(|t| t.octets), by_packets: top(|t| t.packets) }
    }
}
