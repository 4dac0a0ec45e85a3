//! Help, man pages and completions, generated from the flags.

#[cfg(feature = "pages")]
use std::path::Path;
use std::process::ExitCode;

#[cfg(feature = "pages")]
use anyhow::Context;
use clap::CommandFactory;
#[cfg(feature = "pages")]
use clap_complete::Shell;

use crate::args::Cli;
use ringtap_terminal::console;

/// Prints the help when no command is given.
pub(crate) fn help() -> anyhow::Result<ExitCode> {
    let help = Cli::command().render_help();
    #[cfg(feature = "color")]
    let help = help.ansi();
    console::print(&help.to_string())?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(feature = "pages")]
/// Prints a completion script.
pub(crate) fn completions(shell: Shell) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "ringtap", &mut script);
    console::print(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(feature = "pages")]
/// Writes a man page of the program and one of each command to `directory`.
pub(crate) fn man(directory: &Path) -> anyhow::Result<ExitCode> {
    let doing = || format!("writing man pages to {}", directory.display());
    std::fs::create_dir_all(directory).with_context(doing)?;
    let command = Cli::command().disable_help_subcommand(true);
    clap_mangen::generate_to(command, directory).with_context(doing)?;
    Ok(ExitCode::SUCCESS)
}
