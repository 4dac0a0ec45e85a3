//! A worker: one shard's tables, and the analyses over them.

use std::sync::Arc;

use ringtap_enrich::Stage;
use ringtap_flow::{
    EndReason, Event, FlowKey, FlowRecord, FlowTable, Observer, OpenFlow, Part, Response, Sinks,
    Slice,
};
use ringtap_stage::{Attachments, Burst, Mark, Outbox, Shard, Worker};
use ringtap_wire::{Flags, HashKey, PacketRecord, Tunnels};

use crate::analyses::Parts;
use crate::analyses::conversations::Conversations;
use crate::analyses::custom::Wants;
use crate::analyses::volumes::Volumes;
use crate::counts::{FlowCounts, place};
use crate::digest::RecordDigest;
use crate::exchanges::Exchanges;
use crate::messages::Messages;
use crate::options::Setup;
use crate::partial::{Findings, Partial, TickSummary};
use crate::reload::Reloads;
use crate::resume::Resumed;
use crate::series::Series;
use crate::state::{Metered, Saver, WorkerRows, WorkerState};
use crate::totals::Totals;

/// Entries checked in one step at a mark; as many records may leave at once.
const SWEEP: usize = 512;

/// Room for the rest of a burst.
const BURST: usize = 1024;

/// Intervals that a flow's stamp distinguishes.
const STAMPS: u64 = u16::MAX as u64;

/// Owner of one shard of address pairs.
pub struct MonitorWorker {
    flow_table: Option<FlowTable>,
    events: FlowEvents,
    tunnels: Tunnels,
    reports_intervals: bool,
    /// The packets of a burst that make flows.
    metered: Burst<PacketRecord>,
    /// If flows that no observer wants need not be metered.
    wanted: Option<Wanted>,
    /// Present at the end: number of flows ended so far that were live then.
    ending: Option<u64>,
    /// Time at the last mark.
    time_ns: u64,
    /// Whether the sinks have a time.
    begun: bool,
    /// The state, once it is saved at the end.
    state: Option<WorkerState>,
    shard: Shard,
    reloads: Arc<Reloads>,
    /// The number of the latest settings that were taken up.
    reloaded: u64,
}

/// The packets of a burst whose flows any observer wants.
struct Wanted {
    by: Wants,
    packets: Burst<PacketRecord>,
}

impl Wanted {
    fn new(by: &Wants) -> Self {
        Self { by: Arc::clone(by), packets: Burst::with_capacity(BURST) }
    }

    fn of(&mut self, burst: &[PacketRecord], attachments: &Attachments) -> &Burst<PacketRecord> {
        self.packets.clear();
        let (packets, kept) = self.packets.parts_mut();
        let mut cursor = attachments.cursor();
        for (at, packet) in burst.iter().enumerate() {
            if (self.by)(&FlowKey::of(packet)) {
                cursor.copy_range(at..at + 1, packets.len(), kept);
                packets.push(*packet);
            }
        }
        &self.packets
    }
}

/// Handles the flow table's events.
struct FlowEvents {
    volumes: Volumes,
    /// For the charts of the report, if it has any.
    series: Option<Series>,
    conversations: Option<Conversations>,
    analyses: Parts,
    /// What is saved, if the run has a state.
    saver: Option<Box<Saver>>,
    flows: FlowCounts,
    /// What records and events pass through before sinks and the digest get them.
    stage: Option<Box<Stage>>,
    sinks: Sinks,
    /// Makes events of attachments; `None` if no analysis and no output needs them.
    messages: Option<Messages>,
    /// Joins messages; `None` if no output needs it.
    exchanges: Option<Exchanges>,
    /// Whether sinks get parts of flows.
    cuts: bool,
    /// Whether a sink gets slices of flows.
    page: bool,
    /// Whether no flow can have two intervals with the same stamp. If intervals are so short that
    /// one can, every packet is noted.
    stamps_valid: bool,
}

impl MonitorWorker {
    pub(crate) fn new(
        setup: &Setup,
        shard: Shard,
        mut sinks: Sinks,
        reports_intervals: bool,
        reloads: Arc<Reloads>,
    ) -> Self {
        let options = &setup.options;
        let on = options.analyses;
        let capacity = setup.context.capacity_of(shard);
        let key = setup.context.hash_key;
        sinks.records = sinks.records.filter(|_| on.flows);
        // Only they use applications.
        let is_labelled = on.need_labels()
            || on.flows && sinks.records.is_some()
            || options.observers.take_records();
        let names = is_labelled.then_some(&options.names);
        let stamps_valid = options.interval_ns.is_none_or(|interval_ns| {
            interval_ns.saturating_mul(STAMPS - 1) > options.metering.timeouts.longest_idle_ns()
        });
        let wants = options.observers.wants.as_ref();
        Self {
            flow_table: on.need_flows().then(|| {
                let paths = Arc::clone(&setup.paths);
                let fact_room = setup.context.part(options.fact_bytes, shard);
                let table = FlowTable::new(capacity, &options.metering, key, paths);
                let table = table.with_fact_room(fact_room).with_tcp(on.tcp);
                let table = table.with_slices(options.slice_ns());
                let lists = setup.context.part(options.statistics_bytes, shard);
                let table = table.with_statistics(
                    options.statistics_packets,
                    options.statistics_octets,
                    lists,
                );
                match names {
                    Some(names) => table.with_names(Arc::clone(names)),
                    None => table,
                }
            }),
            events: FlowEvents {
                volumes: Volumes::new(setup.volumes_interval_ns(), options.interval_units as usize),
                series: options.charts.then(Series::default),
                conversations: on.volumes.then(|| {
                    let metering = &options.metering;
                    let apart = metering.uniflow || metering.vlan_in_key || !stamps_valid;
                    // The set may have those of live flows, too.
                    Conversations::new(key, capacity + capacity / 3, apart)
                }),
                analyses: Parts::new(on, &setup.context, shard).observe(
                    &options.observers,
                    &setup.context,
                    shard,
                ),
                saver: Saver::new(setup, shard).map(Box::new),
                flows: FlowCounts {
                    digest: options.needs_record_digest().then(RecordDigest::default),
                    ..FlowCounts::default()
                },
                stage: options.enrichment.stage(),
                messages: (sinks.events.is_some()
                    || on.need_events()
                    || options.observers.take_events())
                .then(|| Messages::new(&setup.paths)),
                exchanges: sinks
                    .events
                    .is_some()
                    .then(|| Exchanges::new(setup.context.part(options.exchange_bytes(), shard))),
                sinks,
                cuts: options.metering.cut_ns.is_some(),
                page: options.page,
                stamps_valid,
            },
            tunnels: setup.tunnels,
            reports_intervals: reports_intervals && on.volumes,
            metered: Burst::with_capacity(BURST),
            wanted: wants.map(|by| Wanted::new(by)),
            ending: None,
            time_ns: 0,
            begun: false,
            state: None,
            shard,
            reloads,
            reloaded: 0,
        }
    }

    /// Takes up changed settings.
    #[cold]
    fn adopt(&mut self, setup: &Setup) {
        let Self { flow_table, events, shard, .. } = self;
        events.analyses.adopt(&setup.context, *shard);
        events.stage = setup.options.enrichment.stage();
        if let Some(table) = flow_table {
            table.set_names(&setup.options.names);
        }
    }

    /// Takes up the open flows of the run before. Those that cannot be continued end at once; their parts, if flows were
    /// cut, have been reported.
    pub(crate) fn resume(&mut self, resumed: &Resumed, shard: Shard, key: &HashKey) {
        let Self { flow_table: Some(table), events, time_ns, .. } = self else { return };
        let pair = |flow: &OpenFlow| key.pair(&flow.record.key.src, &flow.record.key.dst);
        // What cannot be read again is in none of both counts.
        let _ = resumed.of_worker(shard.index, pair, |earlier| {
            *time_ns = earlier.time_ns;
            if earlier.is_alike && table.restore(&earlier.flow) {
                events.flows.resumed += 1;
                return;
            }
            events.flows.not_continued += 1;
            let OpenFlow { mut record, .. } = earlier.flow;
            if record.part.is_some() {
                return;
            }
            record.end_reason = EndReason::Forced;
            let mut observer =
                FlowObserver { events: &mut *events, noted: true, keep_ended: false };
            if observer.events.cuts {
                let part = Part { number: 0, flow_first_ns: record.first_ns };
                observer.part(&FlowRecord { part: Some(part), ..record.clone() });
            }
            observer.ended(&record, 0);
        });
    }

    /// Puts the conversations of all live flows into the set, and from now on all others.
    #[cold]
    fn keep_all(&mut self) {
        let Some(mut conversations) = self.events.conversations.take() else { return };
        conversations.keep_all(|live| {
            if let Some(table) = &self.flow_table {
                table.each_live(|key, stamp, last_ns| {
                    if stamp != 0 {
                        live(key, self.events.volumes.interval_of(last_ns));
                    }
                });
            }
        });
        self.events.conversations = Some(conversations);
    }

    /// For a burst with tunnels: notes the conversations of its outermost packets, in order, and
    /// selects the packets that make flows.
    #[cold]
    fn sift(&mut self, burst: &[PacketRecord], attachments: &Attachments) {
        let outermost = |packet: &&PacketRecord| !packet.flags.contains(Flags::INNER);
        for packet in burst.iter().filter(outermost) {
            if packet.flags.contains(Flags::PORTS) {
                let interval = self.events.volumes.interval_of(packet.ts_ns);
                self.events.count_conversation(packet, interval, false);
            }
        }
        self.metered.clear();
        let (metered, kept) = self.metered.parts_mut();
        let (mut cursor, mut first) = (attachments.cursor(), 0);
        for part in burst.split_inclusive(|packet| packet.flags.contains(Flags::TUNNEL)) {
            let tunnelled = part.last().is_some_and(|last| last.flags.contains(Flags::TUNNEL));
            let own = &part[..part.len() - usize::from(tunnelled)];
            cursor.copy_range(first..first + own.len(), metered.len(), kept);
            metered.extend_from_slice(own);
            first += part.len();
        }
    }

    /// The intervals that are finished at this time.
    fn over(&mut self, time_ns: u64) -> Option<Box<Volumes>> {
        self.reports_intervals.then(|| Box::new(self.events.volumes.take_before(time_ns)))
    }

    /// Totals so far.
    fn totals(&self) -> Totals {
        let FlowEvents { volumes, conversations, flows, analyses, .. } = &self.events;
        let mut totals = Totals {
            flows_ended: flows.ended,
            flow_parts: flows.parts,
            conversations_estimated: conversations.as_ref().is_some_and(|own| !own.counts().1),
            packets_in_further_intervals: volumes.further(),
            ..Totals::default()
        };
        analyses.add_totals(&mut totals);
        totals
    }

    /// Saves the state at the end. If the run has no parts, the volumes are the merger's.
    #[cold]
    fn save(&mut self) {
        let FlowEvents { saver, volumes, analyses, flows, .. } = &mut self.events;
        let Some(saver) = saver else { return };
        volumes.end();
        let volumes = saver.in_parts().then_some(&*volumes);
        let metered = Metered { table: self.flow_table.as_ref(), counts: flows, volumes };
        self.state = Some(saver.end(&metered, analyses));
    }

    /// Gives the sinks the time of the first packet.
    #[cold]
    fn begin(&mut self, burst: &[PacketRecord]) {
        if let Some(first) = burst.iter().find(|packet| packet.ts_ns > 0) {
            self.begun = true;
            self.events.sinks.time(first.ts_ns);
        }
    }

    /// What a mark hands over of the volumes and of the state.
    fn hand_over(&mut self, time_ns: u64) -> (Option<Box<Volumes>>, Option<WorkerRows>) {
        let FlowEvents { saver, volumes, analyses, flows, .. } = &mut self.events;
        let Some(saver) = saver.as_mut().filter(|saver| saver.in_parts()) else {
            return (self.over(time_ns), None);
        };
        // Volumes are in the part that hands them over.
        if !saver.ends_part(time_ns) {
            return (None, None);
        }
        let over = Box::new(volumes.take_before(time_ns));
        let metered =
            Metered { table: self.flow_table.as_ref(), counts: flows, volumes: Some(&over) };
        let rows = saver.end_part(&metered, analyses);
        (Some(over), Some(rows))
    }

    /// Hands over everything; the worker is empty afterwards.
    fn end(&mut self, active: u64) -> Partial {
        let events = &mut self.events;
        events.end_exchanges(None);
        events.sinks.finish();
        let mut volumes = std::mem::replace(&mut events.volumes, Volumes::new(None, 0));
        volumes.end();
        // Its memory is free for the analyses' results.
        if let Some(table) = self.flow_table.take() {
            events.flows.facts = *table.fact_counts();
        }
        let exchanges = events.exchanges.take();
        events.flows.exchanges_without_room = exchanges.map_or(0, |all| all.without_room());
        Partial::End(Box::new(Findings {
            volumes,
            series: events.series.take(),
            conversations: events.conversations.take().map(|c| c.counts()),
            flows: std::mem::take(&mut events.flows),
            found: events.analyses.end(),
            active,
            state: self.state.take(),
        }))
    }
}

impl Worker for MonitorWorker {
    type Item = PacketRecord;
    type Message = ();
    type Partial = Partial;

    fn on_burst(
        &mut self,
        burst: &[PacketRecord],
        attachments: &Attachments,
        _: &mut impl Outbox<()>,
    ) {
        if let Some(setup) = self.reloads.since(&mut self.reloaded) {
            self.adopt(&setup);
        }
        if !self.begun {
            self.begin(burst);
        }
        self.events.volumes.on_burst(burst);
        if let Some(series) = &mut self.events.series {
            series.on_burst(burst);
        }
        let flags = burst.iter().fold(0, |flags, packet| flags | packet.flags.0);
        let tunnelled = flags & (Flags::TUNNEL.0 | Flags::INNER.0) != 0;
        let (mut metered, mut facts) = (burst, attachments);
        if tunnelled || self.events.has_full_set() {
            self.keep_all();
        }
        if tunnelled {
            self.sift(burst, attachments);
            if self.tunnels == Tunnels::Inner {
                (metered, facts) = (&self.metered, self.metered.attachments());
            }
        }
        self.events.analyses.on_packets(metered);
        if let Some(since) = self.events.saver.as_mut().and_then(|saver| saver.since()) {
            since.on_packets(metered);
        }
        if let Some(table) = &mut self.flow_table {
            let observer =
                &mut FlowObserver { events: &mut self.events, noted: tunnelled, keep_ended: true };
            match &mut self.wanted {
                Some(wanted) => {
                    let packets = wanted.of(metered, facts);
                    table.burst(packets, packets.attachments(), observer);
                }
                None => table.burst(metered, facts, observer),
            }
        }
        if !facts.is_empty() {
            // The flow table knows the sides of their flows.
            let sides = self.flow_table.as_ref().map_or(&[][..], |table| table.sides());
            self.events.report_messages(metered, facts, sides);
        }
        self.events.settle();
    }

    fn on_mark(&mut self, mark: &Mark, _: &mut impl Outbox<()>) -> Option<Partial> {
        if let Some(setup) = self.reloads.since(&mut self.reloaded) {
            self.adopt(&setup);
        }
        // Events noted by the previous call.
        self.events.settle();
        if self.events.has_full_set() {
            self.keep_all();
        }
        let mut active = 0;
        if matches!(mark, Mark::End { .. }) && self.ending.is_none() {
            self.save();
        }
        let ends = matches!(mark, Mark::End { .. });
        let mut open = self.events.sinks.open.take_if(|_| ends);
        if let Some(table) = &mut self.flow_table {
            let observer =
                &mut FlowObserver { events: &mut self.events, noted: false, keep_ended: !ends };
            if ends {
                if self.ending.is_none() {
                    observer.events.sinks.ending();
                }
                let alive = self.ending.get_or_insert(0);
                let live = match &mut open {
                    None => table.drain(mark.time_ns(), SWEEP, observer),
                    Some(sink) => {
                        sink.time(mark.time_ns());
                        table.keep(mark.time_ns(), SWEEP, observer, &mut |flow| sink.take(&flow))
                    }
                };
                *alive += live;
                active = *alive;
                if open.is_some() {
                    self.events.flows.kept += live;
                    self.events.sinks.open = open;
                }
                if !table.is_empty() {
                    return None;
                }
            } else {
                // A clock was set back. Flows that continue would mix times before and after, and
                // none would expire until the time before is reached again.
                if mark.time_ns() < self.time_ns {
                    table.drain(0, SWEEP, observer);
                    if !table.is_empty() {
                        return None;
                    }
                }
                if !table.sweep(mark.time_ns(), SWEEP, observer) {
                    return None;
                }
                active = table.len() as u64;
            }
        }
        self.events.settle();
        self.time_ns = mark.time_ns();
        Some(match mark {
            Mark::Tick { time_ns, .. } => {
                self.begun = true;
                self.events.end_exchanges(Some(*time_ns));
                self.events.sinks.time(*time_ns);
                self.events.sinks.mark();
                let since = self.events.saver.as_mut().and_then(|saver| saver.since());
                since.into_iter().for_each(|since| since.tick_custom(*time_ns));
                let (over, part) = self.hand_over(*time_ns);
                let found = self.events.analyses.on_tick(*time_ns);
                let totals = self.totals();
                Partial::Tick(Box::new(TickSummary { active, over, found, totals, part }))
            }
            Mark::End { .. } => self.end(active),
        })
    }
}

struct FlowObserver<'a> {
    events: &'a mut FlowEvents,
    /// The conversations of these packets were noted before.
    noted: bool,
    /// Whether to keep the conversations of flows that end: not when the run ends.
    keep_ended: bool,
}

impl FlowEvents {
    /// The stamp of a flow whose conversation was counted in this interval last.
    #[inline(always)]
    fn stamp(interval: u64) -> u16 {
        (interval % STAMPS) as u16 + 1
    }

    /// The interval of a flow's stamp at a packet.
    fn stamped(&self, stamp: u16, packet: &PacketRecord) -> u64 {
        let interval = self.volumes.interval_of(packet.ts_ns);
        let since = (interval % STAMPS + STAMPS - (u64::from(stamp) - 1)) % STAMPS;
        interval.saturating_sub(since)
    }

    /// Counts the conversation of a packet in a new interval; `known`: it was counted in an earlier
    /// one.
    #[inline]
    fn count_conversation(&mut self, packet: &PacketRecord, interval: u64, known: bool) {
        if let (Some(saver), 6 | 17) = (&mut self.saver, packet.protocol) {
            saver.converse(&FlowKey::of(packet), interval);
        }
        if let Some(conversations) = &mut self.conversations
            && let Some(protocol) = conversations.note(packet, interval, known)
        {
            self.volumes.count_conversations(interval, protocol, 1);
        }
    }

    /// Keeps a conversation that was counted last in this interval, and whose flow has ended or moved on. `first_ns` is the
    /// time of the flow's first packet, or 0 if that is unknown.
    fn keep(&mut self, key: &FlowKey, first_ns: u64, interval: u64) {
        if let Some(conversations) = &mut self.conversations {
            conversations.ended(key, first_ns, interval);
        }
    }

    /// A packet arrived in an interval in which its conversation was not counted.
    #[inline]
    fn begin_interval(&mut self, packet: &PacketRecord, stamp: &mut u16, interval: u64) {
        let known = *stamp != 0;
        if packet.flags.contains(Flags::PORTS) {
            *stamp = Self::stamp(interval);
            self.count_conversation(packet, interval, known);
        } else if known {
            // A later fragment: it has no conversation, but time moves on.
            self.keep(&FlowKey::of(packet), 0, self.stamped(*stamp, packet));
            *stamp = 0;
        }
    }

    /// Passes the messages in payloads to the analyses and the output for events.
    #[cold]
    fn report_messages(
        &mut self,
        packets: &[PacketRecord],
        attachments: &Attachments,
        sides: &[(usize, bool)],
    ) {
        let Self { messages, exchanges, analyses, saver, sinks, stage, .. } = self;
        let Some(messages) = messages else { return };
        let mut since = saver.as_mut().and_then(|saver| saver.since());
        let mut take = |event: &Event| take_event(sinks, stage, event);
        messages.each(packets, attachments, sides, |event| {
            exchanges.iter_mut().for_each(|all| all.add(event, &mut take));
            // The length of an earlier message.
            if event.protocol().is_empty() {
                return;
            }
            analyses.on_event(event);
            since.iter_mut().for_each(|since| since.on_event(event));
            take(event);
        });
    }

    /// Ends the exchanges that are too old at a mark of this time; `None`: all of them.
    fn end_exchanges(&mut self, mark_ns: Option<u64>) {
        let Self { exchanges: Some(exchanges), sinks, stage, .. } = self else { return };
        let mut take = |event: &Event| take_event(sinks, stage, event);
        match mark_ns {
            Some(time_ns) => exchanges.on_mark(time_ns, &mut take),
            None => exchanges.end(&mut take),
        }
    }

    /// Whether the set of conversations has no room.
    fn has_full_set(&self) -> bool {
        self.conversations.as_ref().is_some_and(Conversations::is_full)
    }

    /// Counts the noted conversations.
    fn settle(&mut self) {
        let Self { volumes, conversations, .. } = self;
        if let Some(conversations) = conversations {
            conversations.settle(|interval, protocol, stands_for| {
                volumes.count_conversations(interval, protocol, stands_for);
            });
        }
    }
}

/// Passes an event to the output for events.
fn take_event(sinks: &mut Sinks, stage: &mut Option<Box<Stage>>, event: &Event) {
    if let Some(sink) = &mut sinks.events {
        sink.take(match stage {
            Some(stage) => stage.event(event),
            None => event,
        });
    }
}

impl Observer for FlowObserver<'_> {
    /// The stamp means that the conversation was counted in the interval of the flow's latest
    /// packet; so it is looked up once an interval.
    #[inline(always)]
    fn counted(&mut self, packet: &PacketRecord, stamp: &mut u16) {
        let events = &mut *self.events;
        if events.conversations.is_none() {
            return;
        }
        if self.noted {
            *stamp = 0;
            return;
        }
        let interval = events.volumes.interval_of(packet.ts_ns);
        if *stamp != FlowEvents::stamp(interval) || !events.stamps_valid {
            events.begin_interval(packet, stamp, interval);
        }
    }

    #[cold]
    fn late(&mut self, packet: &PacketRecord, stamp: u16) {
        let events = &mut *self.events;
        if !self.noted
            && packet.flags.contains(Flags::PORTS)
            && (stamp == 0 || !events.stamps_valid)
        {
            let interval = events.volumes.interval_of(packet.ts_ns);
            events.count_conversation(packet, interval, false);
            events.keep(&FlowKey::of(packet), 0, interval);
        }
    }

    fn part(&mut self, record: &FlowRecord) {
        let FlowEvents { flows, sinks, stage, .. } = &mut *self.events;
        flows.parts += 1;
        if let Some(records) = &mut sinks.records {
            records.take(match stage {
                Some(stage) => stage.record(record),
                None => record,
            });
        }
    }

    fn begun(&mut self, packet: &PacketRecord) {
        let FlowEvents { sinks, stage, page, .. } = &mut *self.events;
        if let (true, Some(records)) = (*page, &mut sinks.records) {
            let mut key = FlowKey::of(packet);
            if let Some(stage) = stage {
                stage.replace_key(&mut key);
            }
            records.begun(&key, packet.ts_ns, packet.ip_len.into());
        }
    }

    fn slice(&mut self, record: &FlowRecord, of: Slice) {
        let FlowEvents { saver, sinks, stage, page, analyses, .. } = &mut *self.events;
        saver.iter_mut().for_each(|saver| saver.on_slice(record));
        analyses.changes.iter_mut().for_each(|changes| changes.add_slice(record, of));
        if let (true, Some(records)) = (*page, &mut sinks.records) {
            let record = match stage {
                Some(stage) => stage.record(record),
                None => record,
            };
            records.slice(record, of);
        }
    }

    #[inline]
    fn response(&mut self, response: Response) {
        let FlowEvents { analyses, saver, .. } = &mut *self.events;
        analyses.on_response(&response);
        saver.iter_mut().for_each(|saver| saver.on_response(&response));
    }

    #[inline]
    fn ended(&mut self, record: &FlowRecord, stamp: u16) {
        let events = &mut *self.events;
        events.flows.ended[place(record.end_reason)] += 1;
        events.analyses.on_record(record);
        events.saver.iter_mut().for_each(|saver| saver.on_record(record));
        let FlowEvents { flows, sinks, stage, cuts, .. } = events;
        if flows.digest.is_some() || sinks.records.is_some() {
            let record = match stage {
                Some(stage) => stage.record(record),
                None => record,
            };
            flows.digest.iter_mut().for_each(|digest| digest.add(record));
            match &mut sinks.records {
                Some(records) if *cuts => records.whole(record),
                Some(records) => records.take(record),
                None => {}
            }
        }
        if self.keep_ended && stamp != 0 {
            let interval = events.volumes.interval_of(record.last_ns);
            events.keep(&record.key, record.first_ns, interval);
        }
    }
}
