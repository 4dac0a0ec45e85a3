//! The files of a command, and what each is for. No file may be two of them: an output would destroy an input, a
//! key or another output.
//!
//! Files are compared by device and inode, so links and different spellings of a path are one file. A name that does
//! not exist yet is compared by its folder's device and inode and its last part.

use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use ringtap_terminal::Usage;
use ringtap_terminal::console::note;
use rustix::fs::{fstat, major, minor};

use crate::atomic_file::{Existing, Target};
use crate::names::{exists, folder, free_name};

/// The most symbolic links of a name, as in the kernel.
const MOST_LINKS: usize = 40;

/// The device numbers of memory, of which /dev/null, /dev/zero and /dev/full may be used twice.
const MEMORY: u32 = 1;
const ENDLESS: [u32; 3] = [3, 5, 7];

/// The files of a command.
#[derive(Default)]
pub struct Roles {
    files: Vec<Role>,
}

struct Role {
    /// As in `--read a.pcap`.
    name: String,
    path: PathBuf,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Read.
    Input,
    /// Written under a new name.
    Output,
    /// Continued in place, or a socket.
    Other,
}

/// What distinguishes files.
#[derive(PartialEq, Eq)]
enum Identity {
    File(u64, u64),
    /// A name in a folder.
    Name(u64, u64, OsString),
    /// A name without a folder.
    Path(PathBuf),
}

impl Roles {
    /// Adds files that are read; `-` is stdin.
    pub fn reads<P: AsRef<Path>>(
        &mut self,
        flag: &str,
        paths: impl IntoIterator<Item = P>,
    ) -> &mut Self {
        self.add_all(flag, paths, Kind::Input)
    }

    /// Adds files that are written; `-` is stdout.
    pub fn writes<P: AsRef<Path>>(
        &mut self,
        flag: &str,
        paths: impl IntoIterator<Item = P>,
    ) -> &mut Self {
        self.add_all(flag, paths, Kind::Output)
    }

    /// Adds a file that is written, by a name.
    pub fn output(&mut self, name: &dyn Display, path: &Path) -> &mut Self {
        self.add(name.to_string(), path, Kind::Output);
        self
    }

    /// Adds a file that is continued in place, or a socket, by a name.
    pub fn other(&mut self, name: &dyn Display, path: &Path) -> &mut Self {
        self.add(name.to_string(), path, Kind::Other);
        self
    }

    fn add_all<P: AsRef<Path>>(
        &mut self,
        flag: &str,
        paths: impl IntoIterator<Item = P>,
        kind: Kind,
    ) -> &mut Self {
        for path in paths {
            let name = format!("{flag} {}", path.as_ref().display());
            self.add(name, path.as_ref(), kind);
        }
        self
    }

    fn add(&mut self, name: String, path: &Path, kind: Kind) {
        self.files.push(Role { name, path: path.to_owned(), kind });
    }

    /// # Errors
    /// A file has two roles; an output exists, unless it may; an output is not a file that can be written.
    pub fn check(&self, existing: Existing) -> anyhow::Result<()> {
        let identities: Vec<_> = self.files.iter().map(Role::identity).collect();
        for (at, (role, identity)) in self.files.iter().zip(&identities).enumerate() {
            for (other, its) in self.files[..at].iter().zip(&identities) {
                let is_same = identity.is_some() && identity == its;
                if !is_same || (role.kind, other.kind) == (Kind::Input, Kind::Input) {
                    continue;
                }
                let (one, other) = (&other.name, &role.name);
                return Err(Usage::of(format!(
                    "{one} and {other} name the same file: use a path for each"
                )));
            }
        }
        for role in self.files.iter().filter(|role| role.kind == Kind::Output) {
            role.check(existing)?;
        }
        Ok(())
    }
}

impl Role {
    /// Checks an output.
    fn check(&self, existing: Existing) -> anyhow::Result<()> {
        let target =
            Target::of(&self.path).map_err(Usage::of).with_context(|| self.name.clone())?;
        if target != Target::File || !exists(&self.path) {
            return Ok(());
        }
        match existing {
            Existing::Replace => {}
            Existing::Refuse => {
                return Err(Usage::of(format!(
                    "{}: the file exists: use another name, or --force to replace it",
                    self.name
                )));
            }
            Existing::Next => note(&format!(
                "{}: the file exists, so this run writes {}",
                self.name,
                free_name(&self.path).display()
            )),
        }
        Ok(())
    }

    /// `None` if it may have several roles.
    fn identity(&self) -> Option<Identity> {
        let is_dash = self.path.as_os_str() == "-";
        if is_dash
            || self.kind != Kind::Input && matches!(Target::of(&self.path), Ok(Target::Stdout))
        {
            let data =
                if self.kind == Kind::Input { fstat(io::stdin()) } else { fstat(io::stdout()) };
            let data = data.ok()?;
            return file(data.st_dev, data.st_ino, data.st_rdev);
        }
        identity(&self.path)
    }
}

/// The identity of a file, unless it is an endless device.
fn file(device: u64, inode: u64, special: u64) -> Option<Identity> {
    let is_endless = major(special) == MEMORY && ENDLESS.contains(&minor(special));
    (!is_endless).then_some(Identity::File(device, inode))
}

fn identity(path: &Path) -> Option<Identity> {
    if let Ok(data) = fs::metadata(path) {
        return file(data.dev(), data.ino(), data.rdev());
    }
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let Ok(target) = fs::read_link(&path) else { break };
        path = folder(&path).join(target);
    }
    let name = path.file_name().map(OsStr::to_owned);
    match (fs::metadata(folder(&path)), name) {
        (Ok(data), Some(name)) => Some(Identity::Name(data.dev(), data.ino(), name)),
        _ => Some(Identity::Path(std::path::absolute(&path).unwrap_or(path))),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// The error of an input and an output.
    fn checked(input: &Path, output: &Path, existing: Existing) -> Result<(), String> {
        let mut roles = Roles::default();
        roles.reads("--read", [input]).output(&"json:out", output);
        roles.check(existing).map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn no_spelling_of_a_path_makes_an_input_an_output() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("in.pcap"), "packets").unwrap();
        fs::create_dir(path("sub")).unwrap();
        symlink("in.pcap", path("soft")).unwrap();
        symlink("soft", path("softer")).unwrap();
        symlink("sub", path("folder")).unwrap();
        fs::hard_link(path("in.pcap"), path("hard")).unwrap();
        for name in [
            "in.pcap",
            "./in.pcap",
            "sub/../in.pcap",
            "soft",
            "softer",
            "hard",
            "folder/../in.pcap",
        ] {
            for existing in [Existing::Refuse, Existing::Next, Existing::Replace] {
                let error = checked(&path("in.pcap"), &path(name), existing).unwrap_err();
                assert!(error.contains("name the same file"), "{name}: {error}");
            }
        }
        assert_eq!(checked(&path("in.pcap"), &path("new"), Existing::Refuse), Ok(()));
        assert_eq!(checked(&path("in.pcap"), Path::new("/dev/null"), Existing::Refuse), Ok(()));
    }

    #[test]
    fn two_outputs_that_do_not_exist_yet_are_one_file_however_they_are_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("sub")).unwrap();
        symlink("out", path("dangling")).unwrap();
        for name in ["out", "./out", "sub/../out", "dangling"] {
            let mut roles = Roles::default();
            roles.output(&"json:out", &path("out")).output(&"--state", &path(name));
            let error = roles.check(Existing::Refuse).unwrap_err().to_string();
            assert!(error.contains("name the same file"), "{error}");
        }
        let mut roles = Roles::default();
        let null = Path::new("/dev/null");
        roles.output(&"json:out", &path("out")).output(&"--state", &path("sub/out"));
        roles.output(&"csv", null).output(&"eve", null);
        roles.check(Existing::Refuse).unwrap();
    }

    #[test]
    fn a_file_that_exists_is_refused_unless_it_may_be_replaced_or_kept() {
        let folder = tempfile::tempdir().unwrap();
        let (input, output) = (folder.path().join("in"), folder.path().join("out"));
        fs::write(&input, "").unwrap();
        symlink("nothing", &output).unwrap();
        let error = checked(&input, &output, Existing::Refuse).unwrap_err();
        assert!(error.contains("exists") && error.contains("--force"), "{error}");
        assert_eq!(checked(&input, &output, Existing::Next), Ok(()));
        assert_eq!(checked(&input, &output, Existing::Replace), Ok(()));
    }
}
