//! Traffic files that experiments read, generated once and stored next to the runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::experiment::{Experiment, Traffic};
use crate::programs::Programs;
use crate::trial::{self, How};
use crate::{LabError, template};

/// Time limit for the generation of a file.
const LIMIT: Duration = Duration::from_secs(1_200);

/// Generates the traffic files of `experiment` that `folder` lacks.
pub(crate) fn make(
    programs: &Programs,
    folder: &Path,
    experiment: &Experiment,
    quick: bool,
) -> Result<(), LabError> {
    let files = files(experiment, quick, folder)?;
    for (traffic, (path, mut words)) in experiment.traffic.iter().zip(files) {
        let failed = |reason| LabError::Traffic { file: traffic.file.clone(), reason };
        if path.exists() {
            continue;
        }
        fs::create_dir_all(folder).map_err(LabError::io("making", folder))?;
        // The file gets its name when it is complete. An interrupted run may have left a part.
        let part = path.with_extension("part");
        let _ = fs::remove_file(&part);
        words.extend(["-w".into(), part.to_string_lossy().into_owned()]);
        let (program, words) =
            words.split_first().ok_or_else(|| failed("the command is empty".into()))?;
        let program = programs.file(program).map_err(failed)?;
        trial::run(&program, words, &How { limit: LIMIT, scratch: folder, only: None })
            .map_err(|error| failed(error.to_string()))?;
        fs::rename(&part, &path).map_err(LabError::io("renaming", &path))?;
    }
    Ok(())
}

/// The commands that write the traffic files of `experiment` into `folder`.
pub(crate) fn commands(
    experiment: &Experiment,
    quick: bool,
    folder: &Path,
) -> Result<Vec<Vec<String>>, LabError> {
    let with_file = |(path, mut words): (PathBuf, Vec<String>)| {
        words.extend(["-w".into(), path.to_string_lossy().into_owned()]);
        words
    };
    Ok(files(experiment, quick, folder)?.into_iter().map(with_file).collect())
}

/// Path and command, without the path, of each traffic file.
fn files(
    experiment: &Experiment,
    quick: bool,
    folder: &Path,
) -> Result<Vec<(PathBuf, Vec<String>)>, LabError> {
    let parameters = &experiment.effort(quick).set;
    let known = parameters.iter().map(|(name, value)| (name.clone(), value.to_string())).collect();
    let file = |Traffic { file, command }: &Traffic| {
        let failed = |reason| LabError::Traffic { file: file.clone(), reason };
        let path = folder.join(template::fill_word(file, &known).map_err(failed)?);
        Ok((path, template::fill(command, &known).map_err(failed)?))
    };
    experiment.traffic.iter().map(file).collect()
}
