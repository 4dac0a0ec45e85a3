//! Measurements to files, whole or not at all.

use anyhow::Context;
use ringtap_engine::Plan;
use ringtap_measure::Kind;
use ringtap_measure::run::{Merged, Options};

use crate::args::{SketchFile, SketchForm};
use crate::whole::Whole;
use ringtap_terminal::Usage;

/// Refuses what cannot be written, before anything is counted.
pub(super) fn check(files: &[SketchFile], plan: &Plan<Options>) -> anyhow::Result<()> {
    let kind = plan.app.settings.structure;
    if kind != Kind::Mg && files.iter().any(|file| file.form == SketchForm::Apache) {
        return Err(Usage::of(format!("apache:PATH is for --structure mg, not for {kind}")));
    }
    let twice =
        |(at, file): (usize, &SketchFile)| files[..at].iter().any(|one| one.path == file.path);
    if files.iter().enumerate().any(twice) {
        return Err(Usage::of("--write names the same file twice"));
    }
    Ok(())
}

pub(super) fn needs_distinct(files: &[SketchFile]) -> bool {
    files.iter().any(|file| file.form == SketchForm::Hll)
}

/// Writes them all.
pub(super) fn write(files: &[SketchFile], merged: &Merged) -> anyhow::Result<()> {
    files.iter().try_for_each(|file| {
        let doing = || format!("writing {}", file.path.display());
        let none = || {
            Usage::of(
                "no distinct keys were counted; measure with --distinct, of packets that there are",
            )
        };
        let bytes = match file.form {
            SketchForm::Sketch => &merged.image,
            SketchForm::Apache => merged.frequent_items.as_ref().map_err(Usage::of)?,
            SketchForm::Hll => merged.distinct.as_ref().ok_or_else(none)?,
        };
        let mut whole = Whole::new(file.path.clone());
        let mut out = whole.begin().with_context(doing)?;
        out.write_all(bytes).and_then(|()| out.flush()).with_context(doing)?;
        drop(out);
        whole.finish().with_context(doing).map(drop)
    })
}
