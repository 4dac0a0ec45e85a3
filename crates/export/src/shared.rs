//! State of one output that workers, the writer and the caller share: counters, status, and deadlines.
//!
//! Workers update the counters once a block, and for each record they drop; the writer once a message or block.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::thread::Thread;
use std::time::{Duration, Instant, SystemTime};

use ringtap_base::without_secrets;

use crate::RecordTotals;
use crate::space::Space;
use crate::summary::{Items, Reason, Sent, Status, Summary};

/// How long to wait at the end for a collector that accepts nothing.
pub const LINGER: Duration = Duration::from_secs(5);

/// After an interrupt, an output that accepts nothing for this time is given up.
const GRACE: Duration = Duration::from_millis(400);

/// A step of a wait, after which its end is checked.
const STEP: Duration = Duration::from_millis(20);

/// How long the end of a run waits for an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitPolicy {
    /// A collector: [`LINGER`] without progress once the run ends.
    Collector,
    /// A pipe or device: without limit, until an interrupt.
    Pipe,
    /// A regular file: the same, and [`LINGER`] after an interrupt, because a disk may be slow.
    File,
}

/// Counters of records, packets and octets.
#[derive(Default)]
struct Counts {
    records: AtomicU64,
    packets: AtomicU64,
    octets: AtomicU64,
}

// Relaxed throughout: the counters are statistics. A reader of the final values has joined the threads, or reports that
// a thread was abandoned.
impl Counts {
    fn add(&self, counts: RecordTotals) {
        self.records.fetch_add(counts.records, Ordering::Relaxed);
        self.packets.fetch_add(counts.packets, Ordering::Relaxed);
        self.octets.fetch_add(counts.octets, Ordering::Relaxed);
    }

    #[cfg(feature = "parquet")]
    fn sub(&self, counts: RecordTotals) {
        self.records.fetch_sub(counts.records, Ordering::Relaxed);
        self.packets.fetch_sub(counts.packets, Ordering::Relaxed);
        self.octets.fetch_sub(counts.octets, Ordering::Relaxed);
    }

    fn get(&self) -> RecordTotals {
        RecordTotals {
            records: self.records.load(Ordering::Relaxed),
            packets: self.packets.load(Ordering::Relaxed),
            octets: self.octets.load(Ordering::Relaxed),
        }
    }
}

/// The last error of an output.
#[derive(Clone)]
struct LastError {
    text: String,
    at: SystemTime,
}

pub(crate) struct Shared {
    name: String,
    items: Items,
    wait_policy: WaitPolicy,
    /// True if packets come from an interface.
    live: bool,
    base: Instant,
    made: Counts,
    sent: Counts,
    messages: AtomicU64,
    message_octets: AtomicU64,
    lost: [Counts; Reason::ALL.len()],
    /// Records that were lost before they were in a block.
    unnumbered: AtomicU64,
    /// Bytes in blocks that wait for the writer.
    queued: AtomicU64,
    /// Increases once a second and when the writer is idle: each worker then hands over its block at its next mark.
    /// Written by the writer; starts at 1.
    round: AtomicU32,
    /// Milliseconds since `base`, 0: not yet.
    interrupted: AtomicU64,
    ending: AtomicU64,
    /// When something was last accepted, or there was nothing to write.
    progress: AtomicU64,
    /// Finish the file and start another one.
    renew: AtomicBool,
    /// Try again at once.
    retry: AtomicBool,
    failing: AtomicBool,
    /// What the last error was about is tried again.
    retrying: AtomicBool,
    /// The run was aborted: files are not finished.
    cancelled: AtomicBool,
    /// Old files that were removed.
    removed: AtomicU64,
    space: Mutex<Option<Space>>,
    error: Mutex<Option<LastError>>,
    /// Set by the writer at its end: why the output failed, if it did.
    failure: Mutex<Option<String>>,
    writer: OnceLock<Thread>,
}

impl Shared {
    pub(crate) fn new(name: String, wait_policy: WaitPolicy, live: bool) -> Self {
        Self {
            name,
            items: Items::Flows,
            wait_policy,
            live,
            base: now(),
            made: Counts::default(),
            sent: Counts::default(),
            messages: AtomicU64::new(0),
            message_octets: AtomicU64::new(0),
            lost: Default::default(),
            unnumbered: AtomicU64::new(0),
            queued: AtomicU64::new(0),
            round: AtomicU32::new(1),
            interrupted: AtomicU64::new(0),
            ending: AtomicU64::new(0),
            progress: AtomicU64::new(0),
            renew: AtomicBool::new(false),
            retry: AtomicBool::new(false),
            failing: AtomicBool::new(false),
            retrying: AtomicBool::new(false),
            cancelled: AtomicBool::new(false),
            removed: AtomicU64::new(0),
            space: Mutex::new(None),
            error: Mutex::new(None),
            failure: Mutex::new(None),
            writer: OnceLock::new(),
        }
    }

    /// The same output for other items.
    pub(crate) fn of(self, items: Items) -> Self {
        Self { items, ..self }
    }

    /// A worker hands over a block.
    pub(crate) fn hand_over(&self, flows: RecordTotals, bytes: usize) {
        self.made.add(flows);
        self.queued.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// The writer has processed a block of this many bytes.
    pub(crate) fn taken(&self, bytes: usize) {
        self.queued.fetch_sub(bytes as u64, Ordering::Relaxed);
    }

    /// Bytes that wait for the writer.
    pub(crate) fn queued(&self) -> u64 {
        self.queued.load(Ordering::Relaxed)
    }

    /// The time since the output accepted something, or had nothing to write.
    #[cfg(feature = "kafka")]
    pub(crate) fn stalled_for(&self) -> Duration {
        let progress = self.progress.load(Ordering::Relaxed);
        Duration::from_millis(self.now_ms().saturating_sub(progress))
    }

    /// A worker dropped records that are in no block.
    pub(crate) fn drop_made(&self, reason: Reason, flows: RecordTotals) {
        self.made.add(flows);
        self.unnumbered.fetch_add(flows.records, Ordering::Relaxed);
        self.lose(reason, flows);
    }

    /// Records so far that the writer did not get, because they were in no block.
    #[cfg(feature = "kafka")]
    pub(crate) fn unnumbered(&self) -> u64 {
        self.unnumbered.load(Ordering::Relaxed)
    }

    pub(crate) fn lose(&self, reason: Reason, flows: RecordTotals) {
        if flows.records > 0 {
            self.lost[reason as usize].add(flows);
        }
    }

    pub(crate) fn send(&self, sent: Sent) {
        self.sent.add(sent.flows);
        self.messages.fetch_add(sent.messages, Ordering::Relaxed);
        self.message_octets.fetch_add(sent.message_octets, Ordering::Relaxed);
    }

    /// Records in a file that could not be finished are lost, for this reason.
    #[cfg(feature = "parquet")]
    pub(crate) fn take_back(&self, reason: Reason, flows: RecordTotals) {
        self.sent.sub(flows);
        self.lose(reason, flows);
    }

    pub(crate) fn sent(&self) -> Sent {
        Sent {
            flows: self.sent.get(),
            messages: self.messages.load(Ordering::Relaxed),
            message_octets: self.message_octets.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn not_sent(&self) -> RecordTotals {
        let mut all = RecordTotals::default();
        self.lost.iter().for_each(|counts| all += counts.get());
        all
    }

    /// The output accepted data.
    pub(crate) fn works(&self) {
        self.failing.store(false, Ordering::Relaxed);
        self.note_progress();
    }

    /// The output accepted a part of the data, or nothing waits for it.
    pub(crate) fn note_progress(&self) {
        self.progress.store(self.now_ms(), Ordering::Relaxed);
    }

    /// The output did not accept the data.
    pub(crate) fn fails(&self, error: &dyn std::fmt::Display) {
        *lock(&self.error) = Some(LastError {
            text: without_secrets(&error.to_string()).into_owned(),
            at: wall_clock(),
        });
        self.retrying.store(true, Ordering::Relaxed);
        self.failing.store(true, Ordering::Relaxed);
    }

    /// What the last error was about is given up; nothing else is affected.
    pub(crate) fn gives_up(&self) {
        self.retrying.store(false, Ordering::Relaxed);
    }

    pub(crate) fn is_failing(&self) -> bool {
        self.failing.load(Ordering::Relaxed)
    }

    pub(crate) fn is_collector(&self) -> bool {
        self.wait_policy == WaitPolicy::Collector
    }

    /// Whether it is a regular file.
    pub(crate) fn is_file(&self) -> bool {
        self.wait_policy == WaitPolicy::File
    }

    pub(crate) fn last_error(&self) -> Option<String> {
        lock(&self.error).as_ref().map(|error| error.text.clone())
    }

    /// The writer's result at its end. A live run that lost records and recovered is a success; a run over files that
    /// lost some is a failure.
    pub(crate) fn judge(&self) {
        let lost = self.lost[Reason::Failed as usize].get().records > 0;
        if self.is_failing() || (!self.live && lost) {
            self.set_failure(self.last_error().unwrap_or_default());
        }
    }

    pub(crate) fn set_failure(&self, why: String) {
        lock(&self.failure).get_or_insert(why);
    }

    /// The number of requests to hand over blocks.
    pub(crate) fn round(&self) -> u32 {
        self.round.load(Ordering::Relaxed)
    }

    pub(crate) fn next_round(&self) {
        self.round.fetch_add(1, Ordering::Relaxed);
    }

    /// HUP: finish files and start new ones, and try again what failed.
    pub(crate) fn request_renewal(&self) {
        self.renew.store(true, Ordering::Relaxed);
        self.retry.store(true, Ordering::Relaxed);
        self.wake_writer();
    }

    pub(crate) fn take_renewal(&self) -> bool {
        self.renew.load(Ordering::Relaxed) && self.renew.swap(false, Ordering::Relaxed)
    }

    /// Sets the number of old files removed so far, and the space of the file system.
    pub(crate) fn note_store(&self, removed: u64, space: Option<Space>) {
        self.removed.store(removed, Ordering::Relaxed);
        *lock(&self.space) = space;
    }

    /// The user wants to end the run.
    pub(crate) fn interrupt(&self) {
        self.begin(&self.interrupted);
    }

    /// The run was aborted: incomplete files are removed.
    pub(crate) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
        self.wake_writer();
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// No more packets arrive.
    pub(crate) fn end(&self) {
        self.retry.store(true, Ordering::Relaxed);
        self.begin(&self.ending);
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Relaxed) > 0
    }

    /// The time since the end of the run.
    pub(crate) fn ended_for(&self) -> Option<Duration> {
        let since = Some(self.ending.load(Ordering::Relaxed)).filter(|since| *since > 0)?;
        Some(Duration::from_millis(self.now_ms().saturating_sub(since)))
    }

    fn begin(&self, since: &AtomicU64) {
        // The first call counts.
        let _ = since.compare_exchange(0, self.now_ms(), Ordering::Relaxed, Ordering::Relaxed);
        self.wake_writer();
    }

    /// The end of waiting for the output, in milliseconds since the start; `None`: no limit yet.
    fn deadline_ms(&self) -> Option<u64> {
        let (interrupted, ending) =
            (self.interrupted.load(Ordering::Relaxed), self.ending.load(Ordering::Relaxed));
        let (since, wait_policy) = match self.wait_policy {
            WaitPolicy::File if interrupted > 0 => (interrupted, LINGER),
            _ if interrupted > 0 => (interrupted, GRACE),
            WaitPolicy::Collector if ending > 0 => (ending, LINGER),
            _ => return None,
        };
        let progress = self.progress.load(Ordering::Relaxed);
        Some(since.max(progress) + wait_policy.as_millis() as u64)
    }

    /// Returns true if the output is not waited for any more.
    pub(crate) fn over(&self) -> bool {
        self.is_cancelled() || self.deadline_ms().is_some_and(|end| self.now_ms() >= end)
    }

    /// The longest wait from now on.
    pub(crate) fn left(&self) -> Duration {
        self.deadline_ms()
            .map_or(Duration::MAX, |end| Duration::from_millis(end.saturating_sub(self.now_ms())))
    }

    /// Pauses the writer before it tries again. The pause ends early when the run ends or a retry is requested.
    pub(crate) fn pause(&self, time: Duration) {
        let begin = now();
        while !self.over() && !self.retry.swap(false, Ordering::Relaxed) {
            let left = time.saturating_sub(begin.elapsed());
            if left.is_zero() {
                break;
            }
            std::thread::park_timeout(left.min(STEP));
        }
    }

    /// Sets the thread that [`wake_writer`](Self::wake_writer) wakes.
    pub(crate) fn set_writer(&self, thread: Thread) {
        let _ = self.writer.set(thread);
    }

    pub(crate) fn wake_writer(&self) {
        if let Some(thread) = self.writer.get() {
            thread.unpark();
        }
    }

    fn now_ms(&self) -> u64 {
        // Starts at 1: 0 means "not yet".
        self.base.elapsed().as_millis() as u64 + 1
    }

    /// The summary of an output whose thread was abandoned or panicked: unfinished records count as lost, even if the
    /// thread continues.
    pub(crate) fn abandon(&self, why: &str) -> Summary {
        let error = self.last_error().filter(|_| self.is_failing());
        self.set_failure(error.unwrap_or_else(|| why.to_owned()));
        let mut summary = self.summary();
        let mut rest = self.made.get();
        rest -= summary.sent.flows;
        summary.not_sent.values().for_each(|lost| rest -= *lost);
        if rest.records > 0 {
            *summary.not_sent.entry(Reason::TooLate.name()).or_default() += rest;
            self.lose(Reason::TooLate, rest);
        }
        summary
    }

    pub(crate) fn status(&self) -> Status {
        let error = lock(&self.error).clone();
        Status {
            name: self.name.clone(),
            items: self.items,
            made: self.made.get().records,
            sent: self.sent.get().records,
            lost: Reason::ALL.map(|reason| (reason, self.lost[reason as usize].get().records)),
            queued_bytes: self.queued.load(Ordering::Relaxed),
            files_removed: self.removed.load(Ordering::Relaxed),
            space: lock(&self.space).clone(),
            failing: self.is_failing(),
            retrying: self.retrying.load(Ordering::Relaxed),
            last_error: error.map(|error| (error.text, error.at)),
        }
    }

    pub(crate) fn summary(&self) -> Summary {
        let lost = Reason::ALL.into_iter().map(|reason| (reason, &self.lost[reason as usize]));
        let lost = lost.map(|(reason, counts)| (reason.name(), counts.get()));
        Summary {
            output: self.name.clone(),
            items: self.items,
            sent: self.sent(),
            not_sent: lost.filter(|(_, counts)| counts.records > 0).collect(),
            failure: lock(&self.failure).clone(),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poison| poison.into_inner())
}

#[expect(
    clippy::disallowed_methods,
    reason = "how long an output is waited for is not packet time"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

#[expect(
    clippy::disallowed_methods,
    reason = "when an output failed, and when a message was sent, is no result"
)]
pub(crate) fn wall_clock() -> SystemTime {
    SystemTime::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared() -> Shared {
        Shared::new("test".into(), WaitPolicy::Collector, true)
    }

    #[test]
    fn a_pause_ends_when_the_run_ends() {
        let shared = shared();
        shared.end();
        shared.pause(Duration::from_secs(600));
        assert!(!shared.over(), "it did not wait for the deadline");
    }

    #[test]
    fn the_time_since_the_end_is_that_of_the_first_call() {
        let mut shared = shared();
        assert_eq!(shared.ended_for(), None);
        shared.end();
        shared.base -= Duration::from_secs(60);
        shared.end();
        assert!(shared.ended_for() >= Some(Duration::from_secs(60)));
    }

    #[test]
    fn an_output_with_progress_is_not_given_up() {
        let mut shared = shared();
        shared.base -= Duration::from_secs(60);
        shared.interrupted.store(1, Ordering::Relaxed);
        assert!(shared.over());
        shared.note_progress();
        assert!(shared.deadline_ms() > Some(shared.progress.load(Ordering::Relaxed)));
    }

    #[test]
    fn an_abandoned_output_fails_with_its_last_error() {
        let shared = shared();
        shared.fails(&"no route");
        assert_eq!(shared.abandon("stuck").failure.as_deref(), Some("no route"));
    }
}
