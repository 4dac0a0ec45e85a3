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
    /// Its counts at the last file, and the time of that.
    counts: Counts,
    counted: u64,
    /// Where its complete files of records end.
    written: u64,
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
                    let rows = open.rows.entry(file.of).or_default();
                    *rows = rows.saturating_add(file.rows);
                    let counts = file.so_far.clone().unwrap_or_default();
                    losses(&self.probe, open, &counts, line.time, gaps);
                    (open.counts, open.counted) = (counts, line.time);
                    let last =
                        file.sums.as_ref().and_then(|sums| sums.intervals().keys().next_back());
                    let end = last.map_or(0, |last| last.saturating_add(file.interval));
                    open.written = open.written.max(end);
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
        let (start, counted, written) = (start.clone(), begin, begin);
        self.open = Some(Open { start, begin, rows, counts, counted, written });
    }

    /// A run whose process ended early.
    fn end_early(&self, open: &Open, until: u64, gaps: &mut Vec<Gap>) {
        let text =
            format!("process {} ended early: what it had not written is lost", open.start.process);
        let gap = Gap::new(&self.probe, GapKind::RunEndedEarly, text);
        // Times in captures are others than those of the run.
        let from = if open.start.live { open.written.min(until) } else { open.begin };
        gaps.push(gap.interval(Some([from, until])));
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
        let accounted = sum(dropped).saturating_add(*handled);
        if accounted != *received {
            gaps.push(differs("packets handled or dropped", *received, accounted));
        }
        for (name, records) in &counts.outputs {
            let accounted = sum(&records.lost).saturating_add(records.sent);
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
        losses(&self.probe, open, counts, end, gaps);
    }

    /// The number of runs. `running`: a process writes the files.
    pub(super) fn end(self, running: bool, gaps: &mut Vec<Gap>) -> u64 {
        match &self.open {
            Some(open) if !running => self.end_early(open, self.time, gaps),
            _ => {}
        }
        self.runs
    }
}

fn sum(numbers: &BTreeMap<String, u64>) -> u64 {
    numbers.values().fold(0, |all, number| all.saturating_add(*number))
}

/// What a run lost since its counts before.
fn losses(probe: &str, open: &Open, counts: &Counts, time: u64, gaps: &mut Vec<Gap>) {
    let interval = Some([open.counted, time]);
    let gap =
        |kind, text: String, number| Gap::new(probe, kind, text).interval(interval).count(number);
    // Times in captures step by themselves.
    let steps = counts.clock_steps.saturating_sub(open.counts.clock_steps);
    if open.start.live && steps > 0 {
        gaps.push(gap(GapKind::Clock, format!("the clock was set {} times", count(steps)), steps));
    }
    // The reasons have finer names at the end.
    let not_handled = |counts: &Counts| {
        let all = counts.packets.dropped.iter();
        let all = all.filter(|(reason, _)| !NOT_ASKED_FOR.contains(&&reason[..]));
        all.fold(0, |sum: u64, (_, packets)| sum.saturating_add(*packets))
    };
    let dropped = not_handled(counts).saturating_sub(not_handled(&open.counts));
    if dropped > 0 {
        let text = format!("{} packets were dropped", count(dropped));
        gaps.push(gap(GapKind::PacketsDropped, text, dropped));
    }
    for (name, records) in &counts.outputs {
        for (reason, lost) in &records.lost {
            let before = open.counts.outputs.get(name).and_then(|before| before.lost.get(reason));
            let lost = lost.saturating_sub(before.copied().unwrap_or(0));
            if lost > 0 {
                let noun = if lost == 1 { "record was" } else { "records were" };
                let text = format!("{} {noun} lost: {reason}", count(lost));
                gaps.push(gap(GapKind::RecordsLost, text, lost).output(name));
            }
        }
    }
}
