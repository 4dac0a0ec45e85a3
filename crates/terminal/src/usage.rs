//! Commands that cannot be carried out as they stand, and what programs exit with.

use std::process::ExitCode;

use crate::console::complain;

/// What is wrong with the command: exit code 2.
#[derive(Debug)]
pub struct Usage(pub String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

impl Usage {
    /// What `error` says, as a matter of usage.
    pub fn of(error: impl std::fmt::Display) -> anyhow::Error {
        Self(error.to_string()).into()
    }
}

/// Says why a command failed; 2 for a mistake in the command, else 1. Help and versions, which come as errors from the
/// parser of flags, end the program here.
pub fn exit_code(error: &anyhow::Error) -> ExitCode {
    if let Some(misused) = error.downcast_ref::<clap::Error>() {
        misused.exit();
    }
    complain("error", &format!("{error:#}"));
    if error.is::<Usage>() { ExitCode::from(2) } else { ExitCode::FAILURE }
}
