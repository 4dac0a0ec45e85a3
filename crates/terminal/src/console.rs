//! stdout and stderr: results, diagnostics, and the level of verbosity.

use std::io::{self, Write};
use std::sync::OnceLock;

use anstyle::{AnsiColor, Style};
use anyhow::Context;
use ringtap_base::text::{shown, shown_lines, shown_message};

/// Colour and weight of a heading or a label; plain in a program without the feature `color`.
#[allow(clippy::disallowed_methods, reason = "the only place of styles")]
pub const fn bold(color: AnsiColor) -> Style {
    if cfg!(feature = "color") {
        Style::new().bold().fg_color(Some(anstyle::Color::Ansi(color)))
    } else {
        Style::new()
    }
}

/// stdout, without colours if they are not wanted.
#[cfg(feature = "color")]
pub fn stdout() -> impl Write {
    anstream::stdout()
}

/// stderr, without colours if they are not wanted.
#[cfg(feature = "color")]
pub fn stderr() -> impl Write {
    anstream::stderr()
}

/// stdout.
#[cfg(not(feature = "color"))]
pub fn stdout() -> impl Write {
    io::stdout()
}

/// stderr.
#[cfg(not(feature = "color"))]
pub fn stderr() -> impl Write {
    io::stderr()
}

/// Writes `text` to stdout, without colours if they are not wanted. A closed stdout is not an
/// error.
pub fn print(text: &str) -> anyhow::Result<()> {
    const ESCAPE: char = '\x1b';
    // Text without escape sequences needs no filter for colours.
    let mut out: Box<dyn Write> =
        if text.contains(ESCAPE) { Box::new(stdout()) } else { Box::new(io::stdout()) };
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(error).context("writing to stdout")
        }
        _ => Ok(()),
    }
}

/// Writes text without styles to stdout, with names from anywhere.
pub fn print_plain(text: &str) -> anyhow::Result<()> {
    print(&shown_lines(text))
}

/// Verbosity of stderr, ascending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Errors that end the command.
    Error,
    /// Warnings.
    Warning,
    /// Everything else.
    Info,
}

static LEVEL: OnceLock<Level> = OnceLock::new();

/// Reads the level from the environment.
pub fn read_level() {
    let Some(word) = std::env::var_os("RINGTAP_LOG") else { return };
    let level = match word.to_string_lossy().to_ascii_lowercase().as_str() {
        "error" => Level::Error,
        "warn" | "warning" => Level::Warning,
        "info" | "" => Level::Info,
        other => {
            return print_message(
                "warning",
                &format!("invalid RINGTAP_LOG {other:?}: use error, warn or info"),
            );
        }
    };
    LEVEL.get_or_init(|| level);
}

/// Whether messages of this level are printed.
pub fn is_wanted(level: Level) -> bool {
    level <= *LEVEL.get().unwrap_or(&Level::Info)
}

/// Prints an error or warning to stderr; `kind` is `error` or `warning`.
pub fn print_message(kind: &str, message: &str) {
    if kind == "error" || is_wanted(Level::Warning) {
        // If stderr is closed, ignore the error.
        let _ = writeln!(stderr(), "{}", labelled(kind, message));
    }
}

/// A line that begins with its kind, in colour.
pub fn labelled(kind: &str, message: &str) -> String {
    let color = if kind == "error" { AnsiColor::Red } else { AnsiColor::Yellow };
    let style = bold(color);
    format!("{style}{kind}:{style:#} {}", shown_message(message))
}

/// Prints a line of level [`Level::Info`] to stderr.
pub fn note(message: &str) {
    if is_wanted(Level::Info) {
        print_to_stderr(&shown(message));
    }
}

/// Prints requested lines to stderr, at every level.
pub fn print_to_stderr(message: &str) {
    let _ = writeln!(stderr(), "{}", shown_lines(message));
}
