//! What a worker saves: the rows of its tables, at the end or also at the end of each interval.
//!
//! ```text
//! a whole run       ──▶ at the end, all tables
//! a part of a run   ──▶ tables of what happened since the part before: a second set of analyses, and differences of sums
//! ```
//!
//! Live flows are in every part as they are at its end. A merge takes them from the latest part alone, for what is counted
//! where a flow ends. The volumes of a part are those of slices of flows, so each packet counts in the part of its interval.

use std::collections::BTreeMap;

use ringtap_engine::AppOptions;
use ringtap_flow::{FactCounts, FlowKey, FlowRecord, FlowTable, Response};
use ringtap_stage::Shard;
use ringtap_state::{Rows, Schema};

use super::early::Early;
use super::image::{Content, Identity, image, saved, tables_of};
use super::live::{LIVE, Live, MEASURED, is_live};
use super::tables::{CONVERSATIONS, Conversed, SUMS, sums};
use crate::analyses::volumes::{INTERVALS, PROTOCOLS, Volumes};
use crate::analyses::{Context, Parts, Scope};
use crate::counts::FlowCounts;
use crate::options::Setup;

/// A worker's part of the states of a run.
pub(crate) struct Saver {
    identity: Identity,
    tables: Vec<&'static Schema>,
    /// Conversations since the last part.
    conversed: Conversed,
    since: Option<Since>,
    /// The sums that earlier parts have.
    sums: BTreeMap<String, u64>,
}

/// The analyses since the last part.
struct Since {
    analyses: Parts,
    early: Early,
    /// Slices without room among the early ones.
    early_lost: u64,
    setup: Setup,
    shard: Shard,
    interval_ns: u64,
    /// The interval of the last mark.
    interval: Option<u64>,
    tick_ns: u64,
}

impl Since {
    fn new(setup: &Setup, shard: Shard, interval_ns: u64) -> Self {
        let analyses = Self::none(setup, shard);
        let tick_ns = setup.options.tick_ns();
        Self {
            analyses,
            early: Early::default(),
            early_lost: 0,
            setup: setup.clone(),
            shard,
            interval_ns,
            interval: None,
            tick_ns,
        }
    }

    /// Adds a slice to the part of its interval: this one, unless its mark is to come.
    fn on_slice(&mut self, slice: &FlowRecord) {
        // Before the first mark it is not known which packets are ahead of time.
        let is_early =
            self.interval.is_none_or(|interval| slice.first_ns / self.interval_ns > interval);
        if !is_early || !self.early.keep(slice) {
            self.early_lost += u64::from(is_early && self.interval.is_some());
            self.analyses.on_slice(slice);
        }
    }

    /// Adds the early slices that begin before a time.
    fn settle(&mut self, time_ns: u64) {
        self.early.take_before(time_ns).iter().for_each(|slice| self.analyses.on_slice(slice));
    }

    fn none(setup: &Setup, shard: Shard) -> Parts {
        let context = Context { scope: Scope::Part, ..setup.context.clone() };
        Parts::new(saved(setup.options.analyses), &context, shard)
    }
}

/// The rows of a worker, before they are sorted, by table.
pub(crate) struct WorkerRows {
    pub(crate) rows: Vec<Rows>,
    /// Packets that the worker handled.
    pub(crate) handled: u64,
    /// The time of the first one, or the largest.
    pub(crate) first_ns: u64,
}

impl WorkerRows {
    /// Drops the live flows: later rows have them.
    pub(super) fn drop_live(&mut self) {
        for table in [&LIVE, &MEASURED] {
            for rows in self.rows.iter_mut().filter(|rows| rows.is_of(table)) {
                *rows = Rows::new(table);
            }
        }
    }
}

/// What is saved beside the analyses and the conversations.
pub(crate) struct Metered<'a> {
    pub(crate) table: Option<&'a FlowTable>,
    pub(crate) counts: &'a FlowCounts,
    /// The volumes, if the merger does not save them.
    pub(crate) volumes: Option<&'a Volumes>,
}

impl Saver {
    /// Returns a worker's saver, if states are saved.
    pub(crate) fn new(setup: &Setup, shard: Shard) -> Option<Self> {
        let options = &setup.options;
        let identity = options.state.clone()?;
        let interval_ns = setup.volumes_interval_ns().filter(|_| options.saves_parts());
        Some(Self {
            tables: tables_of(saved(options.analyses), Content::NOW),
            conversed: Conversed::new(setup.context.capacity_of(shard)),
            since: interval_ns.map(|interval_ns| Since::new(setup, shard, interval_ns)),
            sums: BTreeMap::new(),
            identity,
        })
    }

    /// Whether the state is saved in parts.
    pub(crate) fn in_parts(&self) -> bool {
        self.since.is_some()
    }

    pub(crate) fn converse(&mut self, key: &FlowKey, interval: u64) {
        self.conversed.add(key, interval);
    }

    /// The analyses since the last part.
    pub(crate) fn since(&mut self) -> Option<&mut Parts> {
        self.since.as_mut().map(|since| &mut since.analyses)
    }

    #[inline(always)]
    pub(crate) fn on_record(&mut self, record: &FlowRecord) {
        if let Some(since) = &mut self.since {
            since.analyses.on_record(record);
        }
    }

    #[inline]
    pub(crate) fn on_response(&mut self, response: &Response) {
        if let Some(since) = &mut self.since {
            since.analyses.on_response(response);
        }
    }

    #[inline(always)]
    pub(crate) fn on_slice(&mut self, slice: &FlowRecord) {
        if let Some(since) = &mut self.since {
            since.on_slice(slice);
        }
    }

    /// Whether a part ends at this time: another interval begins.
    pub(crate) fn ends_part(&mut self, time_ns: u64) -> bool {
        let Some(since) = &mut self.since else { return false };
        let interval = time_ns / since.interval_ns;
        // The first mark ends the first interval if a mark before would have been in it.
        let mark_before = || time_ns.saturating_sub(since.tick_ns) / since.interval_ns;
        since.interval.replace(interval).unwrap_or_else(mark_before) != interval
    }

    /// The rows since the last part; the next part begins.
    #[cold]
    pub(crate) fn end_part(&mut self, metered: &Metered<'_>, whole: &mut Parts) -> WorkerRows {
        if let Some(since) = &mut self.since {
            since.settle(since.interval.unwrap_or(0).saturating_mul(since.interval_ns));
        }
        let mut all = Vec::new();
        for table in self.tables.clone() {
            let mut rows = Rows::new(table);
            self.save(table, metered, whole, &mut rows);
            all.push(rows);
        }
        self.conversed.clear();
        if let Some(since) = &mut self.since {
            since.analyses = Since::none(&since.setup, since.shard);
        }
        let (handled, first_ns) = metered.volumes.map_or((0, u64::MAX), Volumes::handled);
        WorkerRows { rows: all, handled, first_ns }
    }

    /// An image of the rows since the last part, or of all, if there are no parts.
    #[cold]
    pub(crate) fn end(&mut self, metered: &Metered<'_>, whole: &mut Parts) -> WorkerState {
        if let Some(since) = &mut self.since {
            since.settle(u64::MAX);
        }
        let tables = self.tables.clone();
        let image = image(&[], &tables, |table, rows| {
            self.save(table, metered, whole, rows);
            // No later part has them.
            if let (true, Some(flows)) = (Parts::has_slices(table), metered.table) {
                let run = self.identity.run;
                flows.each_unsliced(|slice| Parts::save_slice(table, slice, run, rows));
            }
        });
        WorkerState {
            image: image.map_err(|error| error.to_string()),
            conversations_lost: self.conversed.lost,
            early_lost: self.since.as_ref().map_or(0, |since| since.early_lost),
        }
    }

    fn save(
        &mut self,
        table: &'static Schema,
        metered: &Metered<'_>,
        whole: &mut Parts,
        rows: &mut Rows,
    ) {
        let &Metered { table: flows, counts, volumes } = metered;
        if *table == SUMS {
            let facts: &FactCounts = flows.map_or(&counts.facts, FlowTable::fact_counts);
            for (name, sum) in sums(counts, facts) {
                let more = sum.wrapping_sub(self.sums.insert(name.clone(), sum).unwrap_or(0));
                if more != 0 {
                    rows.push(&[], &[more], name.as_bytes());
                }
            }
        } else if *table == CONVERSATIONS {
            self.conversed.save(rows);
        } else if let (true, Some(volumes)) = (*table == PROTOCOLS || *table == INTERVALS, volumes)
        {
            volumes.save(table, rows);
        }
        if let (true, Some(flows)) = (is_live(table), flows) {
            let run = self.identity.run;
            flows.each_record(|record, class| Live { run, class, record }.save(rows));
        }
        match &mut self.since {
            Some(since) => since.analyses.save(table, rows),
            None => whole.save(table, rows),
        }
    }
}

/// What the last state of a run has of a worker.
pub(crate) struct WorkerState {
    /// Its tables, or why there are none.
    pub(crate) image: Result<Vec<u8>, String>,
    /// Conversations without room.
    pub(crate) conversations_lost: u64,
    /// Slices that count in an earlier part, because they had no room to wait for theirs.
    pub(crate) early_lost: u64,
}
