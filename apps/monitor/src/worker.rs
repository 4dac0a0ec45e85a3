//! A worker: one shard's tables, and the analyses over them.

use std::sync::Arc;

use ringtap_flow::{EndReason, FactCounts, FlowRecord, FlowTable, Observer, RecordSink};
use ringtap_stage::{Attachments, Burst, Mark, Outbox, Shard, Worker};
use ringtap_wire::{Flags, PacketRecord, Tunnels};

use crate::analyses::conversations::Conversations;
use crate::analyses::volumes::Volumes;
use crate::analyses::{Found, Message, Parts};
use crate::digest::RecordDigest;
use crate::{Partial, Setup, Shortage};

/// Entries looked at in one go at a mark; as many records may leave at once.
const SWEEP: usize = 512;

/// Room for what is left of a burst.
const BURST: usize = 1024;

/// Intervals that a flow's stamp tells apart.
const STAMPS: u64 = u16::MAX as u64;

/// Everything a worker found, handed over at the end.
pub struct Findings {
    pub(crate) volumes: Volumes,
    pub(crate) conversations: Option<([u64; 2], bool)>,
    pub(crate) flows: FlowCounts,
    pub(crate) found: Found,
    /// Live flows at the end.
    pub(crate) active: u64,
}

/// How things stand with a worker at a tick.
pub struct Standing {
    /// Live flows, after everything expired has left.
    pub(crate) active: u64,
    /// Volumes of intervals that are over, if there is an output for intervals.
    pub(crate) over: Option<Box<Volumes>>,
    /// What the analyses hand over.
    pub(crate) found: Found,
    /// What the worker had no room for, since the beginning.
    pub(crate) shortage: Shortage,
}

/// Flow records in numbers.
#[derive(Default)]
pub(crate) struct FlowCounts {
    /// By [`EndReason`], in order.
    pub(crate) ended: [u64; 5],
    pub(crate) facts: FactCounts,
    pub(crate) digest: Option<RecordDigest>,
}

/// The place of a reason in [`FlowCounts::ended`].
fn place(reason: EndReason) -> usize {
    reason as usize - EndReason::Idle as usize
}

impl FlowCounts {
    pub(crate) fn merge(&mut self, other: &Self) {
        for (own, more) in self.ended.iter_mut().zip(other.ended) {
            *own += more;
        }
        self.facts.add(&other.facts);
        if let (Some(own), Some(more)) = (&mut self.digest, &other.digest) {
            own.merge(more);
        }
    }
}

/// Owner of one shard of address pairs.
pub struct MonitorWorker {
    flow_table: Option<FlowTable>,
    tally: Tally,
    tunnels: Tunnels,
    tells_intervals: bool,
    /// What is left of a burst without its tunnels.
    metered: Burst<PacketRecord>,
    /// Live flows when the end was reached.
    ending: Option<u64>,
    /// Time at the last mark.
    time_ns: u64,
}

/// What hears of the flow table's events.
struct Tally {
    volumes: Volumes,
    conversations: Option<Conversations>,
    analyses: Parts,
    flows: FlowCounts,
    records: Option<Box<dyn RecordSink>>,
    /// Whether no flow can see two intervals with the same stamp. If intervals are so short that
    /// one can, every packet is noted.
    stamps_tell: bool,
}

impl MonitorWorker {
    pub(crate) fn new(
        setup: &Setup,
        shard: Shard,
        records: Option<Box<dyn RecordSink>>,
        tells_intervals: bool,
    ) -> Self {
        let options = &setup.options;
        let on = options.analyses;
        let capacity = setup.capacity_of(shard);
        let key = setup.hash_key;
        Self {
            flow_table: on.need_flows().then(|| {
                let paths = Arc::clone(&setup.paths);
                let fact_room = setup.part(options.fact_bytes, shard);
                FlowTable::new(capacity, &options.metering, key, paths).with_fact_room(fact_room)
            }),
            tally: Tally {
                volumes: Volumes::new(setup.volumes_interval_ns(), options.interval_units as usize),
                conversations: on.volumes.then(|| Conversations::new(key, capacity)),
                analyses: Parts::new(setup, shard),
                flows: FlowCounts {
                    digest: (options.digest && on.flows).then(RecordDigest::default),
                    ..FlowCounts::default()
                },
                records: records.filter(|_| on.flows),
                stamps_tell: options.interval_ns.is_none_or(|interval_ns| {
                    interval_ns.saturating_mul(STAMPS - 1)
                        > options.metering.timeouts.longest_idle_ns()
                }),
            },
            tunnels: setup.tunnels,
            tells_intervals: tells_intervals && on.volumes,
            metered: Burst::with_capacity(BURST),
            ending: None,
            time_ns: 0,
        }
    }

    /// For a burst with tunnels: notes the conversations of its outermost packets, in their order, and picks the packets
    /// that make flows where those are of what tunnels carry.
    #[cold]
    fn sift(&mut self, burst: &[PacketRecord], attachments: &Attachments) {
        let outermost = |packet: &&PacketRecord| !packet.flags.contains(Flags::INNER);
        burst.iter().filter(outermost).for_each(|packet| self.tally.note(packet));
        self.metered.clear();
        let (metered, kept) = self.metered.parts_mut();
        let mut cursor = attachments.cursor();
        for (at, packet) in burst.iter().enumerate() {
            if packet.flags.contains(Flags::TUNNEL) {
                cursor.skip_to(at + 1);
            } else {
                metered.push(*packet);
                cursor.copy(at, metered.len() - 1, kept);
            }
        }
    }

    /// The intervals that are over at this time.
    fn over(&mut self, time_ns: u64) -> Option<Box<Volumes>> {
        self.tells_intervals.then(|| Box::new(self.tally.volumes.take_before(time_ns)))
    }

    /// What there was no room for so far.
    fn shortage(&self) -> Shortage {
        let Tally { volumes, conversations, flows, analyses, .. } = &self.tally;
        Shortage {
            flows_ended_early: flows.ended[place(EndReason::LackOfResources)],
            attempts_ignored: analyses.ignored(),
            conversations_estimated: conversations.as_ref().is_some_and(|own| !own.counts().1),
            packets_in_further_intervals: volumes.further(),
        }
    }

    /// Hands over everything; the worker is empty afterwards.
    fn end(&mut self, active: u64) -> Partial {
        let tally = &mut self.tally;
        if let Some(mut records) = tally.records.take() {
            records.finish();
        }
        let mut volumes = std::mem::replace(&mut tally.volumes, Volumes::new(None, 0));
        volumes.end();
        if let Some(table) = &self.flow_table {
            tally.flows.facts = *table.fact_counts();
        }
        Partial::End(Box::new(Findings {
            volumes,
            conversations: tally.conversations.take().map(|c| c.counts()),
            flows: std::mem::take(&mut tally.flows),
            found: tally.analyses.end(),
            active,
        }))
    }
}

impl Tally {
    /// Notes the conversation of a packet, if it belongs to one.
    fn note(&mut self, packet: &PacketRecord) {
        if let Some(conversations) = &mut self.conversations
            && packet.flags.contains(Flags::PORTS)
            && let Some(protocol) = Conversations::protocol(packet)
        {
            conversations.note(packet, protocol, self.volumes.interval_of(packet.ts_ns));
        }
    }
}

impl Worker for MonitorWorker {
    type Item = PacketRecord;
    type Message = Message;
    type Partial = Partial;

    fn on_burst(
        &mut self,
        burst: &[PacketRecord],
        attachments: &Attachments,
        outbox: &mut impl Outbox<Message>,
    ) {
        self.tally.volumes.on_burst(burst);
        let flags = burst.iter().fold(0, |flags, packet| flags | packet.flags.0);
        let tunnelled = flags & (Flags::TUNNEL.0 | Flags::INNER.0) != 0;
        let (mut metered, mut facts) = (burst, attachments);
        if tunnelled {
            self.sift(burst, attachments);
            if self.tunnels == Tunnels::Inner {
                (metered, facts) = (&self.metered, self.metered.attachments());
            }
        }
        self.tally.analyses.on_packets(metered, outbox);
        if let Some(table) = &mut self.flow_table {
            let heard = &mut Heard { tally: &mut self.tally, noted: tunnelled };
            table.burst(metered, facts, heard);
        }
        let Tally { volumes, conversations, .. } = &mut self.tally;
        if let Some(conversations) = conversations {
            conversations.settle(|interval, protocol, stands_for| {
                volumes.count_conversations(interval, protocol, stands_for);
            });
        }
    }

    fn on_mark(&mut self, mark: &Mark, _: &mut impl Outbox<Message>) -> Option<Partial> {
        let mut active = 0;
        // A clock was set back. Flows that live on would mix times before and after, and none would expire until the time
        // before has come again.
        let set_back = matches!(mark, Mark::Tick { time_ns, .. } if *time_ns < self.time_ns);
        if let Some(table) = &mut self.flow_table {
            let heard = &mut Heard { tally: &mut self.tally, noted: false };
            if set_back && !table.drain(SWEEP, heard) {
                return None;
            }
            if self.ending.is_none() && !table.sweep(mark.time_ns(), SWEEP, heard) {
                return None;
            }
            active = table.len() as u64;
            if matches!(mark, Mark::End { .. }) {
                if self.ending.is_none()
                    && let Some(records) = &mut heard.tally.records
                {
                    records.ending();
                }
                active = *self.ending.get_or_insert(active);
                if !table.drain(SWEEP, heard) {
                    return None;
                }
            }
        }
        self.time_ns = mark.time_ns();
        Some(match mark {
            Mark::Tick { time_ns, .. } => {
                if let Some(records) = &mut self.tally.records {
                    records.mark();
                }
                let over = self.over(*time_ns);
                let found = self.tally.analyses.on_tick(*time_ns);
                Partial::Tick(Standing { active, over, found, shortage: self.shortage() })
            }
            Mark::End { .. } => self.end(active),
        })
    }
}

struct Heard<'a> {
    tally: &'a mut Tally,
    /// The conversations of these packets were noted before.
    noted: bool,
}

impl Observer for Heard<'_> {
    #[inline(always)]
    fn counted(&mut self, packet: &PacketRecord, stamp: &mut u16) {
        let Some(conversations) = &mut self.tally.conversations else { return };
        if self.noted {
            // In which interval, the stamp does not know.
            *stamp = 0;
            return;
        }
        // The stamp tells in which interval the flow was noted last, so that it is noted once.
        let interval = self.tally.volumes.interval_of(packet.ts_ns);
        let current = (interval % STAMPS) as u16 + 1;
        if *stamp == current && self.tally.stamps_tell {
            return;
        }
        *stamp = 0;
        if packet.flags.contains(Flags::PORTS)
            && let Some(protocol) = Conversations::protocol(packet)
        {
            *stamp = current;
            conversations.note(packet, protocol, interval);
        }
    }

    #[inline]
    fn ended(&mut self, record: &FlowRecord) {
        let tally = &mut *self.tally;
        tally.flows.ended[place(record.end_reason)] += 1;
        tally.analyses.on_record(record);
        if let Some(digest) = &mut tally.flows.digest {
            digest.add(record);
        }
        if let Some(records) = &mut tally.records {
            records.take(record);
        }
    }
}
