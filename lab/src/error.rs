//! The error type of the lab. A failed trial is not an error: it becomes a row with its reason.

use std::io;
use std::path::PathBuf;

/// Why an experiment could not be run or reported.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    #[error("unknown experiment {id:?}: use an id that 'ringtap-lab list' prints, a group or all")]
    Unknown { id: String },
    #[error("invalid experiment {file}: {reason}")]
    Experiment { file: String, reason: String },
    #[error("{doing} {}", path.display())]
    Io { doing: &'static str, path: PathBuf, source: io::Error },
    #[error("{}: {reason}", path.display())]
    Rows { path: PathBuf, reason: String },
    #[error("no run in {}: 'ringtap-lab run' makes one", path.display())]
    NoRun { path: PathBuf },
    #[error("generating traffic {file}: {reason}")]
    Traffic { file: String, reason: String },
    #[error("building revision {revision}: {reason}")]
    Revision { revision: String, reason: String },
    #[error("{0}")]
    Trial(String),
    #[error("{0}")]
    Unavailable(String),
}

impl LabError {
    /// A closure for `map_err` that adds the action (`doing`) and the path.
    pub(crate) fn io(
        doing: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { doing, path, source }
    }
}
