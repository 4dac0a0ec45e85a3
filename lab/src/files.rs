//! Atomic writing of files.

use std::fs;
use std::path::Path;

use crate::LabError;

/// Writes `bytes` to `NAME.part` and renames it to `path`. On failure an existing file keeps its
/// contents and the `.part` file is removed.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), LabError> {
    let mut part = path.to_owned();
    part.as_mut_os_string().push(".part");
    fs::write(&part, bytes)
        .and_then(|()| fs::rename(&part, path))
        .inspect_err(|_| {
            // If it cannot be removed, its name still marks it as incomplete.
            let _ = fs::remove_file(&part);
        })
        .map_err(LabError::io("writing", path))
}
