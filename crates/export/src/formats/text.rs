//! What a text format is, and what a run gives to it.

use std::sync::Arc;

use ringtap_flow::FlowRecord;

use crate::fields::{Columns, Origins};

/// A text format of flow records or events: a head, one line an item, and a tail. Each function appends to its first
/// argument.
#[derive(Debug)]
pub struct TextFormat<I = FlowRecord> {
    /// Text before the lines, if any; takes the earliest packet time of the first item, nanoseconds.
    pub head: Option<fn(&mut Vec<u8>, u64, &Interfaces)>,
    /// The line of an item, with its line feed; nothing if the format has no line for it.
    pub line: fn(&mut Vec<u8>, &I, &Interfaces),
    /// Text after the lines, if any; takes the latest packet time of all items, nanoseconds.
    pub tail: Option<fn(&mut Vec<u8>, u64)>,
}

impl<I> Clone for TextFormat<I> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<I> Copy for TextFormat<I> {}

/// An interface that received packets of flows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The kernel's number, as in `record.path.ingress`.
    pub index: u32,
    /// Its name when it was opened.
    pub name: String,
    /// Its description then (ifAlias), which may be empty.
    pub description: String,
}

/// The interfaces of a run; its records contain the interface of a flow's first packet. Empty for a run over files.
/// Zeek's format has no field for it. Also which [`Origins`] the run's records have, whether they are parts, and whether they
/// have statistics.
#[derive(Clone, Debug, Default)]
pub struct Interfaces {
    /// With their names as JSON strings.
    list: Arc<[(Interface, String)]>,
    origins: Origins,
    parts: bool,
    statistics: bool,
    entropy: bool,
}

impl Interfaces {
    /// Creates the list.
    pub fn new(interfaces: &[Interface]) -> Self {
        let list = interfaces.iter().map(|one| (one.clone(), quoted(&one.name))).collect();
        Self { list, ..Self::default() }
    }

    /// Returns true if there are none: records come from files.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Adds columns for origins.
    #[must_use]
    pub fn with(self, origins: Origins) -> Self {
        Self { origins, ..self }
    }

    /// Adds columns for parts of flows, if `parts`.
    #[must_use]
    pub fn with_parts(self, parts: bool) -> Self {
        Self { parts, ..self }
    }

    /// Adds columns for the statistics of packets, if `statistics`.
    #[must_use]
    pub fn with_statistics(self, statistics: bool) -> Self {
        Self { statistics, ..self }
    }

    /// Adds columns for the entropy of payloads, if `entropy`.
    #[must_use]
    pub fn with_entropy(self, entropy: bool) -> Self {
        Self { entropy, ..self }
    }

    /// Whether records are parts of flows.
    pub(crate) fn has_parts(&self) -> bool {
        self.parts
    }

    /// The columns that not all runs have.
    pub fn columns(&self) -> Columns {
        let (ingress, origins) = (!self.is_empty(), self.origins);
        let Self { parts, statistics, entropy, .. } = *self;
        Columns { ingress, origins, parts, statistics, entropy, stored: false }
    }

    /// The name of an interface as a JSON string; `None` if it is unknown.
    pub(crate) fn quoted_name(&self, index: u32) -> Option<&str> {
        let known = self.list.iter().find(|(own, _)| index > 0 && own.index == index);
        known.map(|(_, name)| name.as_str())
    }

    /// The interfaces with a number.
    pub(crate) fn numbered(&self) -> impl Iterator<Item = &Interface> {
        self.list.iter().map(|(own, _)| own).filter(|own| own.index > 0)
    }
}

/// A name as a JSON string.
fn quoted(name: &str) -> String {
    let mut text = Vec::new();
    ringtap_base::text::push_json(&mut text, name);
    String::from_utf8(text).unwrap_or_default()
}
