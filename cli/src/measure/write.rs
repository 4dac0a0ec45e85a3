//! Writes measurements to files; each is renamed when complete.

use anyhow::Context;
use ringtap_engine::Plan;
use ringtap_measure::Kind;
use ringtap_measure::run::{Merged, Options};

use crate::args::{SketchFile, SketchForm};
use crate::atomic_file::AtomicFile;
use ringtap_terminal::Usage;

/// Checks the outputs before the run.
pub(super) fn check(files: &[SketchFile], plan: &Plan<Options>) -> anyhow::Result<()> {
    let kind = plan.app.settings.structure;
    if kind != Kind::Mg && files.iter().any(|file| file.form == SketchForm::Apache) {
        return Err(Usage::of(format!(
            "--write apache:PATH with --structure {kind}: use --structure mg"
        )));
    }
    let twice =
        |(at, file): (usize, &SketchFile)| files[..at].iter().any(|one| one.path == file.path);
    if files.iter().enumerate().any(twice) {
        return Err(Usage::of("--write names the same file twice"));
    }
    Ok(())
}

/// Whether an output needs the number of distinct keys.
pub(super) fn needs_distinct(files: &[SketchFile]) -> bool {
    files.iter().any(|file| file.form == SketchForm::Hll)
}

/// Writes all outputs.
pub(super) fn write(files: &[SketchFile], merged: &Merged) -> anyhow::Result<()> {
    files.iter().try_for_each(|output| {
        let doing = || format!("writing {}", output.path.display());
        let none =
            || Usage::of("no distinct keys were counted: use --distinct, with at least one packet");
        let bytes = match output.form {
            SketchForm::Sketch => &merged.image,
            SketchForm::Apache => merged.frequent_items.as_ref().map_err(Usage::of)?,
            SketchForm::Hll => merged.distinct.as_ref().ok_or_else(none)?,
        };
        let mut file = AtomicFile::new(output.path.clone());
        let mut out = file.begin().with_context(doing)?;
        out.write_all(bytes).and_then(|()| out.flush()).with_context(doing)?;
        drop(out);
        file.finish().with_context(doing).map(drop)
    })
}
