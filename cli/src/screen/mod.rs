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
mod view;

use std::io::{self, IsTerminal, Stderr};
use std::time::Duration;

use anyhow::Context;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyModifiers};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ringtap_engine::Watch;
use ringtap_monitor::Ended;

use loads::Loads;
use ringtap_terminal::Usage;
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
    terminal: Terminal<CrosstermBackend<Stderr>>,
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
        enable_raw_mode().with_context(given)?;
        // From here on it must be given back.
        let terminal = Terminal::new(CrosstermBackend::new(io::stderr())).with_context(given);
        let terminal = terminal.inspect_err(|_| give_back())?;
        let mut screen =
            Self { terminal, view: View::new(title, queues), loads: Loads::default(), drawn: 0 };
        execute!(screen.terminal.backend_mut(), EnterAlternateScreen).with_context(given)?;
        Ok(screen)
    }

    /// What was asked for since the last call.
    pub(crate) fn wishes(&mut self) -> Vec<Wish> {
        let mut wishes = Vec::new();
        while event::poll(Duration::ZERO).unwrap_or(false) {
            match event::read() {
                Ok(Event::Key(key)) if key.is_press() => {
                    let interrupt = key.modifiers.contains(KeyModifiers::CONTROL);
                    match key.code {
                        KeyCode::Char('q') | KeyCode::Esc => wishes.push(Wish::Stop),
                        KeyCode::Char('c') if interrupt => wishes.push(Wish::Interrupt),
                        _ => {}
                    }
                }
                Ok(Event::Resize(..)) => self.draw(),
                Ok(_) => {}
                Err(_) => break,
            }
        }
        wishes
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
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

fn give_back() {
    let _ = execute!(io::stderr(), LeaveAlternateScreen, ratatui::crossterm::cursor::Show);
    let _ = disable_raw_mode();
}
