//! What an analysis of another crate is, and how a run calls it.

use std::any::{Any, TypeId};
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ringtap_monitor::{Context, Custom, CustomPart, CustomSection};
use ringtap_stage::Shard;
use ringtap_terminal::page::Page;
use serde::Serialize;

use super::show;
use crate::state::{Row, Rows, Schema};
use crate::{Flow, Message, Packet};

/// An analysis. A run has one value of it in each worker, which sees all packets of its address pairs, in order; at the end
/// they are merged.
///
/// Results must not depend on which worker saw a pair, or on the time of the machine:
/// [`testing::equal_everywhere`](crate::testing::equal_everywhere) finds it if they do. It never blocks, and its memory is
/// bounded: a [`Table`](crate::Table) counts what has no room.
pub trait Analysis: Send + Sized + 'static {
    /// Its name in `--analyses` and in the report: lower-case letters, digits and underscores.
    const NAME: &'static str;

    /// Names of analyses of the command that it needs, such as `tcp` for the performance of connections or `statistics` for
    /// lengths and times, in records.
    const NEEDS: &'static [&'static str] = &[];

    /// Whether it has a method `record`. Without any such analysis, a run may have no table of flows.
    const TAKES_RECORDS: bool = true;

    /// Whether it has a method `message`.
    const TAKES_MESSAGES: bool = true;

    /// Memory for a live flow, bytes: each worker has as much for as many flows as the run has room for.
    const FLOW_BYTES: u64 = 0;

    /// Further memory of each worker, bytes.
    const WORKER_BYTES: u64 = 0;

    /// The tables of its state, for merges over runs and probes. A state in parts has a fresh value for each part, which gets
    /// what happens in that part. Numbers that are added must stay below 2⁶² over all tables of a merge. Their names begin with [`NAME`](Self::NAME) and a dot.
    const TABLES: &'static [&'static Schema] = &[];

    /// Its result. In JSON it is the field `custom` of the report, by the name of the analysis.
    type Report: Serialize + Send + Sync + 'static;

    /// An empty analysis.
    fn new(room: &Room) -> Self;

    /// Handles packets, in order, at most some hundred at once: with `--tunnels inner`, the default, those inside of tunnels
    /// instead of their carriers. Has [`packet`](Self::packet) handle each of them.
    #[inline(always)]
    fn packets(&mut self, packets: &[Packet]) {
        packets.iter().for_each(|packet| self.packet(packet));
    }

    /// Handles a packet.
    #[inline(always)]
    fn packet(&mut self, _packet: &Packet) {}

    /// Handles the record of a flow that has ended.
    #[inline(always)]
    fn record(&mut self, _flow: &Flow) {}

    /// Handles a message in a payload, such as a query of DNS, a certificate of TLS or a request of HTTP.
    #[inline(always)]
    fn message(&mut self, _message: &Message) {}

    /// All packets before this time have arrived: nanoseconds since 1970, at least twice in the shortest idle timeout.
    fn tick(&mut self, _time_ns: u64) {}

    /// Adds its rows to one of its tables, and changes nothing.
    fn save(&self, _table: &'static Schema, _rows: &mut Rows) {}

    /// Adds a row of one of its tables to itself; `None` if it never saves such a row.
    fn load(&mut self, _table: &'static Schema, _row: &Row<'_>) -> Option<()> {
        None
    }

    /// Adds what another worker has. Workers come in any order.
    fn merge(&mut self, other: Self);

    /// The result.
    fn report(self) -> Self::Report;

    /// Prints the result, as text and in HTML: by default as its JSON is, objects as rows.
    fn show(report: &Self::Report, page: &mut Page) {
        show::any(Self::NAME, report, page);
    }
}

/// What an analysis has room for, and a count of what had none.
#[derive(Clone, Debug)]
pub struct Room {
    /// Live flows of this worker at the same time, at most.
    pub flows: usize,
    /// The number of this worker, from 0.
    pub worker: usize,
    /// Workers of the run.
    pub workers: usize,
    lost: Arc<AtomicU64>,
}

impl Room {
    /// Room for this many live flows in the only worker, for tests of an analysis.
    pub fn for_flows(flows: usize) -> Self {
        Self { flows, worker: 0, workers: 1, lost: Arc::default() }
    }

    /// Counts what had no room, as a [`Table`](crate::Table) does. Above 0 the report is not exact, and says so.
    pub fn count_lost(&self, count: u64) {
        self.lost.fetch_add(count, Relaxed);
    }

    /// What had no room in this worker.
    pub fn lost(&self) -> u64 {
        self.lost.load(Relaxed)
    }

    pub(super) fn of(context: &Context, shard: Shard) -> Self {
        let flows = context.capacity_of(shard);
        Self { worker: shard.index, workers: shard.count, ..Self::for_flows(flows) }
    }
}

/// The definition of `A`.
struct Of<A>(PhantomData<fn() -> A>);

/// The definition of `A`, for the list of known analyses.
pub(super) fn definition<A: Analysis>() -> &'static dyn Custom {
    const { &Of::<A>(PhantomData) }
}

impl<A: Analysis> Custom for Of<A> {
    fn name(&self) -> &'static str {
        A::NAME
    }

    fn kind(&self) -> TypeId {
        TypeId::of::<A>()
    }

    fn needs(&self) -> &'static [&'static str] {
        A::NEEDS
    }

    fn takes_records(&self) -> bool {
        A::TAKES_RECORDS
    }

    fn takes_events(&self) -> bool {
        A::TAKES_MESSAGES
    }

    fn flow_bytes(&self) -> u64 {
        A::FLOW_BYTES
    }

    fn worker_bytes(&self) -> u64 {
        A::WORKER_BYTES
    }

    fn tables(&self) -> &'static [&'static Schema] {
        A::TABLES
    }

    fn part(&self, context: &Context, shard: Shard) -> Box<dyn CustomPart> {
        let room = Room::of(context, shard);
        Box::new(Part { analysis: A::new(&room), room })
    }
}

struct Part<A> {
    analysis: A,
    room: Room,
}

impl<A: Analysis> CustomPart for Part<A> {
    fn on_packets(&mut self, packets: &[Packet]) {
        self.analysis.packets(packets);
    }

    fn on_record(&mut self, record: &Flow) {
        if A::TAKES_RECORDS {
            self.analysis.record(record);
        }
    }

    fn on_event(&mut self, event: &Message) {
        if A::TAKES_MESSAGES {
            self.analysis.message(event);
        }
    }

    fn on_tick(&mut self, time_ns: u64) {
        self.analysis.tick(time_ns);
    }

    fn tables(&self) -> &'static [&'static Schema] {
        A::TABLES
    }

    fn save(&self, table: &'static Schema, rows: &mut Rows) {
        self.analysis.save(table, rows);
    }

    fn load(&mut self, table: &'static Schema, row: &Row<'_>) -> Option<()> {
        self.analysis.load(table, row)
    }

    fn merge(&mut self, other: Box<dyn CustomPart>) {
        // All workers have the same analyses, in the same order.
        if let Ok(other) = other.into_any().downcast::<Self>() {
            self.room.count_lost(other.room.lost());
            self.analysis.merge(other.analysis);
        }
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }

    fn end(self: Box<Self>) -> Option<CustomSection> {
        let lost = self.room.lost();
        let report = self.analysis.report();
        let (json, error) = match serde_json::to_value(&report) {
            Ok(json) => (json, None),
            Err(error) => (serde_json::Value::Null, Some(error.to_string())),
        };
        let show = |report: &(dyn Any + Send + Sync), page: &mut Page| {
            if let Some(report) = report.downcast_ref::<A::Report>() {
                A::show(report, page);
            }
        };
        Some(CustomSection { name: A::NAME, json, error, report: Arc::new(report), lost, show })
    }
}
