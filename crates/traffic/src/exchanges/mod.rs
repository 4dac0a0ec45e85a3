//! Exchanges: flows with real messages at real times. TLS, HTTP and SSH over TCP, with round trips, losses and late segments;
//! QUIC and DNS over UDP.
//!
//! ```text
//! number ─▶ Exchange ─▶ Script: steps in order of time ─▶ heap of the active ones ─▶ packet and payload
//!           names.rs    script.rs                                messages.rs, quic.rs
//! ```
//!
//! Exchanges begin evenly spread over the run. An exchange and its script follow from its number, so they are made again
//! for the truth, which replays the steps sent so far.
//!
//! Invariant: memory depends on the number of exchanges and of those active at the same time, and is allocated at the
//! start.

mod exchange;
mod messages;
mod names;
mod quic;
mod script;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::net::IpAddr;

use serde::Serialize;

use self::exchange::{Exchange, Protocol};
use self::messages::{Kind, LISTS, MESSAGE_MAX, RESPONSE_TIME};
use self::script::{Count, Script, Step};
use crate::address::{Address, Role};
use crate::frame::{ACK, Body, FrameBuffer, Packet, SYN, Written};
use crate::keyed::Keyed;
use crate::popularity::Popularity;
use crate::profile::{Applications, Profile};

/// Sites that answer DNS.
const RESOLVERS: u32 = 4;
const SITES: u32 = 1 << 16;

impl Exchange {
    fn packet(&self, step: &Step, ident: usize) -> Packet {
        let client = (self.client, self.client_port);
        let server = (self.server, self.server_port());
        let (from, to) = if step.way == 0 { (client, server) } else { (server, client) };
        let body = match self.is_tcp() {
            true => {
                Body::Tcp { flags: step.flags, seq: step.seq, ack: step.ack, window: step.window }
            }
            false => Body::Udp,
        };
        Packet {
            source: from.0,
            destination: to.0,
            source_port: from.1,
            destination_port: to.1,
            vlan: self.vlan,
            ident: ident as u32,
            body,
            payload: step.len.into(),
        }
    }

    /// Bytes of the IP packet of a step.
    fn octets(&self, step: &Step) -> u64 {
        let ip = if self.ipv6 { 40 } else { 20 };
        ip + if self.is_tcp() { 20 } else { 8 } + u64::from(step.len)
    }
}

/// Makes exchanges from their numbers. Shares are thresholds for 16 random bits.
#[derive(Clone, Debug)]
struct Maker {
    keyed: Keyed,
    spec: Applications,
    ipv6: u64,
    vlan: u64,
    start_ns: u64,
    run_ns: u64,
}

impl Maker {
    fn exchange(&self, number: u32) -> Exchange {
        let spec = &self.spec;
        let salt = self.keyed.hash(1 << 40 | u64::from(number));
        let permuted = self.keyed.permute(number);
        let mut exchange = Exchange {
            protocol: Protocol::Dns,
            client: Address::of(Role::User, permuted >> 15, false),
            server: Address::of(Role::Site, 0, false),
            client_port: 32_768 + (permuted & 0x7fff) as u16,
            vlan: 0,
            ipv6: false,
            name: 0,
            special: false,
            rtt_ns: [0; 2],
            salt,
        };
        let sixteen = |purpose: u64| exchange.bits(purpose) & 0xffff;
        let share = |purpose: u64| sixteen(purpose) as f64 / 65_536.0;
        let shares = [
            (Protocol::Tls, spec.tls_share),
            (Protocol::Quic, spec.quic_share),
            (Protocol::Http, spec.http_share),
            (Protocol::Ssh, spec.ssh_share),
        ];
        let (mut place, mut protocol) = (share(64), Protocol::Dns);
        for (own, share) in shares {
            if (0.0..share).contains(&place) {
                protocol = own;
            }
            place -= share;
        }
        let ipv6 = sixteen(65) < self.ipv6;
        let vlan = if sixteen(66) < self.vlan { 200 + (permuted >> 15 & 7) as u16 } else { 0 };
        let rare = if protocol == Protocol::Dns { spec.missing_share } else { spec.long_share };
        let special = share(67) < rare;
        let rtt_ns = [(68, spec.client_rtt_us), (69, spec.server_rtt_us)]
            .map(|(purpose, [least, most])| between(least, most, exchange.bits(purpose)));
        let law = if spec.zipf > 0.0 { Popularity::Zipf(spec.zipf) } else { Popularity::Uniform };
        let name = law.draw(spec.names.into(), exchange.bits(70)).number() as u32;
        let site = match protocol {
            Protocol::Dns => exchange.bits(71) as u32 % RESOLVERS,
            _ => RESOLVERS + name % (SITES - RESOLVERS),
        };
        exchange.client = Address::of(Role::User, permuted >> 15, ipv6);
        exchange.server = Address::of(Role::Site, site, ipv6);
        Exchange { protocol, vlan, ipv6, name, special, rtt_ns, ..exchange }
    }

    /// When an exchange begins: in its part of the run, of `count` equal ones.
    fn start_ns(&self, number: u32, count: u32) -> u64 {
        let place = u128::from(number) << 32 | u128::from(self.keyed.hash(number.into()) >> 32);
        let offset = u128::from(self.run_ns) * place / (u128::from(count.max(1)) << 32);
        self.start_ns + offset as u64
    }
}

/// A time between two numbers of microseconds; each magnitude is equally likely.
fn between(least: u32, most: u32, random: u64) -> u64 {
    let (least, most) = (f64::from(least) * 1e3, f64::from(most) * 1e3);
    let part = (random >> 11) as f64 / (1_u64 << 53) as f64;
    (least * libm::pow(most / least, part)) as u64
}

/// An exchange that has begun.
#[derive(Debug)]
struct Active {
    start_ns: u64,
    exchange: Exchange,
    script: Script,
    /// The next step.
    at: usize,
}

/// The exchanges of a profile.
pub(crate) struct Exchanges {
    maker: Maker,
    /// By exchange: packets sent.
    sent: Vec<u16>,
    /// Packets of all exchanges.
    planned: u64,
    /// The next exchange to begin.
    next: u32,
    active: Vec<Active>,
    /// Places in `active` that are not in use.
    free: Vec<usize>,
    /// Time and number of the next packet of each active exchange, and its place.
    due: BinaryHeap<Reverse<(u64, u32, usize)>>,
    scratch: Vec<u8>,
    frame: FrameBuffer,
}

impl Exchanges {
    /// The exchanges of a profile; `None` without them.
    pub(crate) fn new(profile: &Profile, seed: u64) -> Option<Self> {
        let spec = profile.applications.clone()?;
        let wanted = (spec.share * profile.packets as f64).ceil() as u64;
        let threshold = |share: f64| (share * 65_536.0).round() as u64;
        let maker = Maker {
            keyed: Keyed::new(seed ^ 0x00a9_911c),
            spec,
            ipv6: threshold(profile.ipv6_share),
            vlan: threshold(profile.vlan_share),
            start_ns: profile.start_ns,
            run_ns: profile.run_ns(),
        };
        // All scripts are made once, for their number, sizes and lengths.
        let mut scratch = Vec::with_capacity(2 * MESSAGE_MAX);
        let (mut script, mut lengths) = (Script::default(), Vec::new());
        let (mut planned, mut steps, mut messages) = (0, 0, 0);
        while planned < wanted {
            let exchange = maker.exchange(lengths.len() as u32);
            script.replace(&exchange, &maker.spec, &mut scratch);
            planned += script.steps.len() as u64;
            steps = steps.max(script.steps.len());
            messages = messages.max(script.messages.len());
            lengths.push(script.steps.last().map_or(0, |step| step.at_ns));
        }
        let count = lengths.len() as u32;
        let starts = || (0..count).map(|number| maker.start_ns(number, count));
        let mut ends: Vec<u64> = starts().zip(&lengths).map(|(start, len)| start + len).collect();
        ends.sort_unstable();
        let (mut ended, mut most) = (0, 0);
        for (begun, start) in starts().enumerate() {
            ended += ends[ended..].partition_point(|&end| end < start);
            most = most.max(begun + 1 - ended);
        }
        let place = || Active {
            start_ns: 0,
            exchange: maker.exchange(0),
            script: Script {
                steps: Vec::with_capacity(steps),
                messages: Vec::with_capacity(messages),
            },
            at: 0,
        };
        // One more begins before the last packet of another.
        let most = most + 1;
        Some(Self {
            active: (0..most).map(|_| place()).collect(),
            free: (0..most).rev().collect(),
            due: BinaryHeap::with_capacity(most),
            sent: vec![0; lengths.len()],
            planned,
            next: 0,
            scratch,
            frame: FrameBuffer::new(),
            maker,
        })
    }

    /// Packets of all exchanges.
    pub(crate) fn planned(&self) -> u64 {
        self.planned
    }

    /// The time of the next packet; `None` if all were sent.
    pub(crate) fn next_ns(&mut self) -> Option<u64> {
        let count = self.sent.len() as u32;
        while self.next < count {
            let start_ns = self.maker.start_ns(self.next, count);
            if self.due.peek().is_some_and(|Reverse(due)| due.0 < start_ns) {
                break;
            }
            let Some(place) = self.free.pop() else { break };
            let Active { script, .. } = &mut self.active[place];
            let exchange = self.maker.exchange(self.next);
            script.replace(&exchange, &self.maker.spec, &mut self.scratch);
            self.due.push(Reverse((start_ns, self.next, place)));
            let script = std::mem::take(script);
            self.active[place] = Active { start_ns, exchange, script, at: 0 };
            self.next += 1;
        }
        self.due.peek().map(|Reverse(due)| due.0)
    }

    /// The next packet, written to the frame, and its time.
    pub(crate) fn send(&mut self) -> Option<(u64, Packet, Written)> {
        let Reverse((ts_ns, number, place)) = self.due.pop()?;
        let Active { exchange, script, at, start_ns, .. } = &mut self.active[place];
        let step = script.steps.get(*at)?;
        let packet = exchange.packet(step, *at);
        self.scratch.clear();
        let mut payload = &[][..];
        if step.len > 0 {
            let message = script.messages[usize::from(step.message)];
            exchange.write(message.kind, message.len.into(), &mut self.scratch);
            payload = &self.scratch[step.from.into()..][..step.len.into()];
        }
        let written = self.frame.write_message(&packet, payload);
        self.sent[number as usize] += 1;
        *at += 1;
        match script.steps.get(*at) {
            Some(next) => self.due.push(Reverse((*start_ns + next.at_ns, number, place))),
            None => self.free.push(place),
        }
        Some((ts_ns, packet, written))
    }

    pub(crate) fn frame(&self) -> &FrameBuffer {
        &self.frame
    }

    /// Replays the packets sent so far.
    pub(crate) fn replay(&self, mut each: impl FnMut(&Replayed)) {
        let (mut script, mut scratch) = (Script::default(), Vec::new());
        for (number, &sent) in (0..).zip(&self.sent) {
            if sent > 0 {
                let exchange = self.maker.exchange(number);
                script.replace(&exchange, &self.maker.spec, &mut scratch);
                each(&Replayed { exchange: &exchange, script: &script, sent: sent.into() });
            }
        }
    }

    /// The truth about the packets sent so far.
    pub(crate) fn truth(&self) -> ApplicationTruth {
        let mut truth = ApplicationTruth::default();
        self.replay(|replayed| truth.add(replayed.truth()));
        truth
    }
}

/// The source, the target and its port of a TCP SYN.
pub(crate) type Attempt = (IpAddr, IpAddr, u16);

/// An exchange and the number of its packets sent.
pub(crate) struct Replayed<'a> {
    exchange: &'a Exchange,
    script: &'a Script,
    sent: usize,
}

impl Replayed<'_> {
    fn steps(&self) -> &[Step] {
        &self.script.steps[..self.sent]
    }

    /// Client and server.
    pub(crate) fn hosts(&self) -> [Address; 2] {
        [self.exchange.client, self.exchange.server]
    }

    pub(crate) fn is_tcp(&self) -> bool {
        self.exchange.is_tcp()
    }

    /// Packets and octets of each direction.
    pub(crate) fn volumes(&self) -> [(u64, u64); 2] {
        let mut volumes = [(0, 0); 2];
        for step in self.steps() {
            let volume = &mut volumes[usize::from(step.way)];
            *volume = (volume.0 + 1, volume.1 + self.exchange.octets(step));
        }
        volumes
    }

    /// The attempt to connect over TCP, and whether it is answered.
    pub(crate) fn attempt(&self) -> Option<(Attempt, bool)> {
        let answered = self.steps().iter().any(|step| step.way == 1);
        let [client, server] = self.hosts().map(Address::to_ip);
        self.is_tcp().then(|| ((client, server, self.exchange.server_port()), answered))
    }

    fn truth(&self) -> ExchangeTruth {
        let [client, server] = self.hosts().map(Address::to_ip);
        ExchangeTruth {
            client,
            server,
            client_port: self.exchange.client_port,
            server_port: self.exchange.server_port(),
            protocol: if self.is_tcp() { 6 } else { 17 },
            facts: self.facts(),
            tcp: self.is_tcp().then(|| self.tcp()),
        }
    }

    /// The facts of the messages that are complete, in order of their completion.
    fn facts(&self) -> Vec<(&'static str, String)> {
        let mut facts: Vec<(&'static str, String)> = Vec::new();
        let mut add = |field, value: String| {
            let is_list = LISTS.contains(&field);
            if !facts.iter().any(|(own, known)| *own == field && !(is_list && *known != value)) {
                facts.push((field, value));
            }
        };
        // By message: a bit for each segment seen.
        let mut seen = vec![0_u32; self.script.messages.len()];
        let mut asked = [0; 2];
        for step in self.steps().iter().filter(|step| step.len > 0) {
            let message = self.script.messages[usize::from(step.message)];
            let (seen, needed) = (&mut seen[usize::from(step.message)], (1 << message.parts) - 1);
            let is_known = *seen & needed == needed;
            // A probe has only a byte of its segment.
            *seen |= u32::from(step.len > 1) << step.part.min(31);
            // A client's long hello is read when both packets were sent.
            let first_half = message.kind == Kind::ClientInitial(0) && self.exchange.long();
            if is_known || *seen & needed != needed || first_half {
                continue;
            }
            self.exchange.facts(message.kind, &mut add);
            match message.kind {
                Kind::Query(number) => asked[usize::from(number & 1)] = step.at_ns,
                Kind::Answer(number) => {
                    let time_ns = step.at_ns - asked[usize::from(number & 1)];
                    add(RESPONSE_TIME, (time_ns / 1_000).to_string());
                }
                _ => {}
            }
        }
        facts
    }

    fn tcp(&self) -> TcpTruth {
        let mut truth = TcpTruth::default();
        let [client, server] = self.exchange.rtt_ns;
        for step in self.steps() {
            let way = usize::from(step.way);
            truth.octets[way] += u64::from(step.len);
            match step.count {
                Count::Nothing => {}
                Count::Retransmission => truth.retransmissions[way] += 1,
                Count::OutOfOrder => truth.out_of_order[way] += 1,
                Count::DuplicateAck => truth.duplicate_acks[way] += 1,
                Count::ZeroWindow => truth.zero_windows[way] += 1,
            }
            match (way, step.flags & (SYN | ACK)) {
                (1, _) => truth.server_rtt_ns = Some(server),
                (_, ACK) => truth.client_rtt_ns = Some(client),
                _ => {}
            }
        }
        truth
    }
}

/// The truth about flows with messages.
#[derive(Serialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct ApplicationTruth {
    /// By field and value of a fact, as in flow records: the flows that have it.
    pub facts: BTreeMap<&'static str, BTreeMap<String, u64>>,
    /// Each flow.
    pub flows: Vec<ExchangeTruth>,
}

impl ApplicationTruth {
    fn add(&mut self, flow: ExchangeTruth) {
        for (field, value) in &flow.facts {
            *self.facts.entry(field).or_default().entry(value.clone()).or_default() += 1;
        }
        self.flows.push(flow);
    }
}

/// The truth about one flow with messages.
#[derive(Serialize, Clone, Debug, PartialEq, Eq)]
pub struct ExchangeTruth {
    /// Address of the client.
    pub client: IpAddr,
    /// Address of the server.
    pub server: IpAddr,
    /// Port of the client.
    pub client_port: u16,
    /// Port of the server.
    pub server_port: u16,
    /// IP protocol.
    pub protocol: u8,
    /// Field and value of each fact, in order of the packets that complete their messages. Values of a list are
    /// distinct; of other fields it is the first.
    pub facts: Vec<(&'static str, String)>,
    /// Of a TCP connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp: Option<TcpTruth>,
}

/// The truth about the performance of a TCP connection. Index 0 of a pair is the client's direction.
#[derive(Serialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpTruth {
    /// From the observer to the client and back, nanoseconds, once a packet has shown it.
    pub client_rtt_ns: Option<u64>,
    /// From the observer to the server and back, nanoseconds, once a packet has shown it.
    pub server_rtt_ns: Option<u64>,
    /// Segments that were sent again, and are not in order at the observer.
    pub retransmissions: [u32; 2],
    /// Segments that came behind the next one.
    pub out_of_order: [u32; 2],
    /// Acknowledgments that repeat the one before.
    pub duplicate_acks: [u32; 2],
    /// Segments that announce a window of zero.
    pub zero_windows: [u32; 2],
    /// Octets of data.
    pub octets: [u64; 2],
}
