//! Replaces the module `dpdk` in a build without the feature `dpdk`: every call returns [`OpenError::NoDpdk`].

use std::time::Duration;

use crate::live::counters::Counters;
use crate::live::description::Path;
use crate::live::error::OpenError;
use crate::live::frame::Frame;
use crate::live::options::Options;
use crate::live::state::State;

/// Has no values: no DPDK device can be opened.
pub(crate) enum DpdkReceiver {}

pub(crate) fn open(_: &str, _: &Options) -> Result<Vec<DpdkReceiver>, OpenError> {
    Err(OpenError::NoDpdk)
}

pub(crate) fn required_queues(_: &str, _: &Options) -> Result<Option<u32>, OpenError> {
    Err(OpenError::NoDpdk)
}

impl DpdkReceiver {
    pub(crate) fn burst(&mut self, _: usize, _: impl FnMut(Frame<'_>)) -> usize {
        match *self {}
    }

    pub(crate) fn wait(&mut self, _: Duration) -> bool {
        match *self {}
    }

    pub(crate) fn shut(&mut self) {
        match *self {}
    }

    pub(crate) fn state(&self) -> State {
        match *self {}
    }

    pub(crate) fn counters(&self) -> Counters {
        match *self {}
    }

    pub(crate) fn missed(&self) -> u64 {
        match *self {}
    }

    pub(crate) fn backlog(&self) -> (usize, usize) {
        match *self {}
    }

    pub(crate) fn describe(&self) -> (Path, usize) {
        match *self {}
    }
}
