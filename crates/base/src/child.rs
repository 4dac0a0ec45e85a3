//! Waiting for a child process with the CPU time that it used.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};

/// A child process, or its end.
#[derive(Debug)]
pub enum Waited {
    /// The child still runs.
    Running(Child),
    /// The child has ended, and its number may belong to another process.
    Ended {
        /// Its exit code or signal.
        status: ExitStatus,
        /// Seconds of user and system time of it and of all descendants that were waited for.
        cpu_s: f64,
    },
}

/// Collects `child` if it has ended; does not block.
///
/// # Errors
///
/// Error of the system: the child was collected elsewhere.
pub fn try_wait(child: Child) -> io::Result<Waited> {
    let id = libc::pid_t::try_from(child.id()).map_err(io::Error::other)?;
    let mut status = 0;
    // SAFETY: `rusage` consists of numbers, for which all bits 0 are valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to locals that live until the call returns.
    let found = unsafe { libc::wait4(id, &raw mut status, libc::WNOHANG, &raw mut usage) };
    match found {
        0 => Ok(Waited::Running(child)),
        -1 => Err(io::Error::last_os_error()),
        _ => {
            let micros = |time: libc::timeval| time.tv_sec as f64 * 1e6 + time.tv_usec as f64;
            let cpu_s = (micros(usage.ru_utime) + micros(usage.ru_stime)) / 1e6;
            Ok(Waited::Ended { status: ExitStatus::from_raw(status), cpu_s })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_running_child_is_returned_and_an_ended_one_has_its_status_and_cpu_time() {
        let child = Command::new("sleep").arg("60").spawn().unwrap();
        let Waited::Running(mut child) = try_wait(child).unwrap() else { panic!("it has ended") };
        child.kill().unwrap();
        child.wait().unwrap();
        // The work is a grandchild's, for which the shell waits.
        let script = "(i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done); exit 3";
        let mut child = Command::new("sh").args(["-c", script]).spawn().unwrap();
        let (status, cpu_s) = loop {
            match try_wait(child).unwrap() {
                Waited::Running(again) => child = again,
                Waited::Ended { status, cpu_s } => break (status, cpu_s),
            }
            std::thread::yield_now();
        };
        assert_eq!(status.code(), Some(3));
        assert!(cpu_s > 0.0, "{cpu_s}");
    }
}
