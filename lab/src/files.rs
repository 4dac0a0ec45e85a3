//! Files that appear under their name when they are complete.

use std::fs;
use std::path::Path;

use crate::LabError;

/// Writes `bytes` to `path` by way of a file beside it, `NAME.part`. If that fails, a file that was there before is as it
/// was, and nothing else is left.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), LabError> {
    let mut part = path.to_owned();
    part.as_mut_os_string().push(".part");
    fs::write(&part, bytes)
        .and_then(|()| fs::rename(&part, path))
        .inspect_err(|_| {
            // If it cannot be removed, it still does not have the name of a complete file.
            let _ = fs::remove_file(&part);
        })
        .map_err(LabError::io("writing", path))
}
