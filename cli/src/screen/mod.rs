//! The terminal view of `--tui`, drawn once a second on stderr; the report goes to stdout.
//!
//! ```text
//! Watch, intervals, alerts ──▶ View ──▶ draw ──▶ terminal
//! /proc/self/task ──▶ loads ──┘
//! ```
//!
//! Invariant: the terminal is restored however the run ends.

mod draw;
mod terminal;
mod view;
mod widgets;

use std::io::{self, IsTerminal};
use std::time::Duration;

use anyhow::Context;
use ratatui_core::layout::Size;
use ratatui_core::terminal::Terminal;
use ringtap_base::rss_bytes;
use ringtap_engine::Watch;
use ringtap_export::Status;
use ringtap_monitor::EndedInterval;

use crate::loads::Loads;
use crate::web::Recent;
use ringtap_terminal::Usage;
use terminal::{Ansi, Key, Keyboard};
use view::View;

/// Interval at which the values are updated.
const DRAW_EVERY: Duration = Duration::from_secs(1);

/// A user's request.
pub(crate) enum Request {
    /// Stop reading and print the report.
    Stop,
    /// Ctrl-C, which a terminal in raw mode sends as a key; handled like SIGINT.
    Interrupt,
}

/// The terminal view.
pub(crate) struct Screen {
    terminal: Terminal<Ansi>,
    /// Restores the terminal when dropped.
    keyboard: Keyboard,
    /// The size of the terminal at the last drawing.
    size: Option<Size>,
    view: View,
    /// What is shown instead while the view is paused.
    frozen: Option<View>,
    loads: Loads,
    recent: Recent,
    /// Number of timed drawings.
    drawn: u32,
}

impl Screen {
    /// Takes over the terminal. `title` describes the run.
    pub(crate) fn open(
        title: String,
        queues: usize,
        max_flows: u64,
        threads: Vec<String>,
        recent: Recent,
    ) -> anyhow::Result<Self> {
        if !io::stderr().is_terminal() {
            return Err(Usage::of("--tui needs a terminal on stderr: use --stats 1s for lines"));
        }
        let context = || "opening the terminal view";
        let keyboard = Keyboard::open().with_context(context)?;
        let terminal = Terminal::new(keyboard.ansi()).with_context(context)?;
        let (view, loads) = (View::new(title, queues, max_flows), Loads::new(threads));
        Ok(Self { terminal, keyboard, size: None, view, frozen: None, loads, recent, drawn: 0 })
    }

    /// Requests since the last call.
    pub(crate) fn requests(&mut self) -> Vec<Request> {
        let size = self.terminal.size().ok();
        if self.size.is_some() && size != self.size {
            self.draw();
        }
        let keys = self.keyboard.keys();
        keys.into_iter().filter_map(|key| self.press(key)).collect()
    }

    fn press(&mut self, key: Key) -> Option<Request> {
        match key {
            Key::Interrupt => return Some(Request::Interrupt),
            // Any key closes the help.
            _ if self.view.help => self.change(|view| view.help = false),
            Key::Char('q') | Key::Escape => return Some(Request::Stop),
            Key::Char('?' | 'h') => self.change(|view| view.help = true),
            Key::Char('s') => self.change(View::sort),
            Key::Char('t') => {
                self.view.turn();
                self.list();
                if let Some(frozen) = &mut self.frozen {
                    (frozen.list, frozen.lines) = (self.view.list, self.view.lines.clone());
                }
                self.draw();
            }
            Key::Char('p') => {
                self.frozen = match self.frozen {
                    Some(_) => None,
                    None => Some(View { paused: true, ..self.view.clone() }),
                };
                self.draw();
            }
            Key::Char(_) => {}
        }
        None
    }

    /// Changes how values are shown, also while they are paused.
    fn change(&mut self, change: impl Fn(&mut View)) {
        change(&mut self.view);
        self.frozen.iter_mut().for_each(&change);
        self.draw();
    }

    /// Updates the values and draws them, if the interval is over. `state` returns the outputs and the losses in words.
    pub(crate) fn tick(
        &mut self,
        watch: &Watch,
        elapsed: Duration,
        state: impl FnOnce() -> (Vec<Status>, Vec<String>),
    ) {
        if elapsed < DRAW_EVERY * self.drawn {
            return;
        }
        self.drawn = (elapsed.as_secs() / DRAW_EVERY.as_secs()) as u32 + 1;
        self.view.update(watch, elapsed, self.loads.read(elapsed));
        let (outputs, losses) = state();
        self.view.set_outputs(&outputs);
        self.view.losses = losses;
        self.view.memory_bytes = rss_bytes();
        self.recent.receive();
        self.list();
        self.draw();
    }

    /// Sets the lines of the list that is shown.
    fn list(&mut self) {
        let height = self.size.map_or(0, |size| size.height);
        let word = self.view.shown_list(height).map(|list| list.word);
        self.view.lines = word.map_or_else(Vec::new, |word| self.recent.lines(word, height.into()));
    }

    /// Adds a finished interval.
    pub(crate) fn interval(&mut self, ended: &EndedInterval<'_>) {
        self.view.interval(ended);
    }

    /// Adds a message.
    pub(crate) fn add_message(&mut self, line: &str) {
        self.view.add_message(line);
        self.draw();
    }

    /// Draws the view, unless the terminal has not taken the last drawing yet: then the next drawing shows the changes.
    fn draw(&mut self) {
        if self.terminal.backend().is_behind() {
            return;
        }
        // Ignore the error: the run continues without its terminal.
        let view = self.frozen.as_ref().unwrap_or(&self.view);
        let _ = self.terminal.draw(|frame| draw::draw(view, frame));
        self.size = self.terminal.size().ok();
    }
}
