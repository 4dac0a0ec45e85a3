//! The analyses behind the meter. A new one is a file here that implements [`Analysis`], and a line in the list below.
//!
//! ```text
//!             ┌ volumes, conversations: every packet          the meter (worker.rs): always there, and not in the list
//! a burst ──▶ ┤ flow table ── a record when a flow ends ─┐
//!             └ analyses: on_packets ── on_record ◀──────┘
//! at a mark     on_tick ──▶ what is over  ┐
//! at the end    end ──────▶ everything    ├─▶ Merge ─▶ a section of the report
//! at once       send ─────▶ a message     ┘
//! ```

pub(crate) mod activity;
pub(crate) mod conversations;
pub(crate) mod scans;
pub(crate) mod talkers;
pub(crate) mod volumes;

use std::fmt::Debug;

use ringtap_flow::FlowRecord;
use ringtap_stage::Shard;
use ringtap_terminal::page::Page;
use ringtap_wire::PacketRecord;
use serde::Serialize;

use crate::report::Times;
use crate::{Alert, Options, Setup};

/// An analysis, as one worker has it: it owns a shard of the address pairs. It never blocks, never fails, and knows packet
/// time alone.
pub trait Analysis: Sized {
    /// Whether it runs unless something else is asked for.
    const IN_ALL: bool = true;
    /// Whether its section is the same in every arrangement, and so is part of the digest.
    const EXACT: bool = true;
    /// Whether it takes flow records.
    const TAKES_RECORDS: bool = false;
    /// Memory that it takes for a live flow that no other resembles, bytes.
    const FLOW_BYTES: u64 = 0;
    /// Memory that it takes in each worker whatever comes, bytes.
    const WORKER_BYTES: u64 = 0;

    /// What it sends to its merger at once.
    type Message: Copy + Debug + Send;
    /// What it hands over at marks.
    type Found: Send;
    /// Who joins.
    type Merger: Merge<Self>;

    /// For a shard, with all the memory it needs from the start.
    fn new(setup: &Setup, shard: Shard) -> Self;

    /// Takes the packets that make flows, in stream order.
    #[inline(always)]
    fn on_packets(&mut self, _packets: &[PacketRecord], _send: &mut impl FnMut(Self::Message)) {}

    /// Takes the record of a flow that has ended.
    #[inline(always)]
    fn on_record(&mut self, _record: &FlowRecord) {}

    /// All packets before this time have come: hands over what is over, if anything.
    fn on_tick(&mut self, _time_ns: u64) -> Option<Self::Found> {
        None
    }

    /// What it had no room for so far.
    fn ignored(&self) -> u64 {
        0
    }

    /// Hands over everything.
    fn end(self) -> Self::Found;
}

/// Joins what the workers' parts of an analysis found, in whatever order it comes.
pub trait Merge<A: Analysis>: Sized {
    /// What the report gets.
    type Section: Section;

    /// Nothing found yet.
    fn new(setup: &Setup) -> Self;

    /// Takes a message.
    fn on_message(&mut self, _message: A::Message, _alert: &mut dyn FnMut(&Alert)) {}

    /// Takes what a worker handed over.
    fn merge(&mut self, found: A::Found);

    /// All workers have handed over what lies before this time.
    fn on_time(&mut self, _time_ns: u64, _alert: &mut dyn FnMut(&Alert)) {}

    /// What it had no room for so far.
    fn ignored(&self) -> u64 {
        0
    }

    /// The answer.
    fn end(self, alert: &mut dyn FnMut(&Alert)) -> Self::Section;
}

/// An analysis' section of the report: rows sorted, numbers whole.
pub trait Section: Clone + Debug + PartialEq + Serialize {
    /// What was given up for lack of memory, and how much of it.
    fn losses(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// The same as warnings, with the remedy.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// The section for people.
    fn show(&self, page: &mut Page, about: &About<'_>);
}

/// What a section has to know to be shown.
pub struct About<'a> {
    /// The monitor's options.
    pub options: &'a Options,
    /// How times of this report are written.
    pub times: Times,
}

/// Makes of the list: the set of names, the parts of a worker and of the merger, messages between them, and the
/// sections of the report.
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
            /// Those that run unless something else is asked for.
            pub const ALL: Self =
                Self { flows: true, volumes: true, $($name: <$part as Analysis>::IN_ALL,)* };

            /// None; a start for parsing.
            const NONE: Self = Self { flows: false, volumes: false, $($name: false,)* };

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

            /// Adds those of another set.
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

            /// What those of the list take for a live flow, bytes.
            pub(crate) fn flow_bytes(&self) -> u64 {
                0 $(+ u64::from(self.$name) * <$part as Analysis>::FLOW_BYTES)*
            }

            /// What those of the list take in each worker, bytes.
            pub(crate) fn worker_bytes(&self) -> u64 {
                0 $(+ u64::from(self.$name) * <$part as Analysis>::WORKER_BYTES)*
            }
        }

        /// A state report from a worker's analysis to its merger.
        #[allow(non_camel_case_types, missing_docs, reason = "named as the analyses")]
        #[derive(Clone, Copy, Debug)]
        pub enum Message {
            $($name(<$part as Analysis>::Message),)*
        }

        /// The analyses of a worker.
        pub(crate) struct Parts {
            $(pub(crate) $name: Option<$part>,)*
        }

        impl Parts {
            pub(crate) fn new(setup: &Setup, shard: Shard) -> Self {
                let on = setup.options.analyses;
                Self { $($name: on.$name.then(|| Analysis::new(setup, shard)),)* }
            }

            #[inline(always)]
            pub(crate) fn on_packets(
                &mut self,
                packets: &[PacketRecord],
                outbox: &mut impl ringtap_stage::Outbox<Message>,
            ) {
                $(if let Some(own) = &mut self.$name {
                    own.on_packets(packets, &mut |message| outbox.send(Message::$name(message)));
                })*
            }

            #[inline(always)]
            pub(crate) fn on_record(&mut self, record: &FlowRecord) {
                $(if <$part as Analysis>::TAKES_RECORDS && let Some(own) = &mut self.$name {
                    own.on_record(record);
                })*
            }

            pub(crate) fn on_tick(&mut self, time_ns: u64) -> Found {
                Found { $($name: self.$name.as_mut().and_then(|own| own.on_tick(time_ns)),)* }
            }

            pub(crate) fn ignored(&self) -> u64 {
                0 $(+ self.$name.as_ref().map_or(0, Analysis::ignored))*
            }

            pub(crate) fn end(&mut self) -> Found {
                Found { $($name: self.$name.take().map(Analysis::end),)* }
            }
        }

        /// What a worker's analyses hand over at a mark.
        pub(crate) struct Found {
            $($name: Option<<$part as Analysis>::Found>,)*
        }

        /// The mergers of the analyses.
        pub(crate) struct Mergers {
            $(pub(crate) $name: Option<<$part as Analysis>::Merger>,)*
        }

        impl Mergers {
            pub(crate) fn new(setup: &Setup) -> Self {
                let on = setup.options.analyses;
                Self { $($name: on.$name.then(|| Merge::new(setup)),)* }
            }

            pub(crate) fn on_message(&mut self, message: Message, alert: &mut dyn FnMut(&Alert)) {
                match message {
                    $(Message::$name(message) => if let Some(own) = &mut self.$name {
                        own.on_message(message, alert);
                    })*
                }
            }

            pub(crate) fn merge(&mut self, found: Found) {
                $(if let (Some(own), Some(found)) = (&mut self.$name, found.$name) {
                    own.merge(found);
                })*
            }

            pub(crate) fn on_time(&mut self, time_ns: u64, alert: &mut dyn FnMut(&Alert)) {
                $(if let Some(own) = &mut self.$name {
                    own.on_time(time_ns, alert);
                })*
            }

            pub(crate) fn ignored(&self) -> u64 {
                0 $(+ self.$name.as_ref().map_or(0, Merge::ignored))*
            }

            pub(crate) fn end(self, alert: &mut dyn FnMut(&Alert)) -> Sections {
                Sections { $($name: self.$name.map(|own| Merge::<$part>::end(own, alert)),)* }
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
            /// Those that are the same in every arrangement.
            pub fn exact(&self) -> Self {
                Self { $($name: if <$part as Analysis>::EXACT { self.$name.clone() } else { None },)* }
            }

            /// Those that are not.
            pub fn inexact(&self) -> Self {
                Self { $($name: if <$part as Analysis>::EXACT { None } else { self.$name.clone() },)* }
            }

            /// What was given up for lack of memory, and how much of it.
            pub fn losses(&self) -> Vec<(&'static str, u64)> {
                let mut all = Vec::new();
                $(all.extend(self.$name.iter().flat_map(Section::losses));)*
                all
            }

            /// The same as warnings, with the remedy.
            pub fn warnings(&self) -> Vec<String> {
                let mut all = Vec::new();
                $(all.extend(self.$name.iter().flat_map(Section::warnings));)*
                all
            }

            /// All of them for people.
            pub fn show(&self, page: &mut Page, about: &About<'_>) {
                $(if let Some(own) = &self.$name {
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
    /// Who sent and received most.
    talkers: talkers::TalkerTable,
    /// Who was busy in each interval, by sketches.
    activity: activity::ActivityTable,
}

impl Analyses {
    /// Names of those in the set, in alphabetical order.
    pub fn names(mut self) -> Vec<&'static str> {
        let mut names = Self::known();
        names.retain(|name| self.find(name).is_some_and(|on| *on));
        names
    }
}

/// A name in the list that is no analysis.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("no analysis is called {name:?}; there are {}, and all", Analyses::known().join(", "))]
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
