//! Commands under the restrictions of the units in `packaging/`.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use crate::{End, Net, have};

/// The name of the command in the folder.
const PROGRAM: &str = "program";

/// The user ID of restricted commands.
const USER: u32 = 65_534;

/// Exit code of `restrict.py` if the machine lacks a facility that it needs.
const UNAVAILABLE: i32 = 77;

/// A folder that the restricted user may write, with a copy of the command and the manager's
/// notification socket.
pub struct Place {
    folder: TempDir,
    manager: UnixDatagram,
}

impl Place {
    /// Prints a `SKIPPED` line and returns `None` if the machine cannot apply the restrictions.
    pub fn new(program: &str) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            eprintln!("SKIPPED: restrictions of units need root");
            return None;
        }
        if !["systemd-analyze", "python3", "setpriv", "ip"].into_iter().all(have) {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
        chown(&folder, Some(USER), Some(USER)).unwrap();
        // The build folder may be unreadable for the restricted user.
        fs::copy(program, folder.path().join(PROGRAM)).unwrap();
        let manager = UnixDatagram::bind(folder.path().join("notify")).unwrap();
        fs::set_permissions(folder.path().join("notify"), Permissions::from_mode(0o777)).unwrap();
        manager.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let place = Self { folder, manager };
        let denied = place.path("try");
        let tried = place.restricted(&unit("ringtap@"), &denied, &["--version"]).output().unwrap();
        if tried.status.code() == Some(UNAVAILABLE) {
            eprintln!("{}", String::from_utf8_lossy(&tried.stderr).trim_end());
            return None;
        }
        Some(place)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn shown(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// The command under the restrictions of a unit. Denied system calls are written to the file
    /// `denied`.
    pub fn restricted(&self, unit: &Path, denied: &Path, flags: &[&str]) -> Command {
        let mut command = Command::new("python3");
        self.set_up(&mut command, unit, denied, flags);
        command
    }

    /// As [`Self::restricted`], in the network namespace of an end.
    pub fn restricted_in(&self, net: &Net, end: End, unit: &Path, flags: &[&str]) -> Command {
        let mut command = net.program(end, "python3");
        self.set_up(&mut command, unit, &self.path("denied"), flags);
        command
    }

    fn set_up(&self, command: &mut Command, unit: &Path, denied: &Path, flags: &[&str]) {
        let helper = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/restrict.py");
        command.arg(helper).arg(unit).arg(denied).arg(self.path(PROGRAM)).args(flags);
        command.current_dir(&self.folder).env("NO_COLOR", "1").env_remove("RINGTAP_LOG");
        command.env("NOTIFY_SOCKET", self.path("notify")).env("WATCHDOG_USEC", "3000000");
    }

    /// Waits for a message to the service manager that starts with `message`.
    pub fn wait_for(&self, message: &str) -> String {
        let mut bytes = [0; 4096];
        loop {
            let length = self.manager.recv(&mut bytes);
            let length = length.unwrap_or_else(|error| panic!("{error}; never {message:?}"));
            let text = String::from_utf8_lossy(&bytes[..length]).into_owned();
            if text.starts_with(message) {
                return text;
            }
        }
    }

    /// Discards the messages so far, so that the socket has room for more.
    pub fn drain(&self) {
        self.manager.set_nonblocking(true).unwrap();
        while self.manager.recv(&mut [0; 4096]).is_ok() {}
        self.manager.set_nonblocking(false).unwrap();
    }

    /// The system calls that were denied.
    pub fn denied(&self) -> String {
        fs::read_to_string(self.path("denied")).unwrap()
    }
}

/// A unit as it is shipped.
pub fn unit(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging");
    let file = folder.join(format!("{name}.service"));
    assert!(file.is_file(), "{}", file.display());
    file
}

/// Checks that systemd accepts a unit, under the name of an instance. Prints a `SKIPPED` line if systemd is missing.
pub fn verify_unit(name: &str, instance: &str, program: &str) {
    if !have("systemd-analyze") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(format!("{instance}.service"));
    let text = fs::read_to_string(unit(name)).unwrap();
    // systemd-analyze requires that the program exists, and the command is not installed.
    let text = text.lines().map(|line| match line.split_once("=/usr/local/bin/") {
        Some((key, words)) => format!("{key}={program} {}\n", words.split_once(' ').unwrap().1),
        None => format!("{line}\n"),
    });
    fs::write(&file, text.collect::<String>()).unwrap();
    let mut command = Command::new("systemd-analyze");
    let output = command.args(["verify", "--man=no", "--recursive-errors=no"]).arg(&file).output();
    let output = output.unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {errors}");
    let own = errors.lines().filter(|line| line.contains(folder.path().to_str().unwrap()));
    assert_eq!(own.collect::<Vec<_>>(), Vec::<&str>::new(), "{name}");
}
