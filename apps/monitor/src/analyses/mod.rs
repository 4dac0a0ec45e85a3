//! The analyses. A new one is a file here that implements [`Analysis`], and a line in the list
//! below. Analyses of other crates join them by [`custom`].
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
mod analysis;
pub(crate) mod applications;
pub(crate) mod changes;
pub(crate) mod conversations;
pub(crate) mod custom;
pub(crate) mod names;
pub(crate) mod passive_dns;
pub(crate) mod scans;
pub(crate) mod statistics;
pub(crate) mod talkers;
pub(crate) mod tcp;
pub(crate) mod volumes;
pub(crate) mod watch;

use ringtap_enrich::Stage;
use ringtap_flow::{Event, FlowRecord, Response};
use ringtap_stage::Shard;
use ringtap_state::{Row, Rows, Schema};
use ringtap_terminal::page::Page;
use ringtap_wire::PacketRecord;
use serde::Serialize;

use crate::totals::Totals;

use custom::{
    Custom, CustomMergers, CustomPart, CustomSections, CustomSet, InvalidCustom, Observers,
};

pub use analysis::{About, Context, Scope, Section};
pub(crate) use analysis::{Analysis, Merge, Signals};

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
            /// Analyses of other crates.
            pub custom: CustomSet,
        }

        impl Analyses {
            /// The default analyses of the list.
            pub const ALL: Self = Self {
                flows: true,
                volumes: true,
                $($name: <$part as Analysis>::IN_ALL,)*
                custom: CustomSet::NONE,
            };

            /// The empty set.
            pub const NONE: Self =
                Self { flows: false, volumes: false, $($name: false,)* custom: CustomSet::NONE };

            /// All names, in alphabetical order.
            pub fn known() -> Vec<&'static str> {
                let mut names = vec!["flows", "volumes", $(stringify!($name),)*];
                names.extend(custom::names());
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
                self.custom = self.custom.with(other.custom);
            }

            /// Whether packets go through the flow table.
            pub fn need_flows(&self) -> bool {
                self.flows || self.volumes
                    $(|| self.$name && <$part as Analysis>::TAKES_RECORDS)*
                    || self.custom.each().any(|own| own.takes_records())
            }

            /// Whether any needs the applications of flow records.
            pub(crate) fn need_labels(&self) -> bool {
                self.applications || self.custom.each().any(|own| own.takes_records())
            }

            /// Whether any needs the messages in payloads.
            pub(crate) fn need_events(&self) -> bool {
                false $(|| self.$name && <$part as Analysis>::TAKES_EVENTS)*
                    || self.custom.each().any(|own| own.takes_events())
            }

            /// Memory of the listed analyses for a live flow, bytes.
            pub(crate) fn flow_bytes(&self) -> u64 {
                let own = 0 $(+ u64::from(self.$name) * <$part as Analysis>::FLOW_BYTES)*;
                self.custom.each().fold(own, |sum, custom| sum.saturating_add(custom.flow_bytes()))
            }

            /// Memory of the listed analyses in each worker, bytes.
            pub(crate) fn worker_bytes(&self) -> u64 {
                let own = 0 $(+ u64::from(self.$name) * <$part as Analysis>::WORKER_BYTES)*;
                self.custom.each().fold(own, |sum, custom| sum.saturating_add(custom.worker_bytes()))
            }
        }

        /// The analyses of a worker.
        pub(crate) struct Parts {
            $(pub(crate) $name: Option<$part>,)*
            custom: Vec<Box<dyn CustomPart>>,
        }

        impl Parts {
            pub(crate) fn new(on: Analyses, context: &Context, shard: Shard) -> Self {
                let custom = on.custom.each().map(|own| own.part(context, shard));
                Self {
                    $($name: on.$name.then(|| Analysis::new(context, shard)),)*
                    custom: custom.collect(),
                }
            }

            /// Adds what watches the run.
            pub(crate) fn observe(mut self, by: &Observers, context: &Context, shard: Shard) -> Self {
                self.custom.extend(by.all.iter().map(|own| own.part(context, shard)));
                self
            }

            #[inline(always)]
            pub(crate) fn on_packets(&mut self, packets: &[PacketRecord]) {
                $(if let Some(own) = &mut self.$name {
                    own.on_packets(packets);
                })*
                self.custom.iter_mut().for_each(|own| own.on_packets(packets));
            }

            #[inline(always)]
            pub(crate) fn on_record(&mut self, record: &FlowRecord) {
                $(if <$part as Analysis>::TAKES_RECORDS && let Some(own) = &mut self.$name {
                    own.on_record(record);
                })*
                self.custom.iter_mut().for_each(|own| own.on_record(record));
            }

            #[inline(always)]
            pub(crate) fn on_slice(&mut self, slice: &FlowRecord) {
                $(if <$part as Analysis>::TAKES_SLICES && let Some(own) = &mut self.$name {
                    own.on_slice(slice);
                })*
            }

            #[inline]
            pub(crate) fn on_response(&mut self, response: &Response) {
                $(if let Some(own) = &mut self.$name {
                    own.on_response(response);
                })*
            }

            pub(crate) fn on_event(&mut self, event: &Event) {
                $(if <$part as Analysis>::TAKES_EVENTS && let Some(own) = &mut self.$name {
                    own.on_event(event);
                })*
                self.custom.iter_mut().for_each(|own| own.on_event(event));
            }

            pub(crate) fn adopt(&mut self, context: &Context, shard: Shard) {
                $(if let Some(own) = &mut self.$name {
                    Analysis::adopt(own, context, shard);
                })*
            }

            pub(crate) fn on_tick(&mut self, time_ns: u64) -> Found {
                self.tick_custom(time_ns);
                Found {
                    $($name: self.$name.as_mut().and_then(|own| own.on_tick(time_ns)),)*
                    custom: Vec::new(),
                }
            }

            /// Passes a mark to analyses of other crates alone.
            pub(crate) fn tick_custom(&mut self, time_ns: u64) {
                self.custom.iter_mut().for_each(|own| own.on_tick(time_ns));
            }

            pub(crate) fn add_totals(&self, totals: &mut Totals) {
                $(if let Some(own) = &self.$name {
                    own.add_totals(totals);
                })*
            }

            /// The tables of these analyses in a state, in order; `by_time`: with all that are made of slices.
            pub(crate) fn tables(on: Analyses, by_time: bool) -> Vec<&'static Schema> {
                let mut all = Vec::new();
                $(if on.$name {
                    all.extend_from_slice(<$part as Analysis>::TABLES);
                    let more = <$part as Analysis>::SLICE_TABLES.iter().copied();
                    let further = |table: &&Schema| !<$part as Analysis>::TABLES.contains(table);
                    all.extend(more.filter(|table| by_time && further(table)));
                })*
                all.extend(on.custom.each().flat_map(|own| own.tables()));
                all
            }

            /// Whether a table is made of slices.
            pub(crate) fn has_slices(table: &'static Schema) -> bool {
                false $(|| <$part as Analysis>::SLICE_TABLES.contains(&table))*
            }

            /// Adds the rows of a slice to a table of a state.
            pub(crate) fn save_slice(
                table: &'static Schema,
                slice: &FlowRecord,
                run: u64,
                rows: &mut Rows,
            ) {
                $(if <$part as Analysis>::SLICE_TABLES.contains(&table) {
                    <$part as Analysis>::save_slice(table, slice, run, rows);
                })*
            }

            /// Adds the rows of a table of a state.
            pub(crate) fn save(&mut self, table: &'static Schema, rows: &mut Rows) {
                $(if (<$part as Analysis>::TABLES.contains(&table)
                    || <$part as Analysis>::SLICE_TABLES.contains(&table))
                    && let Some(own) = &mut self.$name
                {
                    own.save(table, rows);
                })*
                let saving = self.custom.iter().filter(|own| own.tables().contains(&table));
                saving.for_each(|own| own.save(table, rows));
            }

            /// Adds a row of a state; `None` if no analysis has such a row.
            pub(crate) fn load(&mut self, table: &'static Schema, row: &Row<'_>) -> Option<()> {
                $(if <$part as Analysis>::TABLES.contains(&table)
                    || <$part as Analysis>::SLICE_TABLES.contains(&table)
                {
                    return self.$name.as_mut()?.load(table, row);
                })*
                self.custom.iter_mut().find(|own| own.tables().contains(&table))?.load(table, row)
            }

            pub(crate) fn end(&mut self) -> Found {
                Found {
                    $($name: self.$name.take().map(Analysis::end),)*
                    custom: std::mem::take(&mut self.custom),
                }
            }
        }

        /// Partial results of a worker's analyses at a mark.
        pub(crate) struct Found {
            $($name: Option<<$part as Analysis>::Found>,)*
            custom: Vec<Box<dyn CustomPart>>,
        }

        /// The mergers of the analyses.
        pub(crate) struct Mergers {
            $(pub(crate) $name: Option<<$part as Analysis>::Merger>,)*
            custom: CustomMergers,
        }

        impl Found {
            /// Memory of what must wait until all workers have passed the mark, bytes.
            pub(crate) fn waiting_bytes(&self) -> usize {
                0 $(+ self.$name.as_ref().map_or(0, <<$part as Analysis>::Merger as Merge<$part>>::bytes))*
            }
        }

        impl Mergers {
            pub(crate) fn new(on: Analyses, context: &Context) -> Self {
                Self {
                    $($name: on.$name.then(|| Merge::new(context)),)*
                    custom: CustomMergers::default(),
                }
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
                self.custom.merge(found.custom);
            }

            pub(crate) fn adopt(&mut self, context: &Context) {
                $(if let Some(own) = &mut self.$name {
                    Merge::<$part>::adopt(own, context);
                })*
            }

            pub(crate) fn on_time(&mut self, time_ns: u64, signals: Signals<'_>) {
                $(if let Some(own) = &mut self.$name {
                    own.on_time(time_ns, signals);
                })*
            }

            pub(crate) fn end(self, signals: Signals<'_>) -> Sections {
                Sections {
                    $($name: self.$name.map(|own| Merge::<$part>::end(own, signals)),)*
                    custom: self.custom.end(),
                }
            }
        }

        /// The sections of the analyses that ran.
        #[derive(Clone, Debug, Default, PartialEq, Serialize)]
        pub struct Sections {
            $($(#[$doc])*
            #[serde(skip_serializing_if = "Option::is_none")]
            pub $name: Option<<<$part as Analysis>::Merger as Merge<$part>>::Section>,)*
            /// Sections of analyses of other crates.
            #[serde(skip_serializing_if = "CustomSections::is_empty")]
            pub custom: CustomSections,
        }

        impl Sections {
            /// Passes all sections through the stage.
            pub(crate) fn pass(&mut self, stage: &mut Stage) {
                $(self.$name.iter_mut().for_each(|own| own.pass(stage));)*
                self.custom.pass(stage);
            }

            /// Sections that are the same in every arrangement.
            pub fn exact(&self) -> Self {
                Self {
                    $($name: if <$part as Analysis>::EXACT { self.$name.clone() } else { None },)*
                    custom: self.custom.clone(),
                }
            }

            /// The other sections.
            pub fn inexact(&self) -> Self {
                Self {
                    $($name: if <$part as Analysis>::EXACT { None } else { self.$name.clone() },)*
                    custom: CustomSections::new(),
                }
            }

            /// Prints those that are findings, or the others.
            pub fn show(&self, page: &mut Page, about: &About, findings: bool) {
                $(if <$part as Analysis>::IS_FINDING == findings && let Some(own) = &self.$name {
                    own.show(page, about);
                })*
                if !findings {
                    self.custom.show(page, about);
                }
            }
        }
    };
}

// In the order of the report.
analyses! {
    /// Vertical and horizontal port scans.
    scans: scans::ScanTable<scans::Tcp>,
    /// Vertical and horizontal port scans over UDP.
    udp_scans: scans::ScanTable<scans::Udp>,
    /// The hosts that sent and received most.
    talkers: talkers::TalkerTable,
    /// Volumes by application.
    applications: applications::ApplicationTable,
    /// Names of servers, and names that DNS looked up.
    names: names::NameTable,
    /// Which names led to which addresses and names.
    passive_dns: passive_dns::PassiveDnsTable,
    /// Performance of TCP connections.
    tcp: tcp::TcpTable,
    /// Statistics of the packets of flows, in flow records.
    statistics: statistics::StatisticsTable,
    /// The busiest hosts of each interval, by sketches.
    activity: activity::ActivityTable,
    /// New devices, new server ports, and changed volumes.
    changes: changes::ChangeTable,
    /// Hosts that reached watched entries.
    watch: watch::WatchTable,
}

impl Analyses {
    /// Makes an analysis of another crate known, and returns the set of it alone. The same one may be registered again.
    ///
    /// # Errors
    /// An invalid name, or one that another analysis has; a table or a need that cannot be.
    pub fn register(custom: &'static dyn Custom) -> Result<CustomSet, InvalidCustom> {
        let mut list = Self::NONE;
        CustomSet::register(custom, |name| list.find(name).is_some())
    }

    /// With what those of other crates need.
    pub(crate) fn with_needs(mut self) -> Self {
        for name in self.custom.each().flat_map(|own| own.needs()) {
            self.find(name).into_iter().for_each(|on| *on = true);
        }
        self
    }

    /// Names of those of other crates that run by default, in alphabetical order.
    pub fn further() -> Vec<&'static str> {
        Self { custom: CustomSet::by_default(), ..Self::NONE }.names()
    }

    /// The default analyses, with those of other crates.
    pub fn all() -> Self {
        Self { custom: CustomSet::by_default(), ..Self::ALL }
    }

    /// Names of those in the set, in alphabetical order.
    pub fn names(mut self) -> Vec<&'static str> {
        let mut names = Self::known();
        names.retain(|name| self.find(name).is_some_and(|on| *on));
        names.extend(self.custom.each().map(|own| own.name()));
        names.sort_unstable();
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
                ("all", _) => set.add(Self::all()),
                (_, Some(on)) => *on = true,
                (other, None) => match CustomSet::named(other) {
                    Some(own) => set.custom = set.custom.with(own),
                    None => return Err(UnknownAnalysis { name: other.into() }),
                },
            }
        }
        Ok(set)
    }
}
