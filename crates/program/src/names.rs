//! Names of output files: of parts that are written, and of files beside others.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use tempfile::{PathPersistError, TempPath};

/// The end of a temporary name.
pub(crate) const SUFFIX: &str = ".part";

/// The end of the name of a file that will replace a temporary one. What a process left of it is of no use.
pub(crate) const REWRITTEN: &str = ".rewritten";

/// The beginning of the temporary names of a file.
pub(crate) fn prefix(path: &Path) -> OsString {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".");
    name
}

/// Gives a temporary file the name `path` or, if that exists, the next free one. Returns the name, whose folders are
/// created.
pub(crate) fn persist(mut part: TempPath, path: &Path) -> Result<PathBuf, PathPersistError> {
    if let Err(error) = create_folders(folder(path)) {
        return Err(PathPersistError { error, path: part });
    }
    for name in names(path) {
        if exists(&name) {
            continue;
        }
        match part.persist_noclobber(&name) {
            Ok(()) => return Ok(name),
            Err(failed) if failed.error.kind() == ErrorKind::AlreadyExists => {
                part = failed.path;
            }
            Err(failed) => return Err(failed),
        }
    }
    unreachable!("numbers do not end")
}

/// Creates a folder and those above it, so that they are on the disk.
pub(crate) fn create_folders(folder: &Path) -> io::Result<()> {
    let missing: Vec<_> = folder.ancestors().take_while(|folder| !exists(folder)).collect();
    for folder in missing.into_iter().rev().filter(|folder| *folder != Path::new("")) {
        match fs::create_dir(folder) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            _ => File::open(self::folder(folder))?.sync_all()?,
        }
    }
    Ok(())
}

/// The name of a file, and those with numbers.
pub(crate) fn names(path: &Path) -> impl Iterator<Item = PathBuf> {
    std::iter::once(path.to_owned()).chain((1..).map(|number| numbered(path, number)))
}

/// The next free name of a file: the name itself if it is free.
pub(crate) fn free_name(path: &Path) -> PathBuf {
    names(path).find(|name| !exists(name)).unwrap_or_else(|| path.to_owned())
}

/// Whether the name exists, also as a symbolic link to nothing.
pub(crate) fn exists(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// `flows.1.json` for `flows.json`: the extension remains.
fn numbered(path: &Path, number: u64) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!(".{number}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// The folder of a file.
pub(crate) fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_extension() {
        for (name, next) in
            [("a.json", "a.1.json"), ("a", "a.1"), (".a", ".a.1"), ("b/a.x", "b/a.1.x")]
        {
            assert_eq!(numbered(Path::new(name), 1), Path::new(next));
        }
    }
}
