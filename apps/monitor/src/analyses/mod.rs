//! The analyses. A new one is a file here that implements [`Analysis`], and a line in the list
//! below.
//!
//! ```text
//!             ┌ volumes, conversations: every packet          the meter (worker.rs): always on, not in the list
//! a burst ──▶ ┤ flow table ── a record when a flow ends ─┐
//!             └ analyses: on_packets ── on_record ◀──────┘   on_event ◀── messages in payloads
//! at a mark     on_tick ──▶ finished parts ┐
//! at the end    end ──────▶ everything     ┴─▶ Merge ─▶ a section of the report
//! ```

pub(crate) mod activity;
mod address;
pub(crate) mod applications;
pub(crate) mod conversations;
pub(crate) mod names;
pub(crate) mod scans;
pub(crate) mod talkers;
pub(crate) mod tcp;
pub(crate) mod volumes;
pub(crate) mod watch;

use std::fmt::Debug;

use ringtap_enrich::Stage;
use ringtap_flow::{Event, FlowRecord};
use ringtap_stage::Shard;
use ringtap_state::{Row, Rows, Schema};
use ringtap_terminal::page::Page;
use ringtap_wire::PacketRecord;
use serde::Serialize;

use crate::alerts::Signal;
use crate::report::Times;
use crate::{Options, Setup};

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
    /// Memory for a live flow that shares no row with others, bytes.
    const FLOW_BYTES: u64 = 0;
    /// Fixed memory in each worker, bytes.
    const WORKER_BYTES: u64 = 0;

    /// The tables that it saves in a state: whole, so that thresholds and limits apply after a merge.
    const TABLES: &'static [&'static Schema] = &[];

    /// The type of its partial results.
    type Found: Send;
    /// The type of its merger.
    type Merger: Merge<Self>;

    /// An analysis for a shard, with all its initial memory.
    fn new(setup: &Setup, shard: Shard) -> Self;

    /// Handles the packets that make flows, in stream order.
    #[inline(always)]
    fn on_packets(&mut self, _packets: &[PacketRecord]) {}

    /// Handles the record of a flow that has ended.
    #[inline(always)]
    fn on_record(&mut self, _record: &FlowRecord) {}

    /// Handles a message in a payload.
    fn on_event(&mut self, _event: &Event) {}

    /// All packets before this time have arrived: hands over finished parts, if any.
    fn on_tick(&mut self, _time_ns: u64) -> Option<Self::Found> {
        None
    }

    /// Items ignored for lack of room so far.
    fn ignored(&self) -> u64 {
        0
    }

    /// Adds its rows to one of its tables, and changes nothing.
    fn save(&mut self, _table: &'static Schema, _rows: &mut Rows) {}

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
    fn new(setup: &Setup) -> Self;

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

    /// All workers have handed over everything before this time.
    fn on_time(&mut self, _time_ns: u64, _signals: Signals<'_>) {}

    /// Items ignored for lack of room so far.
    fn ignored(&self) -> u64 {
        0
    }

    /// Returns the section.
    fn end(self, signals: Signals<'_>) -> Self::Section;
}

/// An analysis' section of the report: sorted rows, integers.
pub trait Section: Clone + Debug + PartialEq + Serialize {
    /// Passes its addresses and names through the stage, and restores the order of rows that it changed. No output gets
    /// a section before that.
    fn pass(&mut self, stage: &mut Stage);

    /// Losses for lack of memory, with their numbers.
    fn losses(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// Losses for lack of memory as warnings, with the remedy.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// Prints the section as text.
    fn show(&self, page: &mut Page, about: &About<'_>);
}

/// Context for printing a section.
pub struct About<'a> {
    /// The monitor's options.
    pub options: &'a Options,
    /// The format of times.
    pub times: Times,
}

/// Generates from the list: the set of names, the parts of a worker and of the merger, messages
/// between them, and the sections of the report.
macro_rules! analyses {
    ($($(#[$doc:meta])* $name:ident: $part:ty,)*) => {
        /// A set of analyses.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct Analyses {
            /// Flow records.
            pub flows: bool,
            /// Packets, octets and conversations, per protocol and interval.
            pub volumes: bool,
            $($(#[$doc])* pub $name: bool,)*
        }

        impl Analyses {
            /// The default analyses.
            pub const ALL: Self =
                Self { flows: true, volumes: true, $($name: <$part as Analysis>::IN_ALL,)* };

            /// The empty set, for parsing.
            pub(crate) const NONE: Self = Self { flows: false, volumes: false, $($name: false,)* };

            /// All names, in alphabetical order.
            pub fn known() -> Vec<&'static str> {
                let mut names = vec!["flows", "volumes", $(stringify!($name),)*];
                names.sort_unstable();
                names
            }

            fn find(&mut self, name: &str) -> Option<&mut bool> {
                match name {
                    "flows" => Some(&mut self.flows),
                    "volumes" => Some(&mut self.volumes),
                    $(stringify!($name) => Some(&mut self.$name),)*
                    _ => None,
                }
            }

            /// Adds another set.
            fn add(&mut self, other: Self) {
                self.flows |= other.flows;
                self.volumes |= other.volumes;
                $(self.$name |= other.$name;)*
            }

            /// Whether packets go through the flow table.
            pub fn need_flows(&self) -> bool {
                self.flows || self.volumes
                    $(|| self.$name && <$part as Analysis>::TAKES_RECORDS)*
            }

            /// Whether any needs the messages in payloads.
            pub(crate) fn need_events(&self) -> bool {
                false $(|| self.$name && <$part as Analysis>::TAKES_EVENTS)*
            }

            /// Memory of the listed analyses for a live flow, bytes.
            pub(crate) fn flow_bytes(&self) -> u64 {
                0 $(+ u64::from(self.$name) * <$part as Analysis>::FLOW_BYTES)*
            }

            /// Memory of the listed analyses in each worker, bytes.
            pub(crate) fn worker_bytes(&self) -> u64 {
                0 $(+ u64::from(self.$name) * <$part as Analysis>::WORKER_BYTES)*
            }
        }

        /// The analyses of a worker.
        pub(crate) struct Parts {
            $(pub(crate) $name: Option<$part>,)*
        }

        impl Parts {
            pub(crate) fn new(on: Analyses, setup: &Setup, shard: Shard) -> Self {
                Self { $($name: on.$name.then(|| Analysis::new(setup, shard)),)* }
            }

            #[inline(always)]
            pub(crate) fn on_packets(&mut self, packets: &[PacketRecord]) {
                $(if let Some(own) = &mut self.$name {
                    own.on_packets(packets);
                })*
            }

            #[inline(always)]
            pub(crate) fn on_record(&mut self, record: &FlowRecord) {
                $(if <$part as Analysis>::TAKES_RECORDS && let Some(own) = &mut self.$name {
                    own.on_record(record);
                })*
            }

            pub(crate) fn on_event(&mut self, event: &Event) {
                $(if <$part as Analysis>::TAKES_EVENTS && let Some(own) = &mut self.$name {
                    own.on_event(event);
                })*
            }

            pub(crate) fn on_tick(&mut self, time_ns: u64) -> Found {
                Found { $($name: self.$name.as_mut().and_then(|own| own.on_tick(time_ns)),)* }
            }

            pub(crate) fn ignored(&self) -> u64 {
                0 $(+ self.$name.as_ref().map_or(0, Analysis::ignored))*
            }

            /// The tables of these analyses in a state, in order.
            pub(crate) fn tables(on: Analyses) -> Vec<&'static Schema> {
                let mut all = Vec::new();
                $(if on.$name {
                    all.extend_from_slice(<$part as Analysis>::TABLES);
                })*
                all
            }

            /// Adds the rows of a table of a state.
            pub(crate) fn save(&mut self, table: &'static Schema, rows: &mut Rows) {
                $(if <$part as Analysis>::TABLES.contains(&table) && let Some(own) = &mut self.$name {
                    own.save(table, rows);
                })*
            }

            /// Adds a row of a state; `None` if no analysis has such a row.
            pub(crate) fn load(&mut self, table: &'static Schema, row: &Row<'_>) -> Option<()> {
                $(if <$part as Analysis>::TABLES.contains(&table) {
                    return self.$name.as_mut()?.load(table, row);
                })*
                None
            }

            pub(crate) fn end(&mut self) -> Found {
                Found { $($name: self.$name.take().map(Analysis::end),)* }
            }
        }

        /// Partial results of a worker's analyses at a mark.
        pub(crate) struct Found {
            $($name: Option<<$part as Analysis>::Found>,)*
        }

        /// The mergers of the analyses.
        pub(crate) struct Mergers {
            $(pub(crate) $name: Option<<$part as Analysis>::Merger>,)*
        }

        impl Found {
            /// Memory of what must wait until all workers have passed the mark, bytes.
            pub(crate) fn waiting_bytes(&self) -> usize {
                0 $(+ self.$name.as_ref().map_or(0, <<$part as Analysis>::Merger as Merge<$part>>::bytes))*
            }
        }

        impl Mergers {
            pub(crate) fn new(setup: &Setup) -> Self {
                let on = setup.options.analyses;
                Self { $($name: on.$name.then(|| Merge::new(setup)),)* }
            }

            /// Merges what need not wait until all workers have passed the mark.
            pub(crate) fn merge_at_once(&mut self, found: &mut Found) {
                $(if !<<$part as Analysis>::Merger as Merge<$part>>::IN_ORDER
                    && let (Some(own), Some(found)) = (&mut self.$name, found.$name.take())
                {
                    own.merge(found);
                })*
            }

            pub(crate) fn merge(&mut self, found: Found) {
                $(if let (Some(own), Some(found)) = (&mut self.$name, found.$name) {
                    own.merge(found);
                })*
            }

            pub(crate) fn merge_end(&mut self, found: Found) {
                $(if let (Some(own), Some(found)) = (&mut self.$name, found.$name) {
                    own.merge_end(found);
                })*
            }

            pub(crate) fn on_time(&mut self, time_ns: u64, signals: Signals<'_>) {
                $(if let Some(own) = &mut self.$name {
                    own.on_time(time_ns, signals);
                })*
            }

            pub(crate) fn ignored(&self) -> u64 {
                0 $(+ self.$name.as_ref().map_or(0, Merge::ignored))*
            }

            pub(crate) fn end(self, signals: Signals<'_>) -> Sections {
                Sections { $($name: self.$name.map(|own| Merge::<$part>::end(own, signals)),)* }
            }
        }

        /// The sections of the analyses that ran.
        #[derive(Clone, Debug, Default, PartialEq, Serialize)]
        pub struct Sections {
            $($(#[$doc])*
            #[serde(skip_serializing_if = "Option::is_none")]
            pub $name: Option<<<$part as Analysis>::Merger as Merge<$part>>::Section>,)*
        }

        impl Sections {
            /// Passes all sections through the stage.
            pub(crate) fn pass(&mut self, stage: &mut Stage) {
                $(self.$name.iter_mut().for_each(|own| own.pass(stage));)*
            }

            /// Sections that are the same in every arrangement.
            pub fn exact(&self) -> Self {
                Self { $($name: if <$part as Analysis>::EXACT { self.$name.clone() } else { None },)* }
            }

            /// The other sections.
            pub fn inexact(&self) -> Self {
                Self { $($name: if <$part as Analysis>::EXACT { None } else { self.$name.clone() },)* }
            }

            /// Losses for lack of memory, with their numbers.
            pub fn losses(&self) -> Vec<(&'static str, u64)> {
                let mut all = Vec::new();
                $(all.extend(self.$name.iter().flat_map(Section::losses));)*
                all
            }

            /// Losses for lack of memory as warnings, with the remedy.
            pub fn warnings(&self) -> Vec<String> {
                let mut all = Vec::new();
                $(all.extend(self.$name.iter().flat_map(Section::warnings));)*
                all
            }

            /// Prints those that are findings, or the others.
            pub fn show(&self, page: &mut Page, about: &About<'_>, findings: bool) {
                $(if <$part as Analysis>::IS_FINDING == findings && let Some(own) = &self.$name {
                    own.show(page, about);
                })*
            }
        }
    };
}

// In the order of the report.
analyses! {
    /// Vertical and horizontal port scans.
    scans: scans::ScanTable,
    /// The hosts that sent and received most.
    talkers: talkers::TalkerTable,
    /// Volumes by application.
    applications: applications::ApplicationTable,
    /// Names of servers, and names that DNS looked up.
    names: names::NameTable,
    /// Performance of TCP connections.
    tcp: tcp::TcpTable,
    /// The busiest hosts of each interval, by sketches.
    activity: activity::ActivityTable,
    /// Hosts that reached watched entries.
    watch: watch::WatchTable,
}

impl Analyses {
    /// Names of those in the set, in alphabetical order.
    pub fn names(mut self) -> Vec<&'static str> {
        let mut names = Self::known();
        names.retain(|name| self.find(name).is_some_and(|on| *on));
        names
    }
}

/// A name in the list that is not an analysis.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown analysis {name:?}: use {} or all", Analyses::known().join(", "))]
pub struct UnknownAnalysis {
    /// As given.
    pub name: String,
}

impl std::str::FromStr for Analyses {
    type Err = UnknownAnalysis;

    fn from_str(list: &str) -> Result<Self, UnknownAnalysis> {
        let mut set = Self::NONE;
        for name in list.split(',').map(str::trim) {
            match (name, set.find(name)) {
                ("all", _) => set.add(Self::ALL),
                (_, Some(on)) => *on = true,
                (other, None) => return Err(UnknownAnalysis { name: other.into() }),
            }
        }
        Ok(set)
    }
}
