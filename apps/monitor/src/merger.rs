//! The merger: receives messages during the run, and joins the workers' results at its end.

use std::collections::BTreeMap;

use ringtap_enrich::Stage;
use ringtap_flow::EndReason;
use ringtap_stage::{Mark, Merger, Shard};

use crate::alerts::Tracker;
use crate::analyses::Mergers;
use crate::analyses::activity::ActivityMerger;
use crate::analyses::volumes::Volumes;
use crate::digest::RecordDigest;
use crate::report::activity::Activity;
use crate::report::{Conversations, Facts, Flows, Report};
use crate::series::Series;
use crate::state::{self, Collector, INTERVALS, PROTOCOLS, SavedParts};
use crate::worker::{Findings, FlowCounts, TickSummary};
use crate::{
    Alert, Analyses, EndedInterval, OnAlert, OnInterval, OnTotals, Partial, Receivers, Setup,
    Shortage, Totals,
};

/// Merges the workers' results into the report.
pub struct MonitorMerger {
    analyses: Analyses,
    /// What results pass through before they leave.
    stage: Option<Box<Stage>>,
    alerts: Tracker,
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
    /// The latest mark of each worker.
    reached: Vec<u64>,
    active_peak: u64,
    /// Of the workers, if a state is saved.
    state: Option<SavedParts>,
    digest: bool,
}

impl MonitorMerger {
    pub(crate) fn new(setup: &Setup, receivers: Receivers) -> Self {
        let Receivers { alert, interval, totals, part } = receivers;
        let options = &setup.options;
        let digest = options.needs_record_digest().then(RecordDigest::default);
        let volumes = || Volumes::new(setup.volumes_interval_ns(), options.interval_units as usize);
        Self {
            analyses: options.analyses,
            stage: options.enrichment.stage(),
            alerts: Tracker::new(options.scan_threshold),
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
            mergers: Mergers::new(setup),
            active: BTreeMap::new(),
            reached: Vec::new(),
            active_peak: 0,
            state: options.state.as_ref().map(|_| SavedParts::default()),
            digest: options.digest,
        }
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
        let shortage = Shortage {
            attempts_ignored: self.mergers.ignored(),
            packets_in_further_intervals: self.over.further() + self.volumes.further(),
            alerts_without_room: self.alerts.without_room(),
            ..Shortage::default()
        };
        let mut totals = Totals { shortage, tcp: None, live_flows };
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
            let exact = !self.totals.shortage.conversations_estimated;
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
        // Queues with their own time may skip marks; marks that all have passed stay incomplete.
        self.reached.resize(shard.count, 0);
        self.reached[shard.index] = mark;
        let oldest = self.reached.iter().copied().min().unwrap_or(0);
        while self.active.first_key_value().is_some_and(|(&mark, _)| mark < oldest) {
            self.active.pop_first();
        }
        all
    }

    fn on_findings(&mut self, findings: Findings) {
        if let (Some(all), Some(own)) = (&mut self.state, findings.state) {
            all.images.push(own.image);
            all.conversations_lost += own.conversations_lost;
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
        self.mergers.merge(findings.found);
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
        let number = match *mark {
            Mark::Tick { number, .. } => number,
            Mark::End { .. } => u64::MAX,
        };
        match partial {
            Partial::Tick(summary) => {
                let TickSummary { active, over, found, totals, part } = *summary;
                if let (Some(parts), Some(rows)) = (&mut self.parts, part) {
                    parts.add(shard, number, mark.time_ns(), rows);
                }
                self.mergers.merge(found);
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
        if let Some(on_totals) = &mut self.on_totals
            && without_room != self.totals.shortage.alerts_without_room
        {
            self.totals.shortage.alerts_without_room = without_room;
            on_totals(&self.totals);
        }
        if let Some(stage) = &mut self.stage {
            sections.pass(stage);
        }
        let on = self.analyses;
        if let Some(state) = &mut self.state {
            state.from_ns = self.volumes.handled().1.min(state.until_ns);
            if let Some(parts) = &mut self.parts {
                parts.end();
                state.part = parts.next;
                state.from_ns = parts.until_ns.unwrap_or(state.from_ns);
            } else {
                let tables = state::tables_of(state::saved(on));
                let volumes = state::image(&[], &tables, |table, rows| {
                    if *table == PROTOCOLS || *table == INTERVALS {
                        self.volumes.save(table, rows);
                    }
                });
                state.images.push(volumes.map_err(|error| error.to_string()));
            }
        }
        let flows = || Flows {
            records: self.flows.ended.iter().sum(),
            active_peak: Some(self.active_peak),
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
