//! Files of traffic that experiments read, made once and kept beside the runs.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::experiment::{Experiment, Traffic};
use crate::programs::Programs;
use crate::{LabError, template, trial};

/// Making a file takes no longer.
const LIMIT: Duration = Duration::from_secs(1_200);

/// Writes into `folder` what `experiment` needs and is not there yet.
pub(crate) fn make(
    programs: &Programs,
    folder: &Path,
    experiment: &Experiment,
    quick: bool,
) -> Result<(), LabError> {
    let parameters = &experiment.effort(quick).set;
    let known = parameters.iter().map(|(name, value)| (name.clone(), value.to_string())).collect();
    for Traffic { file, command } in &experiment.traffic {
        let told = |reason| LabError::Traffic { file: file.clone(), reason };
        let path = folder.join(template::fill_word(file, &known).map_err(told)?);
        if path.exists() {
            continue;
        }
        fs::create_dir_all(folder).map_err(LabError::io("making", folder))?;
        // Under its name only when it is whole.
        let part = path.with_extension("part");
        let mut words = template::fill(command, &known).map_err(told)?;
        words.extend(["-w".into(), part.to_string_lossy().into_owned()]);
        let (program, words) =
            words.split_first().ok_or_else(|| told("an empty command".into()))?;
        let program = programs.file(program).map_err(told)?;
        trial::run(&program, words, LIMIT, folder).map_err(|error| told(error.to_string()))?;
        fs::rename(&part, &path).map_err(LabError::io("naming", &path))?;
    }
    Ok(())
}
