//! Help, man pages and completions, generated from the definition of a command line.

use std::process::ExitCode;

use ringtap_terminal::console;

/// Prints the help when no command is given.
///
/// # Errors
/// stdout cannot be written.
pub fn help(mut command: clap::Command) -> anyhow::Result<ExitCode> {
    let help = command.render_help();
    #[cfg(feature = "color")]
    let help = help.ansi();
    console::print(&help.to_string())?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(feature = "pages")]
pub use built::Pages;
#[cfg(not(feature = "pages"))]
pub use not_built::Pages;

#[cfg(feature = "pages")]
mod built {
    use std::io::{self, Write};
    use std::path::{Path, PathBuf};
    use std::process::ExitCode;

    use anyhow::Context;
    use clap::{Subcommand, ValueHint};
    use clap_complete::Shell;
    use ringtap_terminal::console;

    use crate::atomic_file::{AtomicFile, Existing};
    use crate::roles::Roles;

    /// The commands that print what is generated from the flags. They are not listed in the help.
    #[derive(Subcommand)]
    pub enum Pages {
        /// Print a completion script
        #[command(hide = true)]
        Completions {
            /// The shell
            shell: Shell,
        },
        /// Write a man page for each command
        #[command(hide = true)]
        Man {
            /// The output directory
            #[arg(value_hint = ValueHint::DirPath)]
            directory: PathBuf,
            /// Replace man pages that exist [default: an error]
            #[arg(long)]
            force: bool,
        },
    }

    impl Pages {
        /// Runs it for the program whose definition is `command`.
        ///
        /// # Errors
        /// A page exists, or cannot be written.
        pub fn run(&self, command: clap::Command) -> anyhow::Result<ExitCode> {
            match self {
                Self::Completions { shell } => completions(*shell, command),
                Self::Man { directory, force } => man(directory, *force, command),
            }
        }
    }

    fn completions(shell: Shell, mut command: clap::Command) -> anyhow::Result<ExitCode> {
        let (mut script, name) = (Vec::new(), command.get_name().to_owned());
        clap_complete::generate(shell, &mut command, name, &mut script);
        console::print(&String::from_utf8_lossy(&script))?;
        Ok(ExitCode::SUCCESS)
    }

    /// Writes a man page of the program and one of each command to `directory`. Pages that exist are replaced only with
    /// `force`.
    fn man(directory: &Path, force: bool, command: clap::Command) -> anyhow::Result<ExitCode> {
        let doing = || format!("writing man pages to {}", directory.display());
        let mut command = command.disable_help_subcommand(true);
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
}

#[cfg(not(feature = "pages"))]
mod not_built {
    use std::ffi::OsString;
    use std::process::ExitCode;

    use clap::{Args, Subcommand};
    use ringtap_terminal::Usage;

    /// The commands that need the feature `pages`.
    #[derive(Subcommand)]
    pub enum Pages {
        /// Not in this build
        #[command(hide = true, disable_help_flag = true)]
        Completions(Words),
        /// Not in this build
        #[command(hide = true, disable_help_flag = true)]
        Man(Words),
    }

    /// Any arguments.
    #[derive(Args)]
    pub struct Words {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        _words: Vec<OsString>,
    }

    impl Pages {
        /// # Errors
        /// Always: the error names the feature, and a build that has it.
        pub fn run(&self, command: clap::Command) -> anyhow::Result<ExitCode> {
            Err(Usage::of(format!(
                "this program was built without the feature pages: use 'make build', which makes target/release/{}",
                command.get_name()
            )))
        }
    }
}
