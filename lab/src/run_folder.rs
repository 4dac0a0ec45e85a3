//! The folder of a run: `runs/2026-11-22-xeon-2c-0123456789ab-quick`.
//!
//! It contains `machine.json`, a CSV file for each experiment, the folder `predictions` with another one for some, and the
//! output of `report`. Its name contains machine, commit, effort and whether the gate was off, so an interrupted run is
//! continued in the same folder, and results of different programs are never mixed. Traffic is in the folder `traffic` next
//! to the runs.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::experiment::Experiment;
use crate::machine::Machine;
use crate::programs::{Build, sha256};
use crate::rows::{self, Row, RowFile};
use crate::settings::Setting;
use crate::{COMMIT, LabError, clock, files};

const FACTS: &str = "machine.json";
/// Folder of the predictions.
const PREDICTIONS: &str = "predictions";

/// The folder of one run: its rows, figures and verdicts.
#[derive(Clone, Debug)]
pub struct RunFolder {
    /// Path of the folder.
    pub path: PathBuf,
    /// Facts about the run.
    pub facts: Facts,
}

/// Provenance of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Facts {
    pub date: String,
    pub commit: String,
    pub quick: bool,
    /// Whether disturbed trials were found (`quiet`); `None` in early runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<bool>,
    pub machine: Machine,
    /// The programs by name; empty in early runs.
    #[serde(default)]
    pub programs: BTreeMap<String, Build>,
    /// SHA-256 of each file of predictions, by its name; written before the experiment's first trial.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub predictions: BTreeMap<String, String>,
}

impl RunFolder {
    /// Opens the run of these programs on this machine below `root`, or creates it.
    pub fn open(
        root: &Path,
        machine: &Machine,
        quick: bool,
        gate: bool,
        programs: BTreeMap<String, Build>,
    ) -> Result<Self, LabError> {
        let effort = if quick { "quick" } else { "full" };
        let without = if gate { "" } else { "-no-gate" };
        let name = format!("{}-{COMMIT}-{effort}{without}", machine.label());
        let begun = folders(root)
            .into_iter()
            .rev()
            .find(|path| path.to_string_lossy().ends_with(&format!("-{name}")));
        if let Some(path) = begun {
            let run = Self::read(&path)?;
            if run.facts.programs != programs {
                let reason =
                    "was measured with other programs of the same commit: move it away".into();
                return Err(LabError::Rows { path, reason });
            }
            return Ok(run);
        }
        let date = clock::today();
        let path = root.join(format!("{date}-{name}"));
        fs::create_dir_all(&path).map_err(LabError::io("making", &path))?;
        let facts = Facts {
            date,
            commit: COMMIT.into(),
            quick,
            gate: Some(gate),
            machine: machine.clone(),
            programs,
            predictions: BTreeMap::new(),
        };
        let own = Self { path, facts };
        own.write_facts()?;
        Ok(own)
    }

    fn write_facts(&self) -> Result<(), LabError> {
        let failed = |error: serde_json::Error| LabError::Rows {
            path: self.path.clone(),
            reason: error.to_string(),
        };
        let text = serde_json::to_string_pretty(&self.facts).map_err(failed)?;
        files::write(&self.path.join(FACTS), (text + "\n").as_bytes())
    }

    /// Opens the run at `path`.
    pub fn read(path: &Path) -> Result<Self, LabError> {
        let file = path.join(FACTS);
        let text = fs::read_to_string(&file).map_err(|_| LabError::NoRun { path: path.into() })?;
        let facts = serde_json::from_str(&text)
            .map_err(|error| LabError::Rows { path: file, reason: error.to_string() })?;
        Ok(Self { path: path.into(), facts })
    }

    /// The most recently modified run below `root`.
    pub fn latest(root: &Path) -> Result<Self, LabError> {
        let changed = |path: &PathBuf| {
            let files = fs::read_dir(path).into_iter().flatten().flatten();
            files.filter_map(|file| file.metadata().ok()?.modified().ok()).max()
        };
        let latest = folders(root).into_iter().max_by_key(changed);
        Self::read(&latest.ok_or_else(|| LabError::NoRun { path: root.into() })?)
    }

    /// The file with the rows of an experiment.
    pub(crate) fn rows(
        &self,
        experiment: &Experiment,
        settings: &[Setting],
    ) -> Result<RowFile, LabError> {
        RowFile::open(self.file(experiment), settings)
    }

    /// The rows of an experiment; empty if it was not measured.
    pub fn measured(&self, experiment: &Experiment) -> Result<Vec<Row>, LabError> {
        let file = self.file(experiment);
        if file.exists() { Ok(rows::read(&file)?.1) } else { Ok(Vec::new()) }
    }

    /// The file with the predictions of an experiment.
    pub(crate) fn predictions(
        &self,
        experiment: &Experiment,
        settings: &[Setting],
    ) -> Result<RowFile, LabError> {
        let folder = self.path.join(PREDICTIONS);
        fs::create_dir_all(&folder).map_err(LabError::io("making", &folder))?;
        RowFile::open(self.predictions_file(experiment), settings)
    }

    /// Whether the predictions of an experiment are complete.
    pub(crate) fn is_sealed(&self, experiment: &Experiment) -> bool {
        self.facts.predictions.contains_key(&experiment.file_name())
    }

    /// Notes the hash of an experiment's predictions: from now on they cannot change unnoticed.
    pub(crate) fn seal(&mut self, experiment: &Experiment) -> Result<(), LabError> {
        let hash = self.hash_of_predictions(experiment)?;
        self.facts.predictions.insert(experiment.file_name(), hash);
        self.write_facts()
    }

    /// The predictions of an experiment; empty if there are none.
    ///
    /// # Errors
    /// The file cannot be read, or it changed since the experiment was measured.
    pub fn predicted(&self, experiment: &Experiment) -> Result<Vec<Row>, LabError> {
        let Some(sealed) = self.facts.predictions.get(&experiment.file_name()) else {
            return Ok(Vec::new());
        };
        let path = self.predictions_file(experiment);
        if self.hash_of_predictions(experiment)? != *sealed {
            let reason = "these predictions are not those that were made before the trials: \
                          machine.json has another hash"
                .into();
            return Err(LabError::Rows { path, reason });
        }
        Ok(rows::read(&path)?.1)
    }

    fn hash_of_predictions(&self, experiment: &Experiment) -> Result<String, LabError> {
        let path = self.predictions_file(experiment);
        sha256(&path).map_err(|reason| LabError::Rows { path, reason })
    }

    fn predictions_file(&self, experiment: &Experiment) -> PathBuf {
        self.path.join(PREDICTIONS).join(experiment.file_name() + ".csv")
    }

    /// The folder of traffic files, which all runs below the same root share.
    pub(crate) fn traffic(&self) -> PathBuf {
        self.path.parent().unwrap_or(Path::new(".")).join("traffic")
    }

    fn file(&self, experiment: &Experiment) -> PathBuf {
        self.path.join(experiment.file_name() + ".csv")
    }
}

/// Folders of runs below `root`, sorted by name.
fn folders(root: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    let mut folders: Vec<_> =
        entries.map(|entry| entry.path()).filter(|path| path.join(FACTS).is_file()).collect();
    folders.sort();
    folders
}
