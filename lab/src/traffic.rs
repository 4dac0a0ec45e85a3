//! Traffic files that experiments read, generated once and stored next to the runs.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::experiment::{Experiment, Traffic};
use crate::programs::Programs;
use crate::{LabError, template, trial};

/// Time limit for the generation of a file.
const LIMIT: Duration = Duration::from_secs(1_200);

/// Generates the traffic files of `experiment` that `folder` lacks.
pub(crate) fn make(
    programs: &Programs,
    folder: &Path,
    experiment: &Experiment,
    quick: bool,
) -> Result<(), LabError> {
    let parameters = &experiment.effort(quick).set;
    let known = parameters.iter().map(|(name, value)| (name.clone(), value.to_string())).collect();
    for Traffic { file, command } in &experiment.traffic {
        let failed = |reason| LabError::Traffic { file: file.clone(), reason };
        let path = folder.join(template::fill_word(file, &known).map_err(failed)?);
        if path.exists() {
            continue;
        }
        fs::create_dir_all(folder).map_err(LabError::io("making", folder))?;
        // The file gets its name when it is complete.
        let part = path.with_extension("part");
        let mut words = template::fill(command, &known).map_err(failed)?;
        words.extend(["-w".into(), part.to_string_lossy().into_owned()]);
        let (program, words) =
            words.split_first().ok_or_else(|| failed("the command is empty".into()))?;
        let program = programs.file(program).map_err(failed)?;
        trial::run(&program, words, LIMIT, folder).map_err(|error| failed(error.to_string()))?;
        fs::rename(&part, &path).map_err(LabError::io("renaming", &path))?;
    }
    Ok(())
}
