//! The values of the terminal view: the last second, the last interval, and messages.

use std::collections::VecDeque;
use std::time::Duration;

use ringtap_base::text::shown;
use ringtap_engine::Watch;
use ringtap_export::Status;
use ringtap_monitor::EndedInterval;
use ringtap_monitor::report::Interval;
use ringtap_monitor::report::activity::Activity;

use crate::loads::ThreadLoad;

/// Seconds of history: more than the usual width of a terminal.
const HISTORY: usize = 256;

/// Most messages kept.
const MESSAGES: usize = 64;

/// The list of the busiest hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Order {
    /// The first of each list.
    #[default]
    Mixed,
    Sent,
    Received,
    Packets,
    Peers,
    Change,
}

impl Order {
    const ALL: [Self; 6] =
        [Self::Mixed, Self::Sent, Self::Received, Self::Packets, Self::Peers, Self::Change];

    fn next(self) -> Self {
        let at = Self::ALL.iter().position(|order| *order == self).unwrap_or(0);
        Self::ALL[(at + 1) % Self::ALL.len()]
    }

    /// As a title ends.
    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::Mixed => "",
            Self::Sent => " by octets sent",
            Self::Received => " by octets received",
            Self::Packets => " by packets received",
            Self::Peers => " by hosts sent to",
            Self::Change => " by change",
        }
    }
}

/// A list of flows.
#[derive(Debug)]
pub(super) struct List {
    /// The word of its table.
    pub(super) word: &'static str,
    pub(super) title: &'static str,
}

/// The lists of flows.
const LISTS: [List; 6] = [
    List { word: "flows", title: "Flows, live ones first" },
    List { word: "hosts", title: "Hosts of the last 5 minutes" },
    List { word: "pairs", title: "Pairs of the last 5 minutes" },
    List { word: "applications", title: "Applications of the last 5 minutes" },
    List { word: "names", title: "Names of the last 5 minutes" },
    List { word: "failed", title: "Failed connections of the last 5 minutes" },
];

/// Rows of a terminal that has room for a list below the rest.
pub(super) const TALL: u16 = 34;

/// The state of an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Health {
    pub(super) name: String,
    pub(super) failing: bool,
    pub(super) sent: u64,
    pub(super) lost: u64,
    pub(super) queued_bytes: u64,
}

impl Health {
    fn of(status: &Status) -> Self {
        Self {
            name: shown(&status.name).into_owned(),
            failing: status.failing,
            sent: status.sent,
            lost: status.lost_total(),
            queued_bytes: status.queued_bytes,
        }
    }
}

/// All displayed values.
#[derive(Clone, Default)]
pub(super) struct View {
    pub(super) title: String,
    /// Most live flows.
    pub(super) max_flows: u64,
    /// The values are those of a moment before.
    pub(super) paused: bool,
    pub(super) help: bool,
    pub(super) order: Order,
    /// The place of the chosen list.
    pub(super) list: Option<usize>,
    /// The lines of the shown list.
    pub(super) lines: Vec<String>,
    pub(super) elapsed: Duration,
    /// Packets per second, latest last.
    pub(super) rates: VecDeque<u64>,
    /// Bits per second in the last second, as captured.
    pub(super) bits: f64,
    pub(super) now: Totals,
    pub(super) outputs: Vec<Health>,
    /// Losses besides dropped packets and records, in words.
    pub(super) losses: Vec<String>,
    /// Resident memory, if known.
    pub(super) memory_bytes: Option<u64>,
    /// Packets per second, by queue.
    pub(super) queues: Vec<u64>,
    pub(super) loads: Vec<ThreadLoad>,
    pub(super) interval: Option<(Interval, u64)>,
    pub(super) activity: Option<Activity>,
    pub(super) messages: VecDeque<String>,
}

/// Counters since the start of the run.
#[derive(Clone, Default)]
pub(super) struct Totals {
    elapsed: Duration,
    pub(super) packets: u64,
    pub(super) bytes: u64,
    pub(super) dropped: u64,
    pub(super) shed: u64,
    parts: Vec<u64>,
}

impl View {
    pub(super) fn new(title: String, queues: usize, max_flows: u64) -> Self {
        let now = Totals { parts: vec![0; queues], ..Totals::default() };
        let title = shown(&title).into_owned();
        Self { title, now, queues: vec![0; queues], max_flows, ..Self::default() }
    }

    /// Shows another list of hosts.
    pub(super) fn sort(&mut self) {
        self.order = self.order.next();
    }

    /// Chooses the next list, or none after the last.
    pub(super) fn turn(&mut self) {
        self.list = match self.list {
            None => Some(0),
            Some(at) => Some(at + 1).filter(|&at| at < LISTS.len()),
        };
    }

    /// The list that a terminal of this height shows: a tall one always has room for one.
    pub(super) fn shown_list(&self, height: u16) -> Option<&'static List> {
        let place = self.list.or((height >= TALL).then_some(0));
        place.and_then(|at| LISTS.get(at))
    }

    /// Sets the state of the outputs.
    pub(super) fn set_outputs(&mut self, outputs: &[Status]) {
        self.outputs = outputs.iter().map(Health::of).collect();
    }

    /// Flow records that outputs lost.
    pub(super) fn records_lost(&self) -> u64 {
        self.outputs.iter().map(|output| output.lost).sum()
    }

    /// Sets the current values, and computes the rates since the last call.
    pub(super) fn update(&mut self, watch: &Watch, elapsed: Duration, loads: Vec<ThreadLoad>) {
        let now = Totals {
            elapsed,
            packets: watch.packets.get(),
            bytes: watch.bytes.get(),
            dropped: watch.dropped.get(),
            shed: watch.shed.get(),
            parts: watch.packets.parts(self.queues.len()),
        };
        let seconds = elapsed.saturating_sub(self.now.elapsed).as_secs_f64();
        if seconds > 0.0 {
            let per_second = |now: u64, then: u64| now.saturating_sub(then) as f64 / seconds;
            self.rates.push_back(per_second(now.packets, self.now.packets) as u64);
            if self.rates.len() > HISTORY {
                self.rates.pop_front();
            }
            self.bits = 8.0 * per_second(now.bytes, self.now.bytes);
            let parts = now.parts.iter().zip(&self.now.parts);
            self.queues = parts.map(|(&now, &then)| per_second(now, then) as u64).collect();
        }
        (self.now, self.elapsed, self.loads) = (now, elapsed, loads);
    }

    /// Sets the last interval.
    pub(super) fn interval(&mut self, ended: &EndedInterval<'_>) {
        self.interval = Some((ended.interval.clone(), ended.live));
        self.activity = ended.activity.cloned();
    }

    pub(super) fn add_message(&mut self, line: &str) {
        if self.messages.len() == MESSAGES {
            self.messages.pop_front();
        }
        self.messages.push_back(line.to_string());
    }
}
