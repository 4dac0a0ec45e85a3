//! The values of the terminal view: the last second, the last interval, and messages.

use std::collections::VecDeque;
use std::time::Duration;

use ringtap_engine::Watch;
use ringtap_monitor::EndedInterval;
use ringtap_monitor::report::Interval;
use ringtap_monitor::report::activity::Activity;

use super::loads::ThreadLoad;

/// Seconds of history: more than the usual width of a terminal.
const HISTORY: usize = 256;

/// Most messages kept.
const MESSAGES: usize = 64;

/// All displayed values.
#[derive(Default)]
pub(super) struct View {
    pub(super) title: String,
    pub(super) elapsed: Duration,
    /// Packets per second, latest last.
    pub(super) rates: VecDeque<u64>,
    /// Bits per second in the last second, as captured.
    pub(super) bits: f64,
    pub(super) now: Totals,
    /// Flow records that outputs lost.
    pub(super) records_lost: u64,
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
    pub(super) split: u64,
    parts: Vec<u64>,
}

impl View {
    pub(super) fn new(title: String, queues: usize) -> Self {
        let now = Totals { parts: vec![0; queues], ..Totals::default() };
        Self { title, now, queues: vec![0; queues], ..Self::default() }
    }

    /// Sets the current values, and computes the rates since the last call.
    pub(super) fn update(&mut self, watch: &Watch, elapsed: Duration, loads: Vec<ThreadLoad>) {
        let now = Totals {
            elapsed,
            packets: watch.packets.get(),
            bytes: watch.bytes.get(),
            dropped: watch.dropped.get(),
            shed: watch.shed.get(),
            split: watch.split.get(),
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
