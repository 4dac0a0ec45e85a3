//! Analyses of other crates, beside the list. They run where those of the list do; a call reaches each of them for a burst,
//! a record and a message, and the loop over the packets is in their own code.
//!
//! ```text
//! Analyses::register ─▶ the known ones ─▶ a set in `Analyses` ─▶ a part in each worker ──merge──▶ a section of the report
//! ```

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use ringtap_enrich::Stage;
use ringtap_flow::{Event, FlowKey, FlowRecord};
use ringtap_stage::Shard;
use ringtap_state::{Row, Rows, Schema};
use ringtap_terminal::page::Page;
use ringtap_wire::PacketRecord;
use serde::{Serialize, Serializer};

use super::analysis::{About, Context, Section};

/// The definition of an analysis of another crate.
pub trait Custom: Send + Sync {
    /// Its name in `--analyses`, in the report and in states.
    fn name(&self) -> &'static str;

    /// The type that it is: definitions of one type are one analysis.
    fn kind(&self) -> TypeId;

    /// The names of analyses of the list that it needs.
    fn needs(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether it needs flow records.
    fn takes_records(&self) -> bool;

    /// Whether it needs the messages in payloads.
    fn takes_events(&self) -> bool;

    /// The expression by which it selects flows, if it has one.
    fn selection(&self) -> Option<&str> {
        None
    }

    /// Memory for a live flow that shares no row with others, bytes.
    fn flow_bytes(&self) -> u64 {
        0
    }

    /// Fixed memory in each worker, bytes.
    fn worker_bytes(&self) -> u64 {
        0
    }

    /// The tables that it saves in a state. Their names begin with its own and a dot.
    fn tables(&self) -> &'static [&'static Schema] {
        &[]
    }

    /// Its part in a worker.
    fn part(&self, context: &Context, shard: Shard) -> Box<dyn CustomPart>;
}

/// What an analysis of another crate has in a worker, or of all of them together.
pub trait CustomPart: Send {
    /// Handles the packets that make flows, in stream order.
    fn on_packets(&mut self, packets: &[PacketRecord]);

    /// Handles the record of a flow that has ended.
    fn on_record(&mut self, record: &FlowRecord);

    /// Handles a message in a payload.
    fn on_event(&mut self, event: &Event);

    /// All packets before this time have arrived.
    fn on_tick(&mut self, _time_ns: u64) {}

    /// Its tables.
    fn tables(&self) -> &'static [&'static Schema] {
        &[]
    }

    /// Adds its rows to one of its tables, and changes nothing.
    fn save(&self, _table: &'static Schema, _rows: &mut Rows) {}

    /// Adds a row of one of its tables, each of which comes once; `None` if it never saves such a row.
    fn load(&mut self, _table: &'static Schema, _row: &Row<'_>) -> Option<()> {
        None
    }

    /// Adds another worker's part, in any order.
    fn merge(&mut self, other: Box<dyn CustomPart>);

    /// The part as its own type, for [`CustomPart::merge`].
    fn into_any(self: Box<Self>) -> Box<dyn Any>;

    /// Its section; `None` if it only watches.
    fn end(self: Box<Self>) -> Option<CustomSection>;
}

/// The section of an analysis of another crate.
#[derive(Clone)]
pub struct CustomSection {
    /// Its name.
    pub name: &'static str,
    /// The report as JSON; null if it has none.
    pub json: serde_json::Value,
    /// Why it has none.
    pub error: Option<String>,
    /// The report as its own type.
    pub report: Arc<dyn Any + Send + Sync>,
    /// What had no room.
    pub lost: u64,
    /// Prints the report.
    pub show: fn(&(dyn Any + Send + Sync), &mut Page),
}

impl fmt::Debug for CustomSection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CustomSection").field("json", &self.json).field("lost", &self.lost).finish()
    }
}

impl PartialEq for CustomSection {
    fn eq(&self, other: &Self) -> bool {
        (self.name, &self.json, self.lost) == (other.name, &other.json, other.lost)
    }
}

impl Serialize for CustomSection {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.json.serialize(to)
    }
}

/// The sections of analyses of other crates, by name.
pub type CustomSections = BTreeMap<&'static str, CustomSection>;

impl Section for CustomSections {
    /// Their addresses are in forms of their own: no run replaces addresses and has such sections.
    fn pass(&mut self, _: &mut Stage) {}

    fn show(&self, page: &mut Page, _: &About) {
        self.values().for_each(|own| (own.show)(&*own.report, page));
    }
}

/// The known analyses of other crates, and those that run by default.
struct Known {
    all: Vec<&'static dyn Custom>,
    by_default: CustomSet,
}

static KNOWN: RwLock<Known> = RwLock::new(Known { all: Vec::new(), by_default: CustomSet::NONE });

fn known() -> Vec<&'static dyn Custom> {
    KNOWN.read().unwrap_or_else(PoisonError::into_inner).all.clone()
}

/// A set of analyses of other crates: a bit for each known one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CustomSet(u64);

/// Why an analysis of another crate cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidCustom {
    /// Its name is none.
    #[error(
        "the name {0:?} of an analysis: use at most 32 lower-case letters, digits and underscores, with a letter first"
    )]
    Name(&'static str),
    /// Another one has its name.
    #[error("two analyses are named {0}")]
    Taken(&'static str),
    /// The name of a table is not its own.
    #[error("the table {table} of the analysis {name}: begin its name with \"{name}.\"")]
    Table {
        /// The analysis.
        name: &'static str,
        /// The table.
        table: &'static str,
    },
    /// Two of its tables have one name.
    #[error("the analysis {name} has two tables {table}")]
    Twice {
        /// The analysis.
        name: &'static str,
        /// The tables.
        table: &'static str,
    },
    /// An analysis that it needs is none.
    #[error("the analysis {name} needs {needed:?}, which is not in the list of analyses")]
    Needed {
        /// The analysis.
        name: &'static str,
        /// What it needs.
        needed: &'static str,
    },
    /// There are too many.
    #[error("more than 64 analyses of other crates")]
    TooMany,
}

impl CustomSet {
    /// The empty set.
    pub const NONE: Self = Self(0);

    /// Makes an analysis known; `is_listed`: whether a name is that of an analysis of the list.
    pub(super) fn register(
        custom: &'static dyn Custom,
        mut is_listed: impl FnMut(&str) -> bool,
    ) -> Result<Self, InvalidCustom> {
        let name = custom.name();
        let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        let begins = name.starts_with(|first: char| first.is_ascii_lowercase());
        if !begins || name.len() > 32 || !name.bytes().all(is_word) {
            return Err(InvalidCustom::Name(name));
        }
        if is_listed(name) || matches!(name, "all" | "none") {
            return Err(InvalidCustom::Taken(name));
        }
        if let Some(needed) = custom.needs().iter().find(|needed| !is_listed(needed)) {
            return Err(InvalidCustom::Needed { name, needed });
        }
        let own = |table: &&&Schema| {
            table.name.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'))
        };
        if let Some(table) = custom.tables().iter().find(|table| !own(table)) {
            return Err(InvalidCustom::Table { name, table: table.name });
        }
        let names = || custom.tables().iter().map(|table| table.name);
        if let Some(table) = names().find(|name| names().filter(|other| other == name).count() > 1)
        {
            return Err(InvalidCustom::Twice { name, table });
        }
        let all = &mut KNOWN.write().unwrap_or_else(PoisonError::into_inner).all;
        let place = all.iter().position(|other| other.name() == name);
        let place = match place {
            Some(place) if all[place].kind() == custom.kind() => place,
            Some(_) => return Err(InvalidCustom::Taken(name)),
            None if all.len() == 64 => return Err(InvalidCustom::TooMany),
            None => {
                all.push(custom);
                all.len() - 1
            }
        };
        Ok(Self(1 << place))
    }

    /// The known one with this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        known().iter().position(|own| own.name() == name).map(|place| Self(1 << place))
    }

    /// The tables of all known ones.
    pub(crate) fn tables() -> impl Iterator<Item = &'static Schema> {
        known().into_iter().flat_map(|own| own.tables()).copied()
    }

    /// Adds these to the analyses that run by default, and to `all`.
    pub fn run_by_default(self) {
        let by_default = &mut KNOWN.write().unwrap_or_else(PoisonError::into_inner).by_default;
        *by_default = by_default.with(self);
    }

    /// The set that runs by default.
    pub(super) fn by_default() -> Self {
        KNOWN.read().unwrap_or_else(PoisonError::into_inner).by_default
    }

    /// Both sets.
    pub fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether it has any.
    pub fn any(self) -> bool {
        self != Self::NONE
    }

    /// The part of the set that a condition holds for.
    pub(crate) fn only(self, holds: impl Fn(&dyn Custom) -> bool) -> Self {
        let places = known().into_iter().enumerate();
        let kept = places.filter(|(place, own)| self.0 >> place & 1 != 0 && holds(*own));
        Self(kept.fold(0, |bits, (place, _)| bits | 1 << place))
    }

    /// Its analyses, in the order in which they were registered.
    pub fn each(self) -> impl Iterator<Item = &'static dyn Custom> {
        let all = known().into_iter().enumerate();
        all.filter(move |(place, _)| self.0 >> place & 1 != 0).map(|(_, own)| own)
    }
}

/// Whether a flow with a packet of this key, of either direction, is wanted.
pub(crate) type Wants = Arc<dyn Fn(&FlowKey) -> bool + Send + Sync>;

/// What watches the packets, records and messages of one run, without a section of its report.
#[derive(Clone, Default)]
pub struct Observers {
    /// In the order of their calls.
    pub all: Vec<Arc<dyn Custom>>,
    /// If nothing else reads flows: which of them any wants. Packets of others do not reach the flow table.
    pub wants: Option<Wants>,
}

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.all.iter().map(|own| own.name())).finish()
    }
}

impl Observers {
    /// Whether any needs flow records.
    pub fn take_records(&self) -> bool {
        self.all.iter().any(|own| own.takes_records())
    }

    /// Whether any needs the messages in payloads.
    pub(crate) fn take_events(&self) -> bool {
        self.all.iter().any(|own| own.takes_events())
    }
}

/// The names of all known ones.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    known().into_iter().map(|own| own.name())
}

/// The parts of all workers, joined.
#[derive(Default)]
pub(super) struct CustomMergers(Vec<Box<dyn CustomPart>>);

impl CustomMergers {
    /// Adds those of a worker, all in one order.
    pub(super) fn merge(&mut self, parts: Vec<Box<dyn CustomPart>>) {
        if self.0.is_empty() {
            self.0 = parts;
            return;
        }
        self.0.iter_mut().zip(parts).for_each(|(all, part)| all.merge(part));
    }

    /// Their sections.
    pub(super) fn end(self) -> CustomSections {
        let ended = self.0.into_iter().filter_map(CustomPart::end);
        ended.map(|section| (section.name, section)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyses::Analyses;

    struct Named(&'static str, &'static [&'static Schema], fn() -> TypeId);

    impl Custom for Named {
        fn name(&self) -> &'static str {
            self.0
        }

        fn kind(&self) -> TypeId {
            self.2()
        }

        fn takes_records(&self) -> bool {
            false
        }

        fn takes_events(&self) -> bool {
            false
        }

        fn tables(&self) -> &'static [&'static Schema] {
            self.1
        }

        fn part(&self, _: &Context, _: Shard) -> Box<dyn CustomPart> {
            unreachable!("no run uses it")
        }
    }

    #[test]
    fn names_are_words_that_no_other_analysis_has() {
        static ROWS: Schema = Schema::new("named.rows", 4, &[]);
        static NAMES: Schema = Schema::new("names", 4, &[]);
        static OWN: Named = Named("named", &[&ROWS], TypeId::of::<u8>);
        static OTHER: Named = Named("named", &[], TypeId::of::<u16>);
        let set = Analyses::register(&OWN).unwrap();
        assert_eq!(Analyses::register(&OWN), Ok(set));
        assert_eq!(Analyses::register(&OTHER), Err(InvalidCustom::Taken("named")));
        let named = |name, tables: &'static [&'static Schema]| -> &'static dyn Custom {
            Box::leak(Box::new(Named(name, tables, TypeId::of::<u32>)))
        };
        static TABLES: [&Schema; 1] = [&NAMES];
        let error = Analyses::register(named("tabled", &TABLES)).unwrap_err();
        assert_eq!(error, InvalidCustom::Table { name: "tabled", table: "names" });
        for name in ["", "A", "1st", "a,b", "\u{e4}"] {
            let error = Analyses::register(named(name, &[])).unwrap_err();
            assert_eq!(error, InvalidCustom::Name(name));
        }
        for name in ["flows", "scans", "all"] {
            let error = Analyses::register(named(name, &[])).unwrap_err();
            assert_eq!(error, InvalidCustom::Taken(name));
        }
        let parsed: Analyses = "named,flows".parse().unwrap();
        assert_eq!((parsed.custom, parsed.names()), (set, vec!["flows", "named"]));
        assert!(!Analyses::all().custom.any(), "no default unless asked for");
    }
}
