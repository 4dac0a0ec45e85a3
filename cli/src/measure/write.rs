//! Writes measurements to files; each is renamed when complete.

use anyhow::Context;
use ringtap_engine::Plan;
use ringtap_measure::Kind;
use ringtap_measure::run::{Merged, Options};

use crate::args::{SketchFile, SketchForm};
use ringtap_program::atomic_file::{AtomicFile, Existing};
use ringtap_terminal::Usage;

/// Checks the outputs before the run.
pub(super) fn check(files: &[SketchFile], plan: &Plan<Options>) -> anyhow::Result<()> {
    let kind = plan.app.settings.structure;
    if kind != Kind::Mg && files.iter().any(|file| file.form == SketchForm::Apache) {
        return Err(Usage::of(format!(
            "--write apache:PATH with --structure {kind}: use --structure mg"
        )));
    }
    Ok(())
}

/// Whether an output needs the number of distinct keys.
pub(super) fn needs_distinct(files: &[SketchFile]) -> bool {
    files.iter().any(|file| file.form == SketchForm::Hll)
}

/// Creates all outputs, so that no other process takes their names.
pub(super) fn claim(files: &[SketchFile], existing: Existing) -> anyhow::Result<Vec<AtomicFile>> {
    let claim = |output: &SketchFile| {
        AtomicFile::claim(output.path.clone(), existing)
            .with_context(|| format!("writing {}", output.path.display()))
    };
    files.iter().map(claim).collect()
}

/// Writes all outputs, which were claimed.
pub(super) fn write(
    files: &[SketchFile],
    claimed: Vec<AtomicFile>,
    merged: &Merged,
) -> anyhow::Result<()> {
    files.iter().zip(claimed).try_for_each(|(output, mut file)| {
        let doing = || format!("writing {}", output.path.display());
        let none =
            || Usage::of("no distinct keys were counted: use --distinct, with at least one packet");
        let bytes = match output.form {
            SketchForm::Sketch => merged.image(),
            SketchForm::Apache => merged.frequent_items().map_err(Usage::of)?,
            SketchForm::Hll => merged.distinct().ok_or_else(none)?,
        };
        let mut out = file.begin().with_context(doing)?;
        out.write_all(&bytes).and_then(|()| out.flush()).with_context(doing)?;
        drop(out);
        file.finish().with_context(doing).map(drop)
    })
}
