//! A fence around a process that reads hostile packets (Landlock): from here on it writes files only where its outputs
//! go, makes and removes none elsewhere, and runs no program. Reading is as free as before.

use std::fs;
use std::path::Path;

use anyhow::Context;
use landlock::{
    ABI, AccessFs, BitFlags, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, RulesetError, RulesetStatus,
};

/// What is fenced in where the kernel knows it: all rights of this version but reading.
const VERSION: ABI = ABI::V3;

/// Puts up the fence for this thread and all that it starts from here on; a kernel without Landlock has none.
/// `outputs` are the files that will be written. Whether it stands.
pub(crate) fn enter<'a>(outputs: impl Iterator<Item = &'a Path>) -> anyhow::Result<bool> {
    let fence = || -> Result<bool, RulesetError> {
        let writing = AccessFs::from_write(VERSION);
        let mut rules = Ruleset::default().handle_access(writing | AccessFs::Execute)?.create()?;
        for path in outputs {
            let folder = match path.parent() {
                Some(folder) if folder != Path::new("") => folder,
                _ => Path::new("."),
            };
            rules = allow(rules, folder, writing)?;
            // The path may lead elsewhere: /dev/stdout does.
            if let Ok(file) = fs::canonicalize(path).as_deref()
                && !file.is_dir()
            {
                rules = allow(rules, file, writing & AccessFs::from_file(VERSION))?;
            }
        }
        Ok(rules.restrict_self()?.ruleset != RulesetStatus::NotEnforced)
    };
    fence().context("giving up the right to write elsewhere")
}

/// What cannot be opened cannot be written either; who writes will say so.
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
#[allow(clippy::print_stderr, reason = "what is skipped is said")]
mod tests {
    use std::io::ErrorKind;
    use std::process::Command;

    use super::*;

    #[test]
    fn outside_of_the_fence_nothing_is_written_and_no_program_runs() {
        let inside = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let (own, other) = (inside.path().join("own"), outside.path().join("other"));
        fs::write(&other, "as it was").unwrap();
        let link = inside.path().join("link");
        std::os::unix::fs::symlink("/dev/null", &link).unwrap();
        // The fence is for a thread and those it starts.
        std::thread::scope(|scope| {
            let fenced = scope.spawn(|| {
                if !enter([own.as_path(), &link].into_iter()).unwrap() {
                    eprintln!("SKIPPED: this kernel has no Landlock");
                    return;
                }
                fs::write(&own, "records").unwrap();
                fs::rename(&own, inside.path().join("renamed")).unwrap();
                // Where a link leads, too.
                fs::write(&link, "records").unwrap();
                assert_eq!(fs::read(&other).unwrap(), b"as it was");
                let denied = |result: std::io::Result<()>| {
                    assert_eq!(result.unwrap_err().kind(), ErrorKind::PermissionDenied);
                };
                denied(fs::write("/dev/full", "x"));
                denied(Command::new("/bin/true").status().map(drop));
                let from_another = || scope.spawn(|| fs::write(&other, "x")).join().unwrap();
                denied(from_another());
            });
            fenced.join().unwrap();
        });
        assert_eq!(fs::read(&other).unwrap(), b"as it was");
    }
}
