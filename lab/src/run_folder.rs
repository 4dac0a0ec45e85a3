//! A run's folder: `runs/2026-11-22-xeon-2c-0123456789ab-quick`.
//!
//! It holds `machine.json`, a CSV file an experiment, and what `report` makes of them. The folder's
//! name says machine, commit and effort, so a run that was cut off is taken up again, and results of
//! different programs never get into one file. Traffic lies beside the runs, in `traffic`.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::experiment::Experiment;
use crate::machine::Machine;
use crate::rows::{self, Row, RowFile};
use crate::settings::Setting;
use crate::{COMMIT, LabError, clock, files};

const FACTS: &str = "machine.json";

/// The folder of one run: its rows, figures and verdicts.
#[derive(Clone, Debug)]
pub struct RunFolder {
    pub path: PathBuf,
    pub facts: Facts,
}

/// What a run is from.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Facts {
    pub date: String,
    pub commit: String,
    pub quick: bool,
    pub machine: Machine,
}

impl RunFolder {
    /// The run of this program on this machine below `root`, taken up again if there is one.
    pub fn open(root: &Path, machine: &Machine, quick: bool) -> Result<Self, LabError> {
        let effort = if quick { "quick" } else { "full" };
        let name = format!("{}-{COMMIT}-{effort}", machine.label());
        let begun = folders(root)
            .into_iter()
            .rev()
            .find(|path| path.to_string_lossy().ends_with(&format!("-{name}")));
        if let Some(path) = begun {
            return Self::read(&path);
        }
        let date = clock::today();
        let path = root.join(format!("{date}-{name}"));
        fs::create_dir_all(&path).map_err(LabError::io("making", &path))?;
        let facts = Facts { date, commit: COMMIT.into(), quick, machine: machine.clone() };
        let text = serde_json::to_string_pretty(&facts)
            .map_err(|error| LabError::Rows { path: path.clone(), reason: error.to_string() })?;
        let file = path.join(FACTS);
        files::write(&file, (text + "\n").as_bytes())?;
        Ok(Self { path, facts })
    }

    /// The folder at `path`.
    pub fn read(path: &Path) -> Result<Self, LabError> {
        let file = path.join(FACTS);
        let text = fs::read_to_string(&file).map_err(|_| LabError::NoRun { path: path.into() })?;
        let facts = serde_json::from_str(&text)
            .map_err(|error| LabError::Rows { path: file, reason: error.to_string() })?;
        Ok(Self { path: path.into(), facts })
    }

    /// The run below `root` that was written to last.
    pub fn latest(root: &Path) -> Result<Self, LabError> {
        let changed = |path: &PathBuf| {
            let files = fs::read_dir(path).into_iter().flatten().flatten();
            files.filter_map(|file| file.metadata().ok()?.modified().ok()).max()
        };
        let latest = folders(root).into_iter().max_by_key(changed);
        Self::read(&latest.ok_or_else(|| LabError::NoRun { path: root.into() })?)
    }

    /// An experiment's rows, as far as they were written.
    pub(crate) fn rows(
        &self,
        experiment: &Experiment,
        settings: &[Setting],
    ) -> Result<RowFile, LabError> {
        RowFile::open(self.file(experiment), settings)
    }

    /// What was measured, if anything was.
    pub fn measured(&self, experiment: &Experiment) -> Result<Vec<Row>, LabError> {
        let file = self.file(experiment);
        if file.exists() { Ok(rows::read(&file)?.1) } else { Ok(Vec::new()) }
    }

    /// Where files of traffic are, for all runs below the same root.
    pub(crate) fn traffic(&self) -> PathBuf {
        self.path.parent().unwrap_or(Path::new(".")).join("traffic")
    }

    fn file(&self, experiment: &Experiment) -> PathBuf {
        self.path.join(experiment.file_name() + ".csv")
    }
}

/// Runs below `root`, by name.
fn folders(root: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    let mut folders: Vec<_> =
        entries.map(|entry| entry.path()).filter(|path| path.join(FACTS).is_file()).collect();
    folders.sort();
    folders
}
