//! The report of a run: an HTML page, one for each paper, and each figure as a file.

mod chapter;
mod figure;
mod page;
mod paper;
mod table;

use std::fs;
use std::path::{Path, PathBuf};

use self::chapter::{Chapter, Section};
use crate::experiment::{Experiment, Paper};
use crate::judge::{self, Judged, Judgement};
use crate::run_folder::RunFolder;
use crate::{LabError, catalogue, files, plot, prediction};

/// Writes `report.html`, a page for each paper, `figures/*.svg` (of what was measured) and `verdicts.csv` into the run's
/// folder. Returns the path of the first.
pub fn write(folder: &RunFolder) -> Result<PathBuf, LabError> {
    let experiments = catalogue::experiments()?;
    let of = |name: &str| experiments.iter().filter(|e| e.paper == name).cloned().collect();
    let papers = catalogue::papers()?.into_iter().map(|(name, paper)| (paper, of(name)));
    write_of(folder, papers.collect())
}

/// Like [`write()`], for these papers and experiments only.
pub fn write_of(
    folder: &RunFolder,
    papers: Vec<(Paper, Vec<Experiment>)>,
) -> Result<PathBuf, LabError> {
    let section = |experiment: Experiment| {
        // An experiment without rows was not run; its claims get no verdict.
        let Judged { rows, judgements, predicted, points } = judge::of_run(folder, &experiment)?;
        // A model that is withdrawn is not drawn.
        let drawn = if prediction::is_withdrawn(&points) { &[][..] } else { &predicted };
        let measured = rows.iter().any(|row| row.state.has_value());
        let svg = measured.then(|| figure::svg(&experiment, &rows, drawn));
        Ok(Section { experiment, rows, judgements, predicted, points, svg })
    };
    let chapter = |(paper, experiments): (Paper, Vec<Experiment>)| {
        Ok((paper, experiments.into_iter().map(section).collect::<Result<_, LabError>>()?))
    };
    let papers = papers.into_iter().map(chapter).collect::<Result<Vec<Chapter>, LabError>>()?;
    let figures = folder.path.join("figures");
    fs::create_dir_all(&figures).map_err(LabError::io("making", &figures))?;
    for section in papers.iter().flat_map(|(_, sections)| sections) {
        let file = figures.join(section.experiment.file_name() + ".svg");
        match &section.svg {
            Some(svg) => put(&file, &plot::stand_alone(svg))?,
            // A figure of an earlier report must not remain.
            None if file.exists() => {
                fs::remove_file(&file).map_err(LabError::io("removing", &file))?;
            }
            None => {}
        }
    }
    let overview = figure::overview(&papers);
    put(&figures.join("verdicts.svg"), &plot::stand_alone(&overview))?;
    let all = papers.iter().flat_map(|(_, sections)| sections);
    let judgements: Vec<_> = all.flat_map(|section| &section.judgements).collect();
    verdicts(&folder.path.join("verdicts.csv"), &judgements)?;
    for chapter in &papers {
        let page = folder.path.join(page::file(&chapter.1));
        put(&page, &page::of_paper(&folder.facts, chapter))?;
    }
    let file = folder.path.join("report.html");
    put(&file, &page::index(&folder.facts, &papers, &overview))?;
    Ok(file)
}

/// Writes a CSV file with a line for each claim.
fn verdicts(path: &Path, judgements: &[&Judgement]) -> Result<(), LabError> {
    let failed =
        |error: csv::Error| LabError::Rows { path: path.into(), reason: error.to_string() };
    let mut writer = csv::Writer::from_writer(Vec::new());
    for judgement in judgements {
        writer.serialize(judgement).map_err(failed)?;
    }
    let lines = writer.into_inner().map_err(|error| failed(error.into_error().into()))?;
    files::write(path, &lines)
}

fn put(path: &Path, text: &str) -> Result<(), LabError> {
    files::write(path, text.as_bytes())
}
