//! The progress bar on a terminal, redrawn in place and cleared at the end.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ringtap_terminal::console::stderr;
use ringtap_terminal::numbers::bytes;
use rustix::termios::tcgetwinsize;

use crate::args::Capture;

/// Columns of the bar.
const BAR: usize = 20;

/// The extent of the input.
pub(crate) enum Extent {
    /// Files with this many bytes, if known.
    Bytes(Option<u64>),
    /// Interfaces, without end, and their capture method.
    Live(Vec<String>, Capture),
}

#[derive(Default)]
pub(super) struct Progress {
    drawn: AtomicBool,
}

impl Progress {
    /// Draws the line: `read` bytes so far, and the rates.
    pub(super) fn draw(&self, extent: &Extent, read: u64, elapsed: Duration, rates: &str) {
        let line = match *extent {
            Extent::Live(..) => rates.to_owned(),
            Extent::Bytes(None) => format!("{} read  {rates}", bytes(read)),
            Extent::Bytes(Some(total)) => {
                let share = (read as f64 / total.max(1) as f64).clamp(0.0, 1.0);
                let done = (share * BAR as f64) as usize;
                let left =
                    if share > 0.0 { elapsed.as_secs_f64() * (1.0 / share - 1.0) } else { 0.0 };
                let (bar, rest) = ("━".repeat(done), " ".repeat(BAR - done));
                let percent = share * 100.0;
                format!(
                    "{bar}{rest} {percent:3.0} % of {}  {rates}  {left:.0} s left",
                    bytes(total)
                )
            }
        };
        let width = tcgetwinsize(io::stderr()).map_or(80, |size| usize::from(size.ws_col));
        let line: String = line.chars().take(width.saturating_sub(1).max(20)).collect();
        self.drawn.store(true, Ordering::Relaxed);
        // If stderr is closed, ignore the error.
        let _ = write!(io::stderr(), "\r{line}\x1b[K").and_then(|()| io::stderr().flush());
    }

    /// Clears the line if it is drawn; the next call of [`draw`](Self::draw) restores it.
    pub(super) fn clear(&self) {
        if self.drawn.swap(false, Ordering::Relaxed) {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }

    /// Clears the bar and prints a line.
    pub(super) fn print_line(&self, line: &str) {
        self.clear();
        let _ = writeln!(stderr(), "{line}");
    }
}
