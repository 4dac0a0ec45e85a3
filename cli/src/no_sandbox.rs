//! In place of `sandbox.rs` in a program without the feature `fence`.

use std::path::Path;

/// There is no fence.
pub(crate) fn enter<'a>(_outputs: impl Iterator<Item = &'a Path>) -> anyhow::Result<bool> {
    Ok(false)
}
