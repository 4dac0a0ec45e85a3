//! Stub for `screen/` in builds without the feature `tui`.

use std::time::Duration;

use ringtap_engine::Watch;
use ringtap_export::Status;
use ringtap_monitor::EndedInterval;
use ringtap_terminal::Usage;

use crate::web::Recent;

/// A user's request.
#[expect(dead_code, reason = "without a screen there is no keyboard")]
pub(crate) enum Request {
    Stop,
    Interrupt,
}

/// The terminal view; never constructed.
pub(crate) enum Screen {}

impl Screen {
    pub(crate) fn open(
        _title: String,
        _queues: usize,
        _max_flows: u64,
        _threads: Vec<String>,
        _: Recent,
    ) -> anyhow::Result<Self> {
        Err(Usage::of("--tui is not available: build with the feature tui"))
    }

    pub(crate) fn requests(&mut self) -> Vec<Request> {
        match *self {}
    }

    pub(crate) fn tick(
        &mut self,
        _: &Watch,
        _: Duration,
        _state: impl FnOnce() -> (Vec<Status>, Vec<String>),
    ) {
        match *self {}
    }

    pub(crate) fn interval(&mut self, _: &EndedInterval<'_>) {
        match *self {}
    }

    pub(crate) fn add_message(&mut self, _line: &str) {
        match *self {}
    }
}
