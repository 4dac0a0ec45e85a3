//! The error type of the lab. A failed trial is not an error: it becomes a row with its reason.

use std::io;
use std::path::PathBuf;

/// Why an experiment could not be run or reported.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// No experiment or group has this id.
    #[error("unknown experiment {id:?}: use an id that 'ringtap-lab list' prints, a group or all")]
    Unknown {
        /// The id.
        id: String,
    },
    /// A file of experiments is invalid.
    #[error("invalid experiment {file}: {reason}")]
    Experiment {
        /// Name of the file.
        file: String,
        /// The error in it.
        reason: String,
    },
    /// A file cannot be read or written.
    #[error("{doing} {}", path.display())]
    Io {
        /// The action: "reading".
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// A file of rows is invalid.
    #[error("{}: {reason}", path.display())]
    Rows {
        /// The file.
        path: PathBuf,
        /// The error in it.
        reason: String,
    },
    /// The folder has no run.
    #[error("no run in {}: 'ringtap-lab run' makes one", path.display())]
    NoRun {
        /// The folder.
        path: PathBuf,
    },
    /// A program cannot be measured.
    #[error("{}: {reason}", path.display())]
    Program {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// Traffic cannot be generated.
    #[error("generating traffic {file}: {reason}")]
    Traffic {
        /// Name of the file.
        file: String,
        /// Message of the generator.
        reason: String,
    },
    /// A revision cannot be built.
    #[error("building revision {revision}: {reason}")]
    Revision {
        /// The revision.
        revision: String,
        /// Message of the build.
        reason: String,
    },
    /// A trial cannot be run, for this reason.
    #[error("{0}")]
    Trial(String),
    /// The machine or the programs lack something, given here.
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
