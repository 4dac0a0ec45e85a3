//! What an analysis is: its part in a worker, its part in the merger, and its section of the report.

use std::fmt::Debug;
use std::sync::Arc;

use ringtap_enrich::{Stage, WatchList};
use ringtap_flow::{Event, FlowRecord, Response};
use ringtap_stage::Shard;
use ringtap_state::{Row, Rows, Schema};
use ringtap_terminal::page::Page;
use ringtap_wire::{HashKey, PacketRecord};
use serde::Serialize;

use super::activity::Limits;
use super::changes::{ChangeLimits, OwnNetworks};
use super::scans::Suspects;
use crate::alerts::Signal;
use crate::times::Times;
use crate::totals::Totals;

/// What the tables of an analysis are of. It decides what adds up the volumes of flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// A run: records.
    Run,
    /// A part of a run, for its state: slices; and records, for what is counted where a flow ends.
    Part,
    /// A merge of whole runs: as in a run, but for the volumes that states have by pair and port.
    WholeRuns,
    /// A merge of some parts of runs: the rows of slices.
    SomeParts,
}

/// What an analysis gets of a run: its options, and its part of the memory.
#[derive(Clone)]
pub struct Context {
    /// Reporting interval in packet time, nanoseconds; `None`: the whole run.
    pub interval_ns: Option<u64>,
    /// Number of failed attempts above which a source is a scanner.
    pub scan_threshold: u32,
    /// Number of failed attempts over UDP, less the answered ones, above which a source is a scanner.
    pub udp_scan_threshold: u32,
    /// Limits of a host in an interval.
    pub limits: Limits,
    /// What is a change of the user's own hosts.
    pub change_limits: ChangeLimits,
    /// The interval in which changes are found, nanoseconds.
    pub change_interval_ns: u64,
    /// The user's own networks.
    pub own_networks: OwnNetworks,
    /// Rows in each list.
    pub top: usize,
    /// The watched entries, if any.
    pub watch: Option<Arc<WatchList>>,
    /// What the tables are of.
    pub scope: Scope,
    /// The run whose state is saved, or 0.
    pub run: u64,
    /// Most live flows of all workers together.
    pub max_flows: u64,
    /// Bytes for the lists of names of all workers together, and as many in the merger.
    pub name_bytes: u64,
    /// Intervals of activity for which there is room.
    pub max_activities: u64,
    /// Key of all hash tables of the run.
    pub hash_key: HashKey,
    /// Share of the key space of each worker, in any unit.
    pub shares: Vec<u32>,
    /// Sources that may be scanning, marked by the workers.
    pub suspects: Arc<Suspects>,
    /// Sources that may be scanning over UDP.
    pub udp_suspects: Arc<Suspects>,
}

impl Context {
    /// A worker's part of the live flows.
    pub fn capacity_of(&self, shard: Shard) -> usize {
        self.part(self.max_flows, shard)
    }

    /// A worker's part of a number, in proportion to its part of the key space.
    pub(crate) fn part(&self, number: u64, shard: Shard) -> usize {
        let all: u64 = self.shares.iter().copied().map(u64::from).sum();
        match self.shares.get(shard.index) {
            Some(&own) if self.shares.len() == shard.count && all > 0 => {
                (u128::from(number) * u128::from(own)).div_ceil(u128::from(all)) as usize
            }
            _ => number.div_ceil(shard.count as u64) as usize,
        }
    }
}

/// An analysis in one worker: it owns a shard of the address pairs. It never blocks or fails, and
/// uses packet time alone.
pub trait Analysis: Sized {
    /// Whether it runs by default.
    const IN_ALL: bool = true;
    /// Whether its section is the same in every arrangement, and so part of the digest.
    const EXACT: bool = true;
    /// Whether its section is about something to act on, and stands before the others.
    const IS_FINDING: bool = false;
    /// Whether it needs flow records.
    const TAKES_RECORDS: bool = false;
    /// Whether it needs the messages in payloads.
    const TAKES_EVENTS: bool = false;
    /// Whether it needs slices of flows: packets and octets by interval.
    const TAKES_SLICES: bool = false;
    /// Memory for a live flow that shares no row with others, bytes.
    const FLOW_BYTES: u64 = 0;
    /// Fixed memory in each worker, bytes.
    const WORKER_BYTES: u64 = 0;

    /// The tables that it saves in a state: whole, so that thresholds and limits apply after a merge.
    const TABLES: &'static [&'static Schema] = &[];

    /// The tables that it makes of slices; those that are not in `TABLES` are absent from older states.
    const SLICE_TABLES: &'static [&'static Schema] = &[];

    /// The type of its partial results.
    type Found: Send;
    /// The type of its merger.
    type Merger: Merge<Self>;

    /// An analysis for a shard, with all its initial memory.
    fn new(context: &Context, shard: Shard) -> Self;

    /// Handles the packets that make flows, in stream order.
    #[inline(always)]
    fn on_packets(&mut self, _packets: &[PacketRecord]) {}

    /// Handles the record of a flow that has ended.
    #[inline(always)]
    fn on_record(&mut self, _record: &FlowRecord) {}

    /// Handles a slice of a flow.
    #[inline(always)]
    fn on_slice(&mut self, _slice: &FlowRecord) {}

    /// Handles a response, if response times are measured.
    #[inline(always)]
    fn on_response(&mut self, _response: &Response) {}

    /// Handles a message in a payload.
    fn on_event(&mut self, _event: &Event) {}

    /// The settings have changed: those of later packets are these.
    fn adopt(&mut self, _context: &Context, _shard: Shard) {}

    /// All packets before this time have arrived: hands over finished parts, if any.
    fn on_tick(&mut self, _time_ns: u64) -> Option<Self::Found> {
        None
    }

    /// Adds its part of the totals so far: losses for lack of room, sums.
    fn add_totals(&self, _totals: &mut Totals) {}

    /// Adds its rows to one of its tables, and changes nothing.
    fn save(&mut self, _table: &'static Schema, _rows: &mut Rows) {}

    /// Adds the rows of a slice to one of its tables.
    fn save_slice(_table: &'static Schema, _slice: &FlowRecord, _run: u64, _rows: &mut Rows) {}

    /// Adds a row of one of its tables, each of which comes once; `None` if it never saves such a row.
    fn load(&mut self, _table: &'static Schema, _row: &Row<'_>) -> Option<()> {
        None
    }

    /// Hands over everything.
    fn end(self) -> Self::Found;
}

/// Receives what an analysis reports for alerts.
pub(crate) type Signals<'a> = &'a mut dyn FnMut(Signal);

/// Joins the partial results of an analysis, in any order.
pub trait Merge<A: Analysis>: Sized {
    /// The section of the report.
    type Section: Section;

    /// An empty result.
    fn new(context: &Context) -> Self;

    /// Whether what `on_time` reports depends on the order in which partial results of marks are merged.
    const IN_ORDER: bool = false;

    /// Adds a worker's partial result of a mark: if `IN_ORDER`, of one that all workers have passed.
    fn merge(&mut self, found: A::Found);

    /// Memory of a partial result that waits until it may be merged, bytes: 0 unless `IN_ORDER`.
    fn bytes(_found: &A::Found) -> usize {
        0
    }

    /// Adds a worker's partial result of the end. Other workers may not have passed the last marks, so it must not change
    /// what `on_time` reports.
    fn merge_end(&mut self, found: A::Found) {
        self.merge(found);
    }

    /// The settings have changed, before partial results of workers that know the new ones.
    fn adopt(&mut self, _context: &Context) {}

    /// All workers have handed over everything before this time.
    fn on_time(&mut self, _time_ns: u64, _signals: Signals<'_>) {}

    /// Returns the section.
    fn end(self, signals: Signals<'_>) -> Self::Section;
}

/// An analysis' section of the report: sorted rows, integers.
pub trait Section: Clone + Debug + PartialEq + Serialize {
    /// Passes its addresses and names through the stage, and restores the order of rows that it changed. No output gets
    /// a section before that.
    fn pass(&mut self, stage: &mut Stage);

    /// Prints the section as text.
    fn show(&self, page: &mut Page, about: &About);
}

/// Context for printing a section.
pub struct About {
    /// Number of failed attempts above which a source is a scanner.
    pub scan_threshold: u32,
    /// The format of times.
    pub times: Times,
}
