//! The generator: schedules flows and actors, and makes their frames.
//!
//! Frames of exchanges have times of their own, and are merged with the others by time.
//!
//! Flows have the lower numbers in the timing wheel, actors the higher ones. Each has a planned number of frames and a
//! planned last tick; after each frame it is scheduled so that its remaining frames fill its remaining time.
//!
//! Invariant: [`Generator::truth`] is correct for the frames returned so far, after any frame.

use crate::actor::{Actor, Cast};
use crate::exchanges::Exchanges;
use crate::flow::{Conversation, Flow, Population};
use crate::frame::{Body, FrameBuffer, Packet, Written};
use crate::keyed::mix;
use crate::profile::{Profile, ProfileError};
use crate::records::{FlowRules, RecordSums, RecordTruth, Records};
use crate::sizes::ZipfSizes;
use crate::truth::{Counts, Members, Truth};
use crate::wheel::Wheel;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// A flow with few frames takes about this fraction of the run from its first to its last.
const TURNS_A_RUN: u32 = 64;

/// A generator of traffic.
pub struct Generator {
    profile: Profile,
    seed: u64,
    population: Population,
    flows: Vec<Flow>,
    actors: Vec<Actor>,
    wheel: Wheel,
    random: Xoshiro256PlusPlus,
    frame: FrameBuffer,
    clock: Pace,
    /// The flow that sends the next frame without being scheduled.
    going_on: Option<u32>,
    counts: Counts,
    records: Option<Records>,
    exchanges: Option<Exchanges>,
    /// Frames of flows and actors still to send, and the time of the next; used if there are exchanges.
    paced_left: u64,
    paced_ns: Option<u64>,
}

/// One frame, borrowed until the next call.
#[derive(Clone, Copy, Debug)]
pub struct GeneratedFrame<'a> {
    /// Nanoseconds since 1970; never less than that of the previous frame.
    pub ts_ns: u64,
    /// Bytes on the wire, without the frame check sequence.
    pub original_len: u32,
    /// Ethernet from the destination address on, truncated at the profile's snaplen.
    pub data: &'a [u8],
}

impl Generator {
    /// Allocates all memory: 43 bytes for each flow, about 100 for each scanner.
    pub fn new(profile: &Profile, seed: u64) -> Result<Self, ProfileError> {
        profile.validate()?;
        let no_memory = |_| ProfileError::Memory(profile.flows);
        let mut population = Population::new(profile, seed);
        let actors = cast(profile);
        let scripted: u64 = actors.iter().map(|actor| u64::from(actor.left)).sum();
        let exchanges = Exchanges::new(profile, seed);
        let exchanged = exchanges.as_ref().map_or(0, Exchanges::planned);
        let background = profile.packets.saturating_sub(scripted).saturating_sub(exchanged);

        let mut flows = Vec::new();
        flows.try_reserve_exact(profile.flows.min(background) as usize).map_err(no_memory)?;
        let mut least_total = 0;
        for id in 0..profile.flows as u32 {
            if least_total >= background {
                break;
            }
            let least = population.kind(id).least();
            least_total += u64::from(least);
            flows.push(Flow { left: least, ..Flow::default() });
        }
        let rest = background.saturating_sub(least_total);
        let sizes = ZipfSizes::new(rest, flows.len() as u64, profile.zipf);
        for (flow, size) in flows.iter_mut().zip(sizes) {
            flow.left += size as u32;
        }
        population.balance(&flows);

        let members = flows.len() + actors.len();
        let wheel = Wheel::new(members, profile.packets).map_err(no_memory)?;
        let paced_left = flows.iter().map(|flow| u64::from(flow.left)).sum::<u64>() + scripted;
        let paced = if exchanges.is_some() { paced_left.max(1) } else { profile.packets };
        let mut generator = Self {
            clock: Pace::new(profile, paced),
            profile: profile.clone(),
            seed,
            population,
            flows,
            actors,
            wheel,
            random: Xoshiro256PlusPlus::seed_from_u64(mix(seed ^ 2)),
            frame: FrameBuffer::new(),
            going_on: None,
            counts: Counts::default(),
            records: None,
            exchanges,
            paced_left,
            paced_ns: None,
        };
        generator.begin();
        Ok(generator)
    }

    /// Plans the first and last tick of each flow and actor.
    fn begin(&mut self) {
        let (ticks, steady) = (self.wheel.ticks(), self.profile.steady);
        let members = (self.flows.len() + self.actors.len()) as u32;
        for id in 0..members {
            let steady = steady && (id as usize) < self.flows.len();
            let (left, end) = match self.flows.get_mut(id as usize) {
                Some(flow) => (flow.left, &mut flow.end),
                None => {
                    let actor = &mut self.actors[id as usize - self.flows.len()];
                    (actor.left, &mut actor.end)
                }
            };
            let turn = ticks / TURNS_A_RUN;
            let start = if steady {
                // The order of the last frames is as random as that of the first ones.
                *end = ticks - 1 - scale(self.random.next_u64(), turn);
                scale(self.random.next_u64(), turn)
            } else {
                let span = turn.saturating_mul(left).min(ticks - turn);
                let start = scale(self.random.next_u64(), ticks - span);
                *end = start + span;
                start
            };
            if left > 0 {
                self.wheel.insert(id, start);
            }
        }
    }

    /// The next frame; `None` when all packets of the profile were sent.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "an iterator cannot lend its buffer")]
    pub fn next(&mut self) -> Option<GeneratedFrame<'_>> {
        if self.counts.packets == self.profile.packets {
            return None;
        }
        if self.exchanges.is_some() && self.exchange_is_next() {
            return self.exchange_sends();
        }
        let id = match self.going_on.take() {
            Some(id) => id,
            None => self.wheel.pop(|soon| fetch(&self.flows, soon))?,
        };
        let (packet, written) = if (id as usize) < self.flows.len() {
            self.flow_sends(id)
        } else {
            self.actor_acts(id)?
        };
        let captured = written.frame.min(self.profile.snaplen);
        self.counts.add(&packet, written, captured);
        let ts_ns = match self.paced_ns.take() {
            Some(ts_ns) => ts_ns,
            None => self.clock.advance(self.random.next_u64()),
        };
        if let Some(records) = &mut self.records {
            records.add(&packet, written.ip, ts_ns);
        }
        let data = &self.frame.bytes()[..captured as usize];
        Some(GeneratedFrame { ts_ns, original_len: written.frame, data })
    }

    /// Returns true if an exchange sends the next frame. If a flow or an actor does, its time is set.
    fn exchange_is_next(&mut self) -> bool {
        if self.paced_ns.is_none() && self.paced_left > 0 {
            self.paced_left -= 1;
            self.paced_ns = Some(self.clock.advance(self.random.next_u64()));
        }
        let Some(exchange_ns) = self.exchanges.as_mut().and_then(Exchanges::next_ns) else {
            return false;
        };
        self.paced_ns.is_none_or(|paced_ns| exchange_ns < paced_ns)
    }

    fn exchange_sends(&mut self) -> Option<GeneratedFrame<'_>> {
        let exchanges = self.exchanges.as_mut()?;
        let (ts_ns, packet, written) = exchanges.send()?;
        let captured = written.frame.min(self.profile.snaplen);
        self.counts.add(&packet, written, captured);
        if let Some(records) = &mut self.records {
            records.add(&packet, written.ip, ts_ns);
        }
        let data = &exchanges.frame().bytes()[..captured as usize];
        Some(GeneratedFrame { ts_ns, original_len: written.frame, data })
    }

    #[inline]
    fn flow_sends(&mut self, id: u32) -> (Packet, Written) {
        let flow = &mut self.flows[id as usize];
        let talk = self.population.conversation(id);
        let (packet, way) = self.population.packet(flow, &talk, self.random.next_u64());
        let written = self.frame.write(&packet);
        flow.packets[way] += 1;
        flow.octets[way] += u64::from(written.ip);
        flow.left -= 1;
        if flow.left > 0 {
            if flow.goes_on(talk.kind) {
                self.going_on = Some(id);
            } else {
                let (left, end) = (flow.left, flow.end);
                self.wait(id, left, end);
            }
        }
        (packet, written)
    }

    #[inline]
    fn actor_acts(&mut self, id: u32) -> Option<(Packet, Written)> {
        let actor = &mut self.actors[id as usize - self.flows.len()];
        let step = actor.step()?;
        let packet = actor.packet(step);
        let written = self.frame.write(&packet);
        let (left, end) = (actor.left, actor.end);
        if left > 0 {
            self.wait(id, left, end);
        }
        Some((packet, written))
    }

    /// Waits between 0.5 and 1.5 times the mean of the remaining time per frame.
    #[inline]
    fn wait(&mut self, id: u32, left: u32, end: u32) {
        let now = self.wheel.now();
        let rest = u64::from(end.saturating_sub(now));
        let factor = 0x8000 + (self.random.next_u64() >> 48);
        let gap = rest * factor / (u64::from(left) << 16);
        self.wheel.insert(id, now + (gap as u32).min(rest as u32));
    }

    /// The truth about the frames returned so far. Takes time and memory proportional to the flows and to the frames of
    /// scans and floods.
    pub fn truth(&self) -> Truth {
        let flows = (0u32..)
            .zip(&self.flows)
            .filter(|(_, flow)| flow.packets != [0; 2])
            .map(|(id, flow)| (self.population.conversation(id), *flow));
        let waiting = self.going_on.map(|id| self.population.conversation(id));
        let open = waiting.filter(|talk: &Conversation| talk.kind.is_tcp());
        let members = Members { flows, actors: &self.actors, exchanges: self.exchanges.as_ref() };
        let mut truth = Truth::new(&self.profile, self.seed, &self.counts, members, open);
        let sums = |meter: &Records| RecordSums::of(meter.rules(), &meter.all());
        truth.records = self.records.as_ref().map(sums);
        truth
    }

    /// Starts metering flows with the next frame; called before the first frame, it covers all. Takes time and up to
    /// 500 bytes a flow.
    pub fn meter(&mut self, rules: FlowRules) {
        self.records = Some(Records::new(rules));
    }

    /// The flow records of the metered frames, as if the run ended here; sorted. Empty without [`Generator::meter`].
    pub fn records(&self) -> Vec<RecordTruth> {
        self.records.as_ref().map(Records::all).unwrap_or_default()
    }

    /// The profile.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }
}

/// The actors of a profile, with different addresses.
fn cast(profile: &Profile) -> Vec<Actor> {
    let mut actors = Vec::new();
    for spec in &profile.scans {
        for _ in 0..spec.sources_in(profile.packets) {
            let source = actors.len() as u32;
            let first_target = mix(source.into()) as u32;
            actors.push(Actor::new(Cast::Scan { spec: spec.clone(), source, first_target }));
        }
    }
    let mut first_source = 0;
    for (victim, spec) in (0u32..).zip(&profile.floods) {
        let frames = spec.frames_in(profile.packets) as u32;
        actors.push(Actor::new(Cast::Flood { spec: spec.clone(), victim, first_source, frames }));
        first_source += spec.sources;
    }
    actors
}

/// Reads from flows that are scheduled soon. They are scattered in memory; read together, their cache misses overlap.
fn fetch(flows: &[Flow], ids: &[u32]) {
    let left = ids.iter().filter_map(|&id| flows.get(id as usize)).map(|flow| flow.left);
    std::hint::black_box(left.fold(0, |all, left| all | left));
}

/// A random number below `below`, from 64 random bits.
fn scale(random: u64, below: u32) -> u32 {
    (((random >> 32) * u64::from(below)) >> 32) as u32
}

/// Packet times: frame i of n is in the i-th of n equal parts of the duration.
struct Pace {
    base_ns: u64,
    step_ns: u64,
    /// The rest of the division of the duration is spread as in Bresenham's algorithm.
    remainder: u64,
    carried: u64,
    packets: u64,
}

impl Pace {
    fn new(profile: &Profile, packets: u64) -> Self {
        Self {
            base_ns: profile.start_ns,
            step_ns: profile.run_ns() / packets,
            remainder: profile.run_ns() % packets,
            carried: 0,
            packets,
        }
    }

    #[inline]
    fn advance(&mut self, random: u64) -> u64 {
        let ts_ns = self.base_ns + ((u128::from(random) * u128::from(self.step_ns)) >> 64) as u64;
        self.base_ns += self.step_ns;
        self.carried += self.remainder;
        if self.carried >= self.packets {
            self.carried -= self.packets;
            self.base_ns += 1;
        }
        ts_ns
    }
}

impl Counts {
    #[inline]
    fn add(&mut self, packet: &Packet, written: Written, captured: u32) {
        self.packets += 1;
        self.octets.wire += u64::from(written.frame);
        self.octets.captured += u64::from(captured);
        self.octets.ip += u64::from(written.ip);
        self.truncated += u64::from(captured < written.frame);
        self.vlan += u64::from(packet.vlan != 0);
        let ipv6 = packet.source.ipv6;
        match packet.body {
            Body::Arp { .. } => {
                self.non_ip += 1;
                return;
            }
            Body::Tcp { .. } => self.protocols.tcp += 1,
            Body::Udp => self.protocols.udp += 1,
            Body::FirstFragment { .. } | Body::LaterFragment { .. } => {
                self.protocols.udp += 1;
                self.fragments += 1;
            }
            Body::Echo { .. } if ipv6 => self.protocols.icmpv6 += 1,
            Body::Echo { .. } => self.protocols.icmp += 1,
        }
        self.ipv6 += u64::from(ipv6);
        self.ipv4 += u64::from(!ipv6);
    }
}
