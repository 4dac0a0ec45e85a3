//! Exit codes of runs.

use std::process::ExitCode;

use crate::signals;

/// Packets or records were lost, with `--fail-on-drop`.
pub(crate) const LOST: u8 = 3;

/// The exit code of a run that failed, was interrupted, or lost what must not be lost.
pub(crate) fn code(failed: bool, interrupted: bool, lost: bool) -> ExitCode {
    match (failed, interrupted, lost) {
        (true, ..) => ExitCode::FAILURE,
        (_, true, _) => ExitCode::from(signals::INTERRUPTED),
        (.., true) => ExitCode::from(LOST),
        _ => ExitCode::SUCCESS,
    }
}
