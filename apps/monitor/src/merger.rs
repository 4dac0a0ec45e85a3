//! The merger: hears state reports during the run, unites the workers' findings at its end.

use std::collections::BTreeMap;

use ringtap_flow::EndReason;
use ringtap_stage::{Mark, Merger, Shard};

use crate::analyses::activity::ActivityMerger;
use crate::analyses::scans::ScanMerger;
use crate::analyses::talkers::TalkerTable;
use crate::analyses::volumes::Volumes;
use crate::digest::RecordDigest;
use crate::report::activity::Activity;
use crate::report::{Conversations, Facts, Flows, Report};
use crate::worker::{Findings, FlowCounts, Standing};
use crate::{
    Alert, Analyses, Config, Ended, Message, OnAlert, OnInterval, OnShortage, Partial, Shortage,
};

/// Merges what the workers found into the report.
pub struct MonitorMerger {
    analyses: Analyses,
    top: usize,
    hear: Option<OnAlert>,
    hear_interval: Option<OnInterval>,
    hear_shortage: Option<OnShortage>,
    interval_ns: Option<u64>,
    /// The first interval that was not told of yet.
    untold: u64,
    /// Intervals that were handed over and not told of yet.
    over: Volumes,
    volumes: Volumes,
    /// What each worker had no room for at its latest mark, and the sum that was told last.
    shortages: Vec<Shortage>,
    shortage: Shortage,
    conversations: Conversations,
    flows: FlowCounts,
    scans: ScanMerger,
    talkers: Option<TalkerTable>,
    activity: Option<ActivityMerger>,
    /// Live flows at marks that not all workers have reached: workers so far, and their sum.
    active: BTreeMap<u64, (usize, u64)>,
    /// The latest mark of each worker.
    reached: Vec<u64>,
    active_peak: u64,
}

impl MonitorMerger {
    pub(crate) fn new(
        config: &Config,
        hear: Option<OnAlert>,
        hear_interval: Option<OnInterval>,
        hear_shortage: Option<OnShortage>,
    ) -> Self {
        let digest = (config.digest && config.analyses.flows).then(RecordDigest::default);
        Self {
            analyses: config.analyses,
            top: config.top,
            hear,
            hear_interval,
            hear_shortage,
            interval_ns: config.interval_ns,
            untold: 0,
            over: Volumes::new(config.volumes_interval_ns(), config.interval_room),
            volumes: Volumes::new(config.volumes_interval_ns(), config.interval_room),
            shortages: Vec::new(),
            shortage: Shortage::default(),
            conversations: Conversations::default(),
            flows: FlowCounts { digest, ..FlowCounts::default() },
            scans: ScanMerger::new(config.hash_key, config.scan_threshold, config.max_flows),
            talkers: None,
            activity: config.analyses.activity.then(|| {
                let Config { interval_ns, limits, top, activity_room, .. } = *config;
                ActivityMerger::new(interval_ns, limits, top, activity_room)
            }),
            active: BTreeMap::new(),
            reached: Vec::new(),
            active_peak: 0,
        }
    }

    fn alert(&mut self, alert: &Alert) {
        if let Some(hear) = &mut self.hear {
            hear(alert);
        }
    }

    /// All workers have reached this time: tells of the intervals that are over.
    fn on_time(&mut self, time_ns: u64, active: u64) {
        self.tell_shortage();
        let closed = self.activity.as_mut().map(|own| own.close_before(time_ns));
        let activities = self.tell(closed.unwrap_or_default());
        self.tell_intervals(time_ns, active, &activities);
    }

    /// Tells of alerts.
    fn tell(&mut self, closed: Vec<(Activity, Vec<Alert>)>) -> Vec<Activity> {
        let mut activities = Vec::with_capacity(closed.len());
        for (activity, alerts) in closed {
            alerts.iter().for_each(|alert| self.alert(alert));
            activities.push(activity);
        }
        activities
    }

    fn tell_shortage(&mut self) {
        let mut shortage = Shortage {
            attempts_ignored: self.scans.ignored(),
            packets_in_further_intervals: self.over.further() + self.volumes.further(),
            ..Shortage::default()
        };
        self.shortages.iter().for_each(|own| shortage.add(own));
        if shortage != self.shortage {
            self.shortage = shortage;
            if let Some(hear) = &mut self.hear_shortage {
                hear(&shortage);
            }
        }
    }

    fn tell_intervals(&mut self, time_ns: u64, active: u64, activities: &[Activity]) {
        let (Some(hear), Some(interval_ns)) = (&mut self.hear_interval, self.interval_ns) else {
            return;
        };
        let upto = time_ns / interval_ns;
        // Smaller after a clock was set back: the intervals end again and are reported again.
        self.untold = self.untold.min(upto);
        if upto > self.untold {
            let exact = !self.shortage.conversations_estimated;
            let conversations = Conversations { exact, ..Conversations::default() };
            // The report keeps a bounded number of rows; every interval is passed to the output.
            let over = self.over.take_before(time_ns);
            for interval in &over.rows(self.untold..upto, conversations) {
                let activity = activities.iter().find(|activity| activity.start == interval.start);
                hear(&Ended { interval, live: active, activity });
            }
            self.volumes.merge(over);
            self.untold = upto;
        }
    }

    /// Live flows of one worker at a mark; marks count when every worker has reached them: how many there are then.
    fn on_active(&mut self, mark: u64, shard: Shard, active: u64) -> Option<u64> {
        let (workers, sum) = self.active.entry(mark).or_default();
        *workers += 1;
        *sum += active;
        let all = (*workers == shard.count).then_some(*sum);
        if *workers == shard.count {
            self.active_peak = self.active_peak.max(*sum);
            self.active.remove(&mark);
        }
        // Queues with a time of their own may pass over marks; what all have left behind stays incomplete.
        self.reached.resize(shard.count, 0);
        self.reached[shard.index] = mark;
        let oldest = self.reached.iter().copied().min().unwrap_or(0);
        while self.active.first_key_value().is_some_and(|(&mark, _)| mark < oldest) {
            self.active.pop_first();
        }
        all
    }

    fn on_findings(&mut self, findings: Findings) {
        self.volumes.merge(findings.volumes);
        if let Some(([tcp, udp], exact)) = findings.conversations {
            self.conversations.tcp += tcp;
            self.conversations.udp += udp;
            self.conversations.exact &= exact;
        }
        self.flows.merge(&findings.flows);
        if let Some(activity) = &mut self.activity {
            activity.merge(findings.activity);
        }
        if let Some(scans) = findings.scans {
            self.scans.on_findings(scans);
        }
        match (&mut self.talkers, findings.talkers) {
            (Some(own), Some(more)) => own.merge(more),
            (own, more) => *own = own.take().or(more),
        }
    }
}

impl Merger for MonitorMerger {
    type Message = Message;
    type Partial = Partial;
    type Report = Report;

    fn on_message(&mut self, message: Message) {
        match message {
            Message::Attempted(report) => {
                if let Some(alert) = self.scans.on_attempted(report) {
                    self.alert(&alert);
                }
            }
            Message::Alert(alert) => self.alert(&alert),
        }
    }

    fn on_partial(&mut self, shard: Shard, mark: &Mark, partial: Partial) {
        let number = match *mark {
            Mark::Tick { number, .. } => number,
            Mark::End { .. } => u64::MAX,
        };
        match partial {
            Partial::Tick(Standing { active, over, activity, shortage }) => {
                if let Some(own) = &mut self.activity {
                    own.merge(activity);
                }
                if let Some(volumes) = over {
                    self.over.merge(*volumes);
                }
                self.shortages.resize(shard.count, Shortage::default());
                self.shortages[shard.index] = shortage;
                if let Some(active) = self.on_active(number, shard, active) {
                    self.on_time(mark.time_ns(), active);
                }
            }
            Partial::End(findings) => {
                self.on_active(number, shard, findings.active);
                self.on_findings(*findings);
            }
        }
    }

    fn finish(mut self) -> Report {
        self.volumes.merge(std::mem::replace(&mut self.over, Volumes::new(None, 0)));
        if let Some(closed) = self.activity.as_mut().map(ActivityMerger::close_all) {
            self.tell(closed);
        }
        let (activity, further) = self.activity.take().map(ActivityMerger::finish).unzip();
        let on = self.analyses;
        let flows = || Flows {
            records: self.flows.ended.iter().sum(),
            active_peak: self.active_peak,
            end_reasons: EndReason::ALL.iter().map(|r| r.name()).zip(self.flows.ended).collect(),
            records_digest: self.flows.digest.as_ref().map(RecordDigest::hex),
        };
        Report {
            packets: self.volumes.packets(),
            octets: self.volumes.octets(),
            intervals: on.volumes.then(|| self.volumes.intervals(self.conversations)),
            packets_in_further_intervals: if on.volumes { self.volumes.further() } else { 0 },
            protocols: on.volumes.then(|| self.volumes.protocols()),
            conversations: on.volumes.then_some(self.conversations),
            facts: on.flows.then(|| Facts::of(&self.flows.facts)).flatten(),
            flows: on.flows.then(flows),
            talkers: self.talkers.as_ref().map(|talkers| talkers.finish(self.top)),
            scans: on.scans.then(|| self.scans.finish()),
            activity,
            activity_in_further_intervals: further.unwrap_or(0),
        }
    }
}
