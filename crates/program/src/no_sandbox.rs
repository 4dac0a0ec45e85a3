//! Stub for `sandbox.rs` in builds without the feature `fence`.

use std::path::Path;

use ringtap_terminal::console::note;

/// Restricts nothing; says so in live runs.
pub fn enter<'a>(outputs: impl Iterator<Item = &'a Path>, is_live: bool) -> anyhow::Result<()> {
    enter_removing(outputs, None, is_live)
}

/// As [`enter`].
pub fn enter_removing<'a>(
    _outputs: impl Iterator<Item = &'a Path>,
    _removed: Option<&Path>,
    is_live: bool,
) -> anyhow::Result<()> {
    if is_live {
        note("files: not restricted, because this program was built without the feature fence");
    }
    Ok(())
}
