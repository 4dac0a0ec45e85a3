//! Parts of a run: a state for each interval, which is handed over during the run.
//!
//! ```text
//! worker: a mark in another interval ─▶ WorkerRows ─┐
//! worker: the same mark ─────────────▶ WorkerRows ─┴▶ Collector: all have reached it ─▶ StatePart ─▶ sorted and written elsewhere
//! ```
//!
//! Parts are numbered from 0, and the state at the end is the last one. All of them together are the state of the run.

use std::collections::BTreeMap;
use std::io::Write;

use ringtap_engine::Plan;

use super::header::{Header, MergeError, Run, Settings, Span};
use super::inputs::write_images;
use super::{Counts, WorkerRows, image, saved, tables_of};
use crate::Options;

/// Receives the parts of a run's state. It is called by the thread of the merger.
pub type OnPart = Box<dyn FnMut(StatePart) + Send>;

/// A part of a run's state.
pub struct StatePart {
    /// Its number, from 0.
    pub number: u64,
    /// When it began, in packet time, nanoseconds since 1970.
    pub from_ns: u64,
    /// When it ended.
    pub until_ns: u64,
    workers: Vec<WorkerRows>,
}

/// What the states before have of the numbers that are counted over the whole run.
#[derive(Debug, Default)]
pub struct Earlier {
    sums: BTreeMap<String, u64>,
    lacks: BTreeMap<String, u64>,
}

/// The name of packets lost by chance, among the losses.
pub(crate) const PACKETS_DROPPED: &str = "packets dropped";

/// The rise of each number since `before`, which becomes `now`; without those that did not rise.
fn since<K: Into<String>>(
    before: &mut BTreeMap<String, u64>,
    now: impl IntoIterator<Item = (K, u64)>,
) -> BTreeMap<String, u64> {
    let rise = |(name, number): (K, u64)| {
        let name = name.into();
        let more = number.saturating_sub(before.insert(name.clone(), number).unwrap_or(0));
        (more > 0).then_some((name, more))
    };
    now.into_iter().filter_map(rise).collect()
}

impl Earlier {
    /// The sums that are new in these counts.
    pub(super) fn sums(&mut self, counts: &Counts) -> BTreeMap<String, u64> {
        since(&mut self.sums, counts.named())
    }

    /// The losses that are new.
    pub(super) fn lacks(&mut self, lacks: BTreeMap<&'static str, u64>) -> BTreeMap<String, u64> {
        since(&mut self.lacks, lacks)
    }
}

impl StatePart {
    /// Writes the state. `dropped` are the packets dropped so far.
    ///
    /// # Errors
    /// If the run has none, or writing fails.
    pub fn write<W: Write>(
        mut self,
        plan: &Plan<Options>,
        dropped: u64,
        earlier: &mut Earlier,
        out: W,
    ) -> Result<W, MergeError> {
        let tables = tables_of(saved(plan.app.analyses));
        let sort = |worker: &mut WorkerRows| {
            let mut rows = std::mem::take(&mut worker.rows).into_iter();
            image(&[], &tables, |_, empty| {
                if let Some(rows) = rows.next() {
                    *empty = rows;
                }
            })
        };
        let images: Vec<Vec<u8>> = self.workers.iter_mut().map(sort).collect::<Result<_, _>>()?;
        let handled: u64 = self.workers.iter().map(|worker| worker.handled).sum();
        let received = earlier.sums.get("received").copied().unwrap_or(0) + handled;
        let counts = Counts { received, ..Counts::default() };
        let lacks = earlier.lacks(BTreeMap::from([(PACKETS_DROPPED, dropped)]));
        let Self { number, from_ns, until_ns, .. } = self;
        let span = Span { first: number, last: number, from_ns, until_ns };
        let header = header(plan, span, false, until_ns, lacks)?;
        write_images(header, &images, &earlier.sums(&counts), out)
    }
}

/// The header of a part of a run.
pub(super) fn header(
    plan: &Plan<Options>,
    span: Span,
    ended: bool,
    until_ns: u64,
    lacks: BTreeMap<String, u64>,
) -> Result<Header, MergeError> {
    let identity = plan.app.state.as_ref().ok_or(MergeError::Damaged("the run has none"))?;
    let run = Run { probe: identity.probe.clone(), parts: vec![span], ended };
    let runs = BTreeMap::from([(format!("{:016x}", identity.run), run)]);
    Ok(Header { settings: Settings::of(plan), runs, until_ns, lacks })
}

/// Collects the rows of all workers at a mark.
#[derive(Default)]
pub(crate) struct Collector {
    on_part: Option<OnPart>,
    /// By the number of the mark: its time, and the rows of workers.
    waiting: BTreeMap<u64, (u64, Vec<WorkerRows>)>,
    /// The number of the next part.
    pub(crate) next: u64,
    /// The end of the last part.
    pub(crate) until_ns: Option<u64>,
}

impl Collector {
    pub(crate) fn new(on_part: Option<OnPart>) -> Self {
        Self { on_part, ..Self::default() }
    }

    pub(crate) fn add(&mut self, mark: u64, time_ns: u64, rows: WorkerRows) {
        self.waiting.entry(mark).or_insert_with(|| (time_ns, Vec::new())).1.push(rows);
    }

    /// All workers have reached this mark: hands over what was saved until then as one part.
    pub(crate) fn reached(&mut self, mark: u64) {
        let later = self.waiting.split_off(&mark.saturating_add(1));
        let all = std::mem::replace(&mut self.waiting, later);
        let Some(until_ns) = all.values().map(|(time_ns, _)| *time_ns).max() else { return };
        let workers: Vec<_> = all.into_values().flat_map(|(_, workers)| workers).collect();
        let first_ns = workers.iter().map(|worker| worker.first_ns).min().unwrap_or(until_ns);
        let from_ns = self.until_ns.unwrap_or(first_ns.min(until_ns));
        let part = StatePart { number: self.next, from_ns, until_ns, workers };
        self.next += 1;
        self.until_ns = Some(until_ns);
        if let Some(on_part) = &mut self.on_part {
            on_part(part);
        }
    }
}
