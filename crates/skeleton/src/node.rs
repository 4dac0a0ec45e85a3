//! A node: a state machine that never blocks.

/// What a step achieved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Something moved.
    Worked,
    /// Nothing to take, or no room to put it: ask again later.
    Idle,
    /// Finished; not to be stepped again.
    Done,
}

/// A participant of a run.
pub(crate) trait Node: Send {
    /// Does a bounded piece of work, without waiting.
    fn step(&mut self) -> Step;

    /// For messages: "worker 3".
    fn name(&self) -> String;
}
