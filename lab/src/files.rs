//! Atomic writing of files.

use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::LabError;

/// Writes `bytes` to a new file with a random name and renames it to `path`, which it replaces. On failure an existing
/// file keeps its contents, and the new one is removed.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), LabError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let written = tempfile::Builder::new()
        .prefix(".")
        .suffix(".part")
        // As of any new file; the process's mask removes rights.
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder.unwrap_or(Path::new(".")))
        .and_then(|mut part| {
            part.write_all(bytes)?;
            part.persist(path).map_err(|failed| failed.error)
        });
    written.map(drop).map_err(LabError::io("writing", path))
}
