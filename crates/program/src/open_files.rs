//! The limit of open files of this process.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit as far as the system permits; returns it. Without a limit it is `u64::MAX`.
pub fn raise_limit() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    // If that fails, the lower limit remains.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}
