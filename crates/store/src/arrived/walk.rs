//! The files of a folder.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::rows::{ArrivedError, failed};

/// Calls `each` with every regular file below the folder, sorted by name in each folder.
pub(super) fn files(
    folder: &Path,
    each: &mut dyn FnMut(&Path) -> Result<(), ArrivedError>,
) -> Result<(), ArrivedError> {
    // A stack: the first name is the last.
    let mut waiting = entries(folder)?;
    while let Some((path, is_folder)) = waiting.pop() {
        if is_folder {
            waiting.extend(entries(&path)?);
        } else {
            each(&path)?;
        }
    }
    Ok(())
}

/// The folders and regular files in a folder, the last name first, and whether each is a folder.
fn entries(folder: &Path) -> Result<Vec<(PathBuf, bool)>, ArrivedError> {
    let fail = |source| failed(folder, source);
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        // Of the entry itself, also if it is a symbolic link.
        let kind = entry.file_type().map_err(fail)?;
        if (kind.is_dir() || kind.is_file()) && is_finished(&entry.file_name()) {
            found.push((entry.path(), kind.is_dir()));
        }
    }
    found.sort_unstable_by(|(one, _), (other, _)| other.cmp(one));
    Ok(found)
}

/// Whether the name is neither hidden nor that of a file that is still written.
fn is_finished(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    let is_current = name.starts_with(b"nfcapd.current");
    !name.starts_with(b".") && !name.ends_with(b".part") && !is_current
}
