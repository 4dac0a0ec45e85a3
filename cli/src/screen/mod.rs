//! `--tui`: the run on the terminal, drawn once a second on stderr, so that the report on stdout stays what it is.
//!
//! ```text
//! Watch, intervals, alerts ──▶ View ──▶ draw ──▶ terminal
//! /proc/self/task ──▶ loads ──┘
//! ```
//!
//! Invariant: however the run ends, the terminal is given back as it was.

mod draw;
mod loads;
mod terminal;
mod view;
mod widgets;

use std::io::{self, IsTerminal};
use std::time::Duration;

use anyhow::Context;
use ratatui_core::layout::Size;
use ratatui_core::terminal::Terminal;
use ringtap_engine::Watch;
use ringtap_monitor::Ended;

use loads::Loads;
use ringtap_terminal::Usage;
use terminal::{Ansi, Key, Keyboard};
use view::View;

/// How often the figures change.
const DRAW_EVERY: Duration = Duration::from_secs(1);

/// What a user asks for at the keyboard.
pub(crate) enum Wish {
    /// Stop reading and make the report.
    Stop,
    /// Ctrl-C, which a terminal in raw mode sends as a key. The same as SIGINT.
    Interrupt,
}

pub(crate) struct Screen {
    terminal: Terminal<Ansi>,
    /// Gives the terminal back when it is dropped.
    keyboard: Keyboard,
    /// The terminal's, when it was drawn last.
    size: Option<Size>,
    view: View,
    loads: Loads,
    /// How many times it was drawn for the passing of time.
    drawn: u32,
}

impl Screen {
    /// Takes the terminal. `title` says what is run.
    pub(crate) fn open(title: String, queues: usize) -> anyhow::Result<Self> {
        if !io::stderr().is_terminal() {
            return Err(Usage::of("--tui needs a terminal on stderr; --stats 1s prints lines"));
        }
        let given = || "taking the terminal";
        let keyboard = Keyboard::take().with_context(given)?;
        let terminal = Terminal::new(Ansi::default()).with_context(given)?;
        let (view, loads) = (View::new(title, queues), Loads::default());
        Ok(Self { terminal, keyboard, size: None, view, loads, drawn: 0 })
    }

    /// What was asked for since the last call.
    pub(crate) fn wishes(&mut self) -> Vec<Wish> {
        let size = self.terminal.size().ok();
        if self.size.is_some() && size != self.size {
            self.draw();
        }
        let wish = |key| match key {
            Key::Char('q') | Key::Escape => Some(Wish::Stop),
            Key::Interrupt => Some(Wish::Interrupt),
            Key::Char(_) => None,
        };
        self.keyboard.keys().into_iter().filter_map(wish).collect()
    }

    /// Draws how things stand, if it is time to.
    pub(crate) fn tick(
        &mut self,
        watch: &Watch,
        elapsed: Duration,
        records_lost: impl FnOnce() -> u64,
    ) {
        if elapsed < DRAW_EVERY * self.drawn {
            return;
        }
        self.drawn = (elapsed.as_secs() / DRAW_EVERY.as_secs()) as u32 + 1;
        self.view.see(watch, elapsed, self.loads.look(elapsed));
        self.view.records_lost = records_lost();
        self.draw();
    }

    /// An interval is over.
    pub(crate) fn interval(&mut self, ended: &Ended<'_>) {
        self.view.interval(ended);
    }

    /// Something was said that is no figure.
    pub(crate) fn say(&mut self, line: &str) {
        self.view.say(line);
        self.draw();
    }

    fn draw(&mut self) {
        // A terminal that is gone is no reason to stop the run.
        let _ = self.terminal.draw(|frame| draw::draw(&self.view, frame));
        self.size = self.terminal.size().ok();
    }
}
