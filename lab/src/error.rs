//! What keeps the lab from going on. A trial that fails is no error: it is a row with its reason.

use std::io;
use std::path::PathBuf;

/// Why an experiment could not be run or reported.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    #[error("there is no experiment {id:?}; 'ringtap-lab list' shows them all")]
    Unknown { id: String },
    #[error("the experiment in {file}: {reason}")]
    Experiment { file: String, reason: String },
    #[error("{doing} {}", path.display())]
    Io { doing: &'static str, path: PathBuf, source: io::Error },
    #[error("{}: {reason}", path.display())]
    Rows { path: PathBuf, reason: String },
    #[error("{}: no run is here; 'ringtap-lab run' makes one", path.display())]
    NoRun { path: PathBuf },
    #[error("making the traffic {file}: {reason}")]
    Traffic { file: String, reason: String },
    #[error("building revision {revision}: {reason}")]
    Revision { revision: String, reason: String },
    #[error("{0}")]
    Trial(String),
    #[error("{0}")]
    Unavailable(String),
}

impl LabError {
    /// For `map_err`: what was being done to which file.
    pub(crate) fn io(
        doing: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { doing, path, source }
    }
}
