//! stdout and stderr: what was asked for, what went wrong, and how much is said unasked.

use std::io::{self, Write};
use std::sync::OnceLock;

use anstyle::{AnsiColor, Style};
use anyhow::Context;

/// Colour and weight of a heading or a label; plain in a program without the feature `color`.
pub const fn bold(color: AnsiColor) -> Style {
    if cfg!(feature = "color") {
        Style::new().bold().fg_color(Some(anstyle::Color::Ansi(color)))
    } else {
        Style::new()
    }
}

/// stdout, without colours where they are not wanted.
#[cfg(feature = "color")]
pub fn stdout() -> impl Write {
    anstream::stdout()
}

/// stderr, without colours where they are not wanted.
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

/// Writes `text` to stdout, without colours where they are not wanted. A reader that has gone is
/// no error.
pub fn print(text: &str) -> anyhow::Result<()> {
    let mut out = stdout();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(error).context("writing to stdout")
        }
        _ => Ok(()),
    }
}

/// How much is said on stderr that nobody asked for by a flag, from the least on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// What ended the command.
    Error,
    /// What is not as it should be.
    Warning,
    /// All else.
    Info,
}

static LEVEL: OnceLock<Level> = OnceLock::new();

/// Reads the level from the environment.
pub fn listen_to_environment() {
    let Some(word) = std::env::var_os("RINGTAP_LOG") else { return };
    let level = match word.to_string_lossy().to_ascii_lowercase().as_str() {
        "error" => Level::Error,
        "warn" | "warning" => Level::Warning,
        "info" | "" => Level::Info,
        other => {
            return complain(
                "warning",
                &format!("RINGTAP_LOG is error, warn or info, not {other}"),
            );
        }
    };
    LEVEL.get_or_init(|| level);
}

/// Whether so much is said.
pub fn is_wanted(level: Level) -> bool {
    level <= *LEVEL.get().unwrap_or(&Level::Info)
}

/// Says on stderr what went wrong; `kind` is `error` or `warning`.
pub fn complain(kind: &str, message: &str) {
    if kind == "error" || is_wanted(Level::Warning) {
        // If stderr is closed, there is nowhere to say so.
        let _ = writeln!(stderr(), "{}", labelled(kind, message));
    }
}

/// A line that begins with its kind, in colour.
pub fn labelled(kind: &str, message: &str) -> String {
    let color = if kind == "error" { AnsiColor::Red } else { AnsiColor::Yellow };
    let style = bold(color);
    format!("{style}{kind}:{style:#} {message}")
}

/// Says on stderr what is worth knowing and no trouble.
pub fn note(message: &str) {
    if is_wanted(Level::Info) {
        tell(message);
    }
}

/// Says on stderr what was asked for.
pub fn tell(message: &str) {
    let _ = writeln!(stderr(), "{message}");
}
