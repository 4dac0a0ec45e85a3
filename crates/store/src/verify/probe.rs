//! What a store has of a probe.

use serde::Serialize;

/// What a store has of a probe.
#[derive(Debug, Default, Serialize)]
pub struct Probe {
    /// Its name.
    pub name: String,
    /// Whether a process writes its files now.
    pub running: bool,
    /// Lines of its manifests.
    pub lines: u64,
    /// SHA-256 of the last line. A copy of it elsewhere shows later that no line was removed at the end.
    pub head: String,
    /// Its runs.
    pub runs: u64,
    /// Its files, without removed ones.
    pub files: u64,
    /// Their bytes.
    pub octets: u64,
    /// Their flow records.
    pub flow_records: u64,
    /// Files that retention has removed.
    pub removed: u64,
    /// The times of its first and last line, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<[u64; 2]>,
}
