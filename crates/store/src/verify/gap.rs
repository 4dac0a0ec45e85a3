//! What is missing or wrong in a store.

use serde::Serialize;

/// A gap: what is missing or wrong, where, and how much.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Gap {
    /// The probe; empty for what belongs to none.
    pub probe: String,
    /// What kind of gap.
    pub kind: GapKind,
    /// The file, by its path in the store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The output, as the manifest names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// Its begin and end, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<[u64; 2]>,
    /// How many packets, records or lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// In words.
    pub text: String,
}

impl Gap {
    pub(super) fn new(probe: &str, kind: GapKind, text: impl Into<String>) -> Self {
        let (file, output, interval, count) = (None, None, None, None);
        Self { probe: probe.into(), kind, file, output, interval, count, text: text.into() }
    }

    pub(super) fn file(self, file: impl Into<String>) -> Self {
        Self { file: Some(file.into()), ..self }
    }

    pub(super) fn output(self, output: impl Into<String>) -> Self {
        Self { output: Some(output.into()), ..self }
    }

    pub(super) fn interval(self, interval: Option<[u64; 2]>) -> Self {
        Self { interval, ..self }
    }

    pub(super) fn count(self, count: u64) -> Self {
        Self { count: Some(count), ..self }
    }
}

/// A kind of gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GapKind {
    /// A line of the manifest cannot be read.
    LineDamaged,
    /// A line of the manifest is missing, or not in its place.
    LineMissing,
    /// A line of the manifest was changed.
    LineChanged,
    /// A file that the manifest has is missing.
    FileMissing,
    /// A file is not as it was written.
    FileChanged,
    /// A file has another name.
    FileRenamed,
    /// The manifest has a file twice.
    FileTwice,
    /// The manifest does not have a file.
    FileUnlisted,
    /// A process ended early.
    RunEndedEarly,
    /// No process ran.
    NoData,
    /// The clock was set.
    Clock,
    /// Packets were not handled.
    PacketsDropped,
    /// Records were not written or sent.
    RecordsLost,
    /// Numbers that must be equal are not.
    LedgerOpen,
    /// Records did not arrive elsewhere.
    NotArrived,
    /// Records arrived elsewhere more than once, or are of another origin.
    ArrivedTwice,
    /// As many records arrived, but others.
    ArrivedChanged,
    /// What arrived is not all records.
    ArrivedInvalid,
}
