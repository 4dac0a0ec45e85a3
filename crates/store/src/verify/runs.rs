//! The runs of a probe: where their packets and records went, and the times without any.

use std::collections::BTreeMap;

use ringtap_terminal::numbers::count;

use super::gap::{Gap, GapKind};
use crate::layout::Kind;
use crate::manifest::{Counts, Line, Packets, Start, What};

/// Why packets are not handled in any run: they were not asked for.
const NOT_ASKED_FOR: [&str; 4] = ["damaged", "duplicate", "filtered", "not_sampled"];

/// The runs so far.
pub(super) struct Runs {
    probe: String,
    runs: u64,
    /// The run that has not ended.
    open: Option<Open>,
    /// When the last run ended, if it was live.
    ended: Option<u64>,
    /// The time of the last line.
    time: u64,
}

/// A run that has not ended.
struct Open {
    start: Start,
    begin: u64,
    /// Rows of its files, by kind.
    rows: BTreeMap<Kind, u64>,
    counts: Counts,
}

impl Runs {
    pub(super) fn new(probe: &str) -> Self {
        Self { probe: probe.to_owned(), runs: 0, open: None, ended: None, time: 0 }
    }

    /// The next line.
    pub(super) fn take(&mut self, line: &Line, gaps: &mut Vec<Gap>) {
        if line.time < self.time {
            let text = format!("the clock was set back by {} s", self.time - line.time);
            let gap = Gap::new(&self.probe, GapKind::Clock, text);
            gaps.push(gap.interval(Some([line.time, self.time])));
        }
        self.time = line.time;
        match &line.what {
            What::Start(start) => self.start(start, line.time, gaps),
            What::File(file) => {
                if let (Some(open), None) = (&mut self.open, file.cut_octets) {
                    *open.rows.entry(file.of).or_default() += file.rows;
                    open.counts = file.so_far.clone().unwrap_or_default();
                }
            }
            What::End(counts) => {
                let open = self.open.take();
                if let Some(open) = open {
                    self.ended = open.start.live.then_some(line.time);
                    self.close(&open, counts, line.time, gaps);
                }
            }
            What::Removed { .. } => {}
        }
    }

    fn start(&mut self, start: &Start, begin: u64, gaps: &mut Vec<Gap>) {
        self.runs += 1;
        if let Some(open) = self.open.take() {
            self.end_early(&open, start.until.unwrap_or(begin), gaps);
            self.ended = open.start.live.then(|| start.until.unwrap_or(begin));
        }
        if let Some(ended) = self.ended.take()
            && start.live
            && begin > ended
        {
            let seconds = begin - ended;
            let text = format!("no process ran for {} s", count(seconds));
            let gap = Gap::new(&self.probe, GapKind::NoData, text);
            gaps.push(gap.interval(Some([ended, begin])));
        }
        let (rows, counts) = (BTreeMap::new(), Counts::default());
        self.open = Some(Open { start: start.clone(), begin, rows, counts });
    }

    /// A run whose process ended early.
    fn end_early(&self, open: &Open, until: u64, gaps: &mut Vec<Gap>) {
        let text =
            format!("process {} ended early: what it had not written is lost", open.start.process);
        let gap = Gap::new(&self.probe, GapKind::RunEndedEarly, text);
        gaps.push(gap.interval(Some([open.begin, until])));
        self.losses(&open.start, &open.counts, [open.begin, until], gaps);
    }

    /// A run that has ended by itself.
    fn close(&self, open: &Open, counts: &Counts, end: u64, gaps: &mut Vec<Gap>) {
        let interval = [open.begin, end];
        let differs = |what: &str, made: u64, found: u64| {
            let text = format!("{what}: {} instead of {}", count(found), count(made));
            let gap = Gap::new(&self.probe, GapKind::LedgerOpen, text);
            gap.interval(Some(interval)).count(made.abs_diff(found))
        };
        let Packets { received, handled, dropped } = &counts.packets;
        let accounted = handled + dropped.values().sum::<u64>();
        if accounted != *received {
            gaps.push(differs("packets handled or dropped", *received, accounted));
        }
        for (name, records) in &counts.outputs {
            let accounted = records.sent + records.lost.values().sum::<u64>();
            if accounted != records.made {
                let gap = differs("records sent or lost", records.made, accounted);
                gaps.push(gap.output(name));
            }
            let kind = Kind::ALL.into_iter().find(|kind| kind.folder() == name);
            let rows = kind.map(|kind| open.rows.get(&kind).copied().unwrap_or(0));
            if let Some(rows) = rows.filter(|rows| *rows != records.sent) {
                gaps.push(differs("rows of the files of the run", records.sent, rows).output(name));
            }
        }
        self.losses(&open.start, counts, interval, gaps);
    }

    /// What a run lost.
    fn losses(&self, start: &Start, counts: &Counts, interval: [u64; 2], gaps: &mut Vec<Gap>) {
        // Times in captures step by themselves.
        if start.live && counts.clock_steps > 0 {
            let text = format!("the clock was set {} times", count(counts.clock_steps));
            let gap = Gap::new(&self.probe, GapKind::Clock, text);
            gaps.push(gap.interval(Some(interval)).count(counts.clock_steps));
        }
        let dropped = counts.packets.dropped.iter();
        for (reason, packets) in dropped.filter(|(reason, _)| !NOT_ASKED_FOR.contains(&&reason[..]))
        {
            let text = format!("{} packets were dropped: {reason}", count(*packets));
            let gap = Gap::new(&self.probe, GapKind::PacketsDropped, text);
            gaps.push(gap.interval(Some(interval)).count(*packets));
        }
        for (name, records) in &counts.outputs {
            for (reason, lost) in &records.lost {
                let text = format!("{} records were lost: {reason}", count(*lost));
                let gap = Gap::new(&self.probe, GapKind::RecordsLost, text);
                gaps.push(gap.interval(Some(interval)).output(name).count(*lost));
            }
        }
    }

    /// The number of runs. `running`: a process writes the files.
    pub(super) fn end(self, running: bool, gaps: &mut Vec<Gap>) -> u64 {
        match &self.open {
            Some(open) if running => {
                self.losses(&open.start, &open.counts, [open.begin, self.time], gaps);
            }
            Some(open) => self.end_early(open, self.time, gaps),
            None => {}
        }
        self.runs
    }
}
