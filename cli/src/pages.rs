//! Help, man pages and completions, generated from the flags.

#[cfg(feature = "pages")]
use std::io::{self, Write};
#[cfg(feature = "pages")]
use std::path::Path;
use std::process::ExitCode;

#[cfg(feature = "pages")]
use anyhow::Context;
use clap::CommandFactory;
#[cfg(feature = "pages")]
use clap_complete::Shell;

use crate::args::Cli;
#[cfg(feature = "pages")]
use crate::atomic_file::{AtomicFile, Existing};
#[cfg(feature = "pages")]
use crate::roles::Roles;
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
/// Writes a man page of the program and one of each command to `directory`. Pages that exist are replaced only with
/// `force`.
pub(crate) fn man(directory: &Path, force: bool) -> anyhow::Result<ExitCode> {
    let doing = || format!("writing man pages to {}", directory.display());
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    add_pages(&command, &mut pages).with_context(doing)?;
    let paths = || pages.iter().map(|(name, _)| directory.join(name));
    let existing = Existing::of(force, false);
    // All are checked before one is written.
    Roles::default().writes("man", paths()).check(existing)?;
    std::fs::create_dir_all(directory).with_context(doing)?;
    for (path, (_, page)) in paths().zip(&pages) {
        let mut file = AtomicFile::claim(path, existing).with_context(doing)?;
        file.begin().and_then(|mut out| out.write_all(page)).with_context(doing)?;
        file.finish().with_context(doing)?;
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(feature = "pages")]
/// Adds the name and the text of the command's page, and of the pages of its commands.
fn add_pages(command: &clap::Command, pages: &mut Vec<(String, Vec<u8>)>) -> io::Result<()> {
    for one in command.get_subcommands().filter(|one| !one.is_hide_set()) {
        add_pages(one, pages)?;
    }
    let (page, mut text) = (clap_mangen::Man::new(command.clone()), Vec::new());
    page.render(&mut text)?;
    pages.push((page.get_filename(), text));
    Ok(())
}
