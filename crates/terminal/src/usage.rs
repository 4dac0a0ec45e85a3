//! Usage errors and exit codes.

use std::process::ExitCode;

use crate::console::print_message;

/// A usage error: exit code 2.
#[derive(Debug)]
pub struct Usage(pub String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

impl Usage {
    /// Makes a usage error of `error`.
    pub fn of(error: impl std::fmt::Display) -> anyhow::Error {
        Self(error.to_string()).into()
    }
}

/// Prints why a command failed; returns 2 for a usage error, else 1. Help and versions, which the
/// flag parser returns as errors, end the program here.
pub fn exit_code(error: &anyhow::Error) -> ExitCode {
    if let Some(misused) = error.downcast_ref::<clap::Error>() {
        misused.exit();
    }
    print_message("error", &format!("{error:#}"));
    if error.is::<Usage>() { ExitCode::from(2) } else { ExitCode::FAILURE }
}
