//! States of a run for outputs that take them: a state of the whole run, or one of each of its parts.

use std::sync::Arc;

/// The state of a part of a run. A run without parts is one part: number 0, and the last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatePart {
    /// The name of the machine or link.
    pub probe: String,
    /// The number of the run, as in the state.
    pub run: u64,
    /// The number of the part in the run, from 0.
    pub part: u64,
    /// True if the run ends with this part.
    pub is_last: bool,
    /// The beginning of the part, packet time in nanoseconds since 1970.
    pub from_ns: u64,
    /// Its end.
    pub until_ns: u64,
    /// The state.
    pub bytes: Arc<[u8]>,
}

/// An output for states.
pub(crate) trait TakeState: Send {
    /// Takes a state, or counts it as lost.
    fn take(&mut self, part: &StatePart);
}

/// All outputs of a run for states. They end when this is dropped.
#[derive(Default)]
pub struct States(Vec<Box<dyn TakeState>>);

impl States {
    pub(crate) fn new(outputs: Vec<Box<dyn TakeState>>) -> Self {
        Self(outputs)
    }

    /// Returns true if no output takes states.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Hands a state to all outputs. In a run over files, and for the last part, waits for room while the output makes
    /// progress; otherwise a state without room is lost and counted.
    pub fn send(&mut self, part: &StatePart) {
        self.0.iter_mut().for_each(|output| output.take(part));
    }
}
