//! The merger: receives messages during the run, and joins the workers' results at its end.

use std::collections::BTreeMap;
use std::sync::Arc;

use ringtap_enrich::Stage;
use ringtap_flow::EndReason;
use ringtap_stage::{Mark, Merger, Shard};

use crate::alerts::{Alert, Alerts};
use crate::analyses::activity::ActivityMerger;
use crate::analyses::activity::rows::Activity;
use crate::analyses::volumes::{INTERVALS, PROTOCOLS, Volumes};
use crate::analyses::{Analyses, Mergers};
use crate::counts::FlowCounts;
use crate::digest::RecordDigest;
use crate::held::Held;
use crate::options::Setup;
use crate::outputs::{EndedInterval, OnAlert, OnInterval, OnTotals, Receivers};
use crate::partial::{Findings, Partial, TickSummary};
use crate::reload::Reloads;
use crate::report::{Facts, Flows, Report};
use crate::series::Series;
use crate::state::{self, Collector, SavedParts};
use crate::totals::Totals;
use crate::volume::Conversations;

/// Merges the workers' results into the report.
pub struct MonitorMerger {
    analyses: Analyses,
    /// What results pass through before they leave.
    stage: Option<Box<Stage>>,
    alerts: Alerts,
    /// Whether there are rules that suppress alerts.
    allowed: bool,
    on_alert: Option<OnAlert>,
    on_interval: Option<OnInterval>,
    on_totals: Option<OnTotals>,
    /// Parts of the state, if it is saved in parts.
    parts: Option<Collector>,
    interval_ns: Option<u64>,
    /// The first interval that was not reported yet.
    unreported: u64,
    /// Intervals that were handed over and not reported yet.
    over: Volumes,
    volumes: Volumes,
    series: Option<Series>,
    /// Each worker's totals at its latest mark, and the sum reported last.
    totals_of: Vec<Totals>,
    totals: Totals,
    conversations: Conversations,
    flows: FlowCounts,
    mergers: Mergers,
    /// Live flows at marks that not all workers have reached: number of workers, and their sum.
    active: BTreeMap<u64, (usize, u64)>,
    /// The number after the latest mark of each worker.
    passed: Vec<u64>,
    held: Held,
    active_peak: u64,
    /// Of the workers, if a state is saved.
    state: Option<SavedParts>,
    digest: bool,
    /// Whether records are parts of flows.
    cuts: bool,
    reloads: Arc<Reloads>,
    /// The number of the latest settings that were taken up.
    reloaded: u64,
}

impl MonitorMerger {
    pub(crate) fn new(setup: &Setup, receivers: Receivers, reloads: Arc<Reloads>) -> Self {
        let Receivers { alert, interval, totals, part } = receivers;
        let options = &setup.options;
        let digest = options.needs_record_digest().then(RecordDigest::default);
        let volumes = || Volumes::new(setup.volumes_interval_ns(), options.interval_units as usize);
        Self {
            analyses: options.analyses,
            stage: options.enrichment.stage(),
            alerts: Alerts::new(
                options.scan_limits(),
                options.alert_bytes,
                options.allow.clone().unwrap_or_default(),
                options.longest_part_ns(),
            ),
            allowed: options.allow.is_some(),
            on_alert: alert,
            on_interval: interval,
            on_totals: totals,
            parts: options.saves_parts().then(|| Collector::new(part)),
            interval_ns: options.interval_ns,
            unreported: 0,
            over: volumes(),
            volumes: volumes(),
            series: options.charts.then(Series::default),
            totals_of: Vec::new(),
            totals: Totals::default(),
            conversations: Conversations::default(),
            flows: FlowCounts { digest, ..FlowCounts::default() },
            mergers: Mergers::new(options.analyses, &setup.context),
            active: BTreeMap::new(),
            passed: Vec::new(),
            held: Held::default(),
            active_peak: 0,
            state: options.state.as_ref().map(|_| SavedParts::default()),
            digest: options.digest,
            cuts: options.metering.cut_ns.is_some(),
            reloads,
            reloaded: 0,
        }
    }

    /// Takes up changed settings.
    #[cold]
    fn adopt(&mut self, setup: &Setup) {
        let options = &setup.options;
        self.mergers.adopt(&setup.context);
        self.alerts.adopt(options.scan_limits(), options.allow.clone().unwrap_or_default());
        self.allowed |= options.allow.is_some();
        self.stage = options.enrichment.stage();
    }

    /// All workers have reached this time: reports finished intervals.
    fn on_time(&mut self, time_ns: u64, active: u64) {
        let Self { mergers, alerts, on_alert, stage, .. } = self;
        let mut emit = alert_handler(on_alert, stage);
        alerts.begin_mark(time_ns);
        mergers.on_time(time_ns, &mut |signal| alerts.take(signal, &mut emit));
        alerts.end_mark(&mut emit);
        drop(emit);
        self.report_totals(active);
        self.report_intervals(time_ns, active);
    }

    fn report_totals(&mut self, live_flows: u64) {
        let mut totals = Totals {
            packets_in_further_intervals: self.over.further() + self.volumes.further(),
            alerts_without_room: self.alerts.without_room(),
            alerts_suppressed: self.alerts.suppressed(),
            live_flows,
            ..Totals::default()
        };
        self.totals_of.iter().for_each(|own| totals.add(own));
        if totals != self.totals {
            self.totals = totals;
            if let Some(on_totals) = &mut self.on_totals {
                on_totals(&totals);
            }
        }
    }

    fn report_intervals(&mut self, time_ns: u64, active: u64) {
        let (Some(on_interval), Some(interval_ns)) = (&mut self.on_interval, self.interval_ns)
        else {
            return;
        };
        let upto = time_ns / interval_ns;
        // Smaller after a clock was set back: the intervals end again and are reported again.
        self.unreported = self.unreported.min(upto);
        if upto > self.unreported {
            let exact = !self.totals.conversations_estimated;
            let conversations = Conversations { exact, ..Conversations::default() };
            // The report keeps a bounded number of rows; every interval is passed to the output.
            let over = self.over.take_before(time_ns);
            let activities = self.mergers.activity.as_ref().map_or(&[][..], ActivityMerger::closed);
            let of = |start| activities.iter().find(|activity: &&Activity| activity.start == start);
            for interval in &over.rows(self.unreported..upto, conversations) {
                let passed =
                    self.stage.as_mut().zip(of(interval.start)).map(|(stage, activity)| {
                        let mut activity = activity.clone();
                        activity.pass(stage);
                        activity
                    });
                let activity = passed.as_ref().or_else(|| of(interval.start));
                on_interval(&EndedInterval { interval, live: active, activity });
            }
            self.volumes.merge(over);
            self.unreported = upto;
        }
    }

    /// Adds the live flows of one worker at a mark; returns the sum once every worker has reached
    /// it.
    fn on_active(&mut self, mark: u64, shard: Shard, active: u64) -> Option<u64> {
        let (workers, sum) = self.active.entry(mark).or_default();
        *workers += 1;
        *sum += active;
        let all = (*workers == shard.count).then_some(*sum);
        if *workers == shard.count {
            self.active_peak = self.active_peak.max(*sum);
            self.active.remove(&mark);
        }
        self.passed.resize(shard.count, 0);
        self.passed[shard.index] = mark.saturating_add(1);
        let oldest = self.passed.iter().copied().min().unwrap_or(0);
        // Queues with their own time may skip marks; marks that all have passed stay incomplete.
        while self.active.first_key_value().is_some_and(|(&mark, _)| mark < oldest) {
            self.active.pop_first();
        }
        self.merge_held(oldest);
        all
    }

    /// Merges what was handed over at marks before this one.
    fn merge_held(&mut self, end: u64) {
        while let Some(found) = self.held.take(end) {
            self.mergers.merge(found);
        }
    }

    fn on_findings(&mut self, findings: Findings) {
        if let (Some(all), Some(own)) = (&mut self.state, findings.state) {
            all.images.push(own.image);
            all.conversations_lost += own.conversations_lost;
            all.early_lost += own.early_lost;
        }
        self.volumes.merge(findings.volumes);
        if let (Some(all), Some(own)) = (&mut self.series, &findings.series) {
            all.merge(own);
        }
        if let Some(([tcp, udp], exact)) = findings.conversations {
            self.conversations.tcp += tcp;
            self.conversations.udp += udp;
            self.conversations.exact &= exact;
        }
        self.flows.merge(&findings.flows);
        self.mergers.merge_end(findings.found);
    }
}

/// Passes alerts on, if there is an output.
fn alert_handler(
    on_alert: &mut Option<OnAlert>,
    stage: &mut Option<Box<Stage>>,
) -> impl FnMut(&Alert) {
    move |alert| match (&mut *on_alert, &mut *stage) {
        (None, _) => {}
        (Some(on_alert), None) => on_alert(alert),
        (Some(on_alert), Some(stage)) => {
            let mut alert = alert.clone();
            alert.pass(stage);
            on_alert(&alert);
        }
    }
}

impl Merger for MonitorMerger {
    type Message = ();
    type Partial = Partial;
    type Report = Report;

    fn on_message(&mut self, (): ()) {}

    fn on_partial(&mut self, shard: Shard, mark: &Mark, partial: Partial) {
        // Before the partial result of a worker that has them.
        if let Some(setup) = self.reloads.since(&mut self.reloaded) {
            self.adopt(&setup);
        }
        let number = match *mark {
            Mark::Tick { number, .. } => number,
            Mark::End { .. } => u64::MAX,
        };
        match partial {
            Partial::Tick(summary) => {
                let TickSummary { active, over, mut found, totals, part } = *summary;
                if let (Some(parts), Some(rows)) = (&mut self.parts, part) {
                    parts.add(shard, number, mark.time_ns(), rows);
                }
                self.mergers.merge_at_once(&mut found);
                if found.waiting_bytes() > 0 {
                    self.held.insert(number, shard.index, found);
                }
                if let Some(volumes) = over {
                    self.over.merge(*volumes);
                }
                self.totals_of.resize(shard.count, Totals::default());
                self.totals_of[shard.index] = totals;
                if let Some(active) = self.on_active(number, shard, active) {
                    self.on_time(mark.time_ns(), active);
                }
            }
            Partial::End(findings) => {
                self.on_active(number, shard, findings.active);
                if let Some(state) = &mut self.state {
                    state.until_ns = state.until_ns.max(mark.time_ns());
                }
                self.on_findings(*findings);
            }
        }
    }

    fn finish(mut self) -> Report {
        self.merge_held(u64::MAX);
        self.volumes.merge(std::mem::replace(&mut self.over, Volumes::new(None, 0)));
        let mut sections = {
            let emit = &mut alert_handler(&mut self.on_alert, &mut self.stage);
            let alerts = &mut self.alerts;
            alerts.begin_end();
            let sections = self.mergers.end(&mut |signal| alerts.take(signal, emit));
            alerts.end(emit);
            sections
        };
        let without_room = self.alerts.without_room();
        let last = Totals {
            alerts_without_room: without_room,
            alerts_suppressed: self.alerts.suppressed(),
            ..self.totals
        };
        if let Some(on_totals) = &mut self.on_totals
            && last != self.totals
        {
            on_totals(&last);
        }
        let mut suppressed = self.allowed.then(|| self.alerts.suppressed_by_rule());
        if let Some(stage) = &mut self.stage {
            sections.pass(stage);
            suppressed.iter_mut().flatten().for_each(|own| own.pass(stage));
        }
        let on = self.analyses;
        if let Some(state) = &mut self.state {
            state.from_ns = self.volumes.handled().1.min(state.until_ns);
            if let Some(parts) = &mut self.parts {
                parts.end();
                state.part = parts.next;
                state.from_ns = parts.until_ns.unwrap_or(state.from_ns);
            } else {
                let tables = state::tables_of(state::saved(on), state::Content::NOW);
                let volumes = state::image(&[], &tables, |table, rows| {
                    if *table == PROTOCOLS || *table == INTERVALS {
                        self.volumes.save(table, rows);
                    }
                });
                state.images.push(volumes.map_err(|error| error.to_string()));
            }
        }
        let some = |number: u64| (number > 0).then_some(number);
        let flows = || Flows {
            records: self.flows.ended.iter().sum(),
            active_peak: Some(self.active_peak),
            parts: self.cuts.then_some(self.flows.parts),
            resumed: some(self.flows.resumed),
            not_continued: some(self.flows.not_continued),
            kept: some(self.flows.kept),
            end_reasons: EndReason::ALL.iter().map(|r| r.name()).zip(self.flows.ended).collect(),
            records_digest: self
                .flows
                .digest
                .as_ref()
                .filter(|_| self.digest)
                .map(RecordDigest::hex),
        };
        Report {
            packets: self.volumes.packets(),
            octets: self.volumes.octets(),
            intervals: on.volumes.then(|| self.volumes.intervals(self.conversations)),
            packets_in_further_intervals: if on.volumes { self.volumes.further() } else { 0 },
            alerts_without_room: if self.on_alert.is_some() { without_room } else { 0 },
            exchanges_without_room: self.flows.exchanges_without_room,
            suppressed_alerts: suppressed,
            protocols: on.volumes.then(|| self.volumes.protocols()),
            conversations: on.volumes.then_some(self.conversations),
            facts: on.flows.then(|| Facts::of(&self.flows.facts)).flatten(),
            flows: on.flows.then(flows),
            sections,
            state: self.state,
            series: self.series,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use ringtap_enrich::WatchList;
    use ringtap_wire::{Flags, HashKey, PacketRecord};

    use super::*;
    use crate::Options;
    use crate::alerts::{AlertState, Subject};
    use crate::analyses::Parts;
    use ringtap_flow::FlowKey;

    fn setup() -> Setup {
        let list = WatchList::parse(b"10.0.0.0/8").unwrap();
        let analyses = Analyses { watch: true, ..Analyses::NONE };
        let options = Options {
            analyses,
            watch: Some(Arc::new(list)),
            max_flows: Some(100),
            ..Options::default()
        };
        Setup::new(options, HashKey::from_seed(5), Vec::new())
    }

    /// A packet from a host to the watched network.
    fn packet(host: u16, ts_ns: u64) -> PacketRecord {
        let mut packet = PacketRecord { flags: Flags::IPV4, ts_ns, ..PacketRecord::EMPTY };
        let [high, low] = host.to_be_bytes();
        packet.src[..4].copy_from_slice(&[192, 0, high, low]);
        packet.dst[..4].copy_from_slice(&[10, 0, 0, 1]);
        packet
    }

    /// What a worker hands over at a mark after these packets.
    fn tick(worker: &mut Parts, packets: &[PacketRecord]) -> Partial {
        worker.on_packets(packets);
        Partial::Tick(Box::new(TickSummary {
            active: 0,
            over: None,
            found: worker.on_tick(0),
            totals: Totals::default(),
            part: None,
        }))
    }

    /// The alerts of two workers whose partial results of two marks arrive in this order.
    fn alerts(order: [usize; 4]) -> Vec<(AlertState, u64, u64, FlowKey)> {
        let (setup, all) = (setup(), Arc::new(Mutex::new(Vec::new())));
        let (parts, sink) =
            (|shard| Parts::new(setup.options.analyses, &setup.context, shard), all.clone());
        let alert = move |alert: &Alert| {
            let Subject::Watched { flow, .. } = &alert.subject else { panic!("{alert:?}") };
            sink.lock().unwrap().push((alert.state, alert.number, alert.time.0, *flow));
        };
        let receivers = Receivers { alert: Some(Box::new(alert)), ..Receivers::default() };
        let mut merger = MonitorMerger::new(&setup, receivers, Arc::default());
        let shards = [0, 1].map(|index| Shard { index, count: 2 });
        let mut workers = shards.map(|shard| (parts(shard), 0));
        let packets = [[packet(1, 10), packet(3, 30)], [packet(2, 5), packet(4, 20)]];
        for index in order {
            let (worker, number) = &mut workers[index];
            let partial = tick(worker, &[packets[index][*number as usize]]);
            let mark = Mark::Tick { number: *number, time_ns: 100 * (*number + 1) };
            merger.on_partial(shards[index], &mark, partial);
            *number += 1;
        }
        let found = all.lock().unwrap();
        found.clone()
    }

    #[test]
    fn alerts_do_not_depend_on_which_worker_is_faster() {
        let reference = alerts([0, 1, 0, 1]);
        let changes: Vec<_> = reference.iter().map(|one| (one.0, one.1, one.2)).collect();
        let expected = [
            (AlertState::Begins, 1, 5),
            (AlertState::Continues, 2, 10),
            (AlertState::Continues, 4, 30),
        ];
        assert_eq!(changes, expected);
        for order in [[0, 0, 1, 1], [1, 1, 0, 0], [0, 1, 1, 0], [1, 0, 0, 1], [1, 0, 1, 0]] {
            assert_eq!(alerts(order), reference, "{order:?}");
        }
    }

    #[test]
    fn what_waits_for_a_slow_worker_has_bounded_memory_and_is_reported() {
        const MARKS: u16 = 30_000;
        let (setup, last) = (setup(), Arc::new(Mutex::new(0)));
        let sink = Arc::clone(&last);
        let alert = move |alert: &Alert| *sink.lock().unwrap() = alert.number;
        let receivers = Receivers { alert: Some(Box::new(alert)), ..Receivers::default() };
        let mut merger = MonitorMerger::new(&setup, receivers, Arc::default());
        let shard = Shard { index: 0, count: 2 };
        let mut worker = Parts::new(setup.options.analyses, &setup.context, shard);
        let mut most = 0;
        for number in 0..MARKS {
            let mark = Mark::Tick { number: number.into(), time_ns: number.into() };
            merger.on_partial(shard, &mark, tick(&mut worker, &[packet(number, number.into())]));
            most = most.max(merger.held.bytes);
        }
        let limit = crate::held::HELD_BYTES as usize;
        assert!(most > limit / 2 && most <= limit, "{most}");
        merger.finish();
        assert_eq!(*last.lock().unwrap(), u64::from(MARKS));
    }
}
