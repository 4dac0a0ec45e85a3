//! Processes of this program beside a run. They start before it restricts itself, do what it may not do, and end when it
//! closes the connection.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// The command of this program with this name.
pub(crate) fn command(name: &str) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg(name);
    for name in ["NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC"] {
        command.env_remove(name);
    }
    command
}

/// Starts a process; returns the connection to its stdin and stdout.
pub(crate) fn start(mut command: Command) -> io::Result<UnixStream> {
    let (ours, its) = UnixStream::pair()?;
    let output = OwnedFd::from(its.try_clone()?);
    // Not in the terminal's group: an interrupt of the run is none of the process.
    command.stdin(OwnedFd::from(its)).stdout(output).process_group(0).spawn()?;
    Ok(ours)
}

/// In the process: the connection. The run ends the process by closing it, after it has handled its signals, which are
/// ignored here.
pub(crate) fn connection() -> io::Result<UnixStream> {
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    Ok(UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?))
}
