//! Restricts a process that reads hostile packets with Landlock: it can write files only in the
//! folders of its outputs, and cannot run programs. Reading is not restricted.

use std::fs;
use std::path::Path;

use anyhow::Context;
use landlock::{
    ABI, AccessFs, BitFlags, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, RulesetError, RulesetStatus,
};
use ringtap_terminal::console::note;

/// The Landlock version whose rights are restricted, except reading.
const VERSION: ABI = ABI::V3;

/// Restricts this thread and all threads that it starts. `outputs` are the files to be written.
/// Says if the kernel has no Landlock.
pub fn enter<'a>(outputs: impl Iterator<Item = &'a Path>, is_live: bool) -> anyhow::Result<()> {
    enter_removing(outputs, None, is_live)
}

/// As [`enter`]; empty folders below `removed` can be removed, too.
pub fn enter_removing<'a>(
    outputs: impl Iterator<Item = &'a Path>,
    removed: Option<&Path>,
    _is_live: bool,
) -> anyhow::Result<()> {
    if !restrict(outputs, removed)? {
        note("files: not restricted, because this kernel has no Landlock");
    }
    Ok(())
}

/// Returns false on a kernel without Landlock.
fn restrict<'a>(
    outputs: impl Iterator<Item = &'a Path>,
    removed: Option<&Path>,
) -> anyhow::Result<bool> {
    let restrict = || -> Result<bool, RulesetError> {
        let writing = AccessFs::from_write(VERSION);
        let mut rules = Ruleset::default().handle_access(writing | AccessFs::Execute)?.create()?;
        for path in outputs {
            let folder = match path.parent() {
                Some(folder) if folder != Path::new("") => folder,
                _ => Path::new("."),
            };
            rules = allow(rules, folder, writing)?;
            // The path may be a link: /dev/stdout is.
            if let Ok(file) = fs::canonicalize(path).as_deref()
                && !file.is_dir()
            {
                rules = allow(rules, file, writing & AccessFs::from_file(VERSION))?;
            }
        }
        if let Some(folder) = removed {
            rules = allow(rules, folder, AccessFs::RemoveDir.into())?;
        }
        Ok(rules.restrict_self()?.ruleset != RulesetStatus::NotEnforced)
    };
    restrict().context("restricting the process with Landlock")
}

/// Adds a rule for `path`. A path that cannot be opened is skipped: the writer reports the error.
fn allow(
    rules: RulesetCreated,
    path: &Path,
    what: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    match PathFd::new(path) {
        Ok(at) => rules.add_rule(PathBeneath::new(at, what)),
        Err(_) => Ok(rules),
    }
}

#[cfg(test)]
#[allow(clippy::print_stderr, reason = "a skipped test prints its reason")]
mod tests {
    use std::io::ErrorKind;
    use std::process::Command;

    use super::*;

    #[test]
    fn a_restricted_thread_writes_only_in_output_folders_and_runs_no_program() {
        let inside = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let (own, other) = (inside.path().join("own"), outside.path().join("other"));
        fs::write(&other, "as it was").unwrap();
        let emptied = tempfile::tempdir().unwrap();
        let [empty, file] = ["empty", "file"].map(|name| emptied.path().join(name));
        fs::create_dir(&empty).unwrap();
        fs::write(&file, "").unwrap();
        let link = inside.path().join("link");
        std::os::unix::fs::symlink("/dev/null", &link).unwrap();
        // The restriction applies to a thread and those it starts.
        std::thread::scope(|scope| {
            let restricted = scope.spawn(|| {
                if !restrict([own.as_path(), &link].into_iter(), Some(emptied.path())).unwrap() {
                    eprintln!("SKIPPED: this kernel has no Landlock");
                    return;
                }
                fs::write(&own, "records").unwrap();
                fs::rename(&own, inside.path().join("renamed")).unwrap();
                // Also through a link.
                fs::write(&link, "records").unwrap();
                assert_eq!(fs::read(&other).unwrap(), b"as it was");
                let denied = |result: std::io::Result<()>| {
                    assert_eq!(result.unwrap_err().kind(), ErrorKind::PermissionDenied);
                };
                denied(fs::write("/dev/full", "x"));
                fs::remove_dir(&empty).unwrap();
                denied(fs::remove_file(&file));
                denied(fs::create_dir(&empty));
                denied(Command::new("/bin/true").status().map(drop));
                let from_another = || scope.spawn(|| fs::write(&other, "x")).join().unwrap();
                denied(from_another());
            });
            restricted.join().unwrap();
        });
        assert_eq!(fs::read(&other).unwrap(), b"as it was");
    }
}
