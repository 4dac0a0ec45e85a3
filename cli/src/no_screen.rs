//! In place of `screen/` in a program without the feature `tui`.

use std::time::Duration;

use ringtap_engine::Watch;
use ringtap_monitor::Ended;
use ringtap_terminal::Usage;

/// As in `screen/mod.rs`.
#[expect(dead_code, reason = "without a screen there is no keyboard")]
pub(crate) enum Wish {
    Stop,
    Interrupt,
}

/// There is none.
pub(crate) enum Screen {}

impl Screen {
    pub(crate) fn open(_title: String, _queues: usize) -> anyhow::Result<Self> {
        Err(Usage::of("this program was built without the feature tui, so it has no --tui"))
    }

    pub(crate) fn wishes(&mut self) -> Vec<Wish> {
        match *self {}
    }

    pub(crate) fn tick(&mut self, _: &Watch, _: Duration, _lost: impl FnOnce() -> u64) {
        match *self {}
    }

    pub(crate) fn interval(&mut self, _: &Ended<'_>) {
        match *self {}
    }

    pub(crate) fn say(&mut self, _line: &str) {
        match *self {}
    }
}
