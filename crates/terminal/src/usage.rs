//! Usage errors and exit codes.

use std::error::Error;
use std::process::ExitCode;

use clap::error::{ContextKind, ErrorKind};

use ringtap_base::text::{acts, shown_lines, shown_message};

use crate::console::{print_message, print_to_stderr};

/// A usage error: exit code 2.
#[derive(Debug)]
pub struct Usage(pub String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Usage {}

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
        if let Some(message) = invalid_value(misused) {
            print_message("error", &message);
            return ExitCode::from(2);
        }
        // The text has words of the command line, which may be names of files that a shell expanded.
        if misused.use_stderr()
            && std::env::args_os().any(|word| word.to_string_lossy().contains(acts))
        {
            print_to_stderr(misused.render().to_string().trim_end());
            return ExitCode::from(2);
        }
        misused.exit();
    }
    print_message("error", &format!("{error:#}"));
    if error.is::<Usage>() { ExitCode::from(2) } else { ExitCode::FAILURE }
}

/// The message of an error without hints on the command line, as [`exit_code`] prints it.
pub fn message(error: &anyhow::Error) -> String {
    let Some(misused) = error.downcast_ref::<clap::Error>() else {
        return shown_message(&format!("{error:#}"));
    };
    let message = invalid_value(misused).unwrap_or_else(|| {
        let text = misused.render().to_string();
        let text = text.strip_prefix("error: ").unwrap_or(&text);
        let hints = ["\n\nUsage:", "\n\nFor more information"].map(|hint| text.find(hint));
        let end = hints.into_iter().flatten().min().unwrap_or(text.len());
        text[..end].trim_end().to_owned()
    });
    shown_lines(&message)
}

/// The flag and the reason of an invalid value, if the reason contains the value: the parser's own
/// message would print the value twice.
fn invalid_value(error: &clap::Error) -> Option<String> {
    let text = |kind| error.get(kind).map(ToString::to_string);
    let (flag, value) = (text(ContextKind::InvalidArg)?, text(ContextKind::InvalidValue)?);
    let reason = error.source()?.to_string();
    let is_complete = error.kind() == ErrorKind::ValueValidation && reason.contains(&value);
    is_complete.then(|| format!("{flag}: {reason}"))
}
