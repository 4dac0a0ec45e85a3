//! A sink: the end of a stream, with its result.

use std::sync::{Arc, Mutex};

use super::counts::Counts;
use super::ends::{Inlet, Taken};
use super::network::Work;
use super::pace::Pace;
use super::stage::Flow;
use crate::node::Step;

/// The place for a sink's result.
pub(super) type Slot<A> = Arc<Mutex<Option<A>>>;

pub(super) fn take<A>(slot: &Slot<A>) -> Option<A> {
    slot.lock().unwrap_or_else(|poison| poison.into_inner()).take()
}

/// Calls `on_item` for each item with the state, and leaves the state in the slot.
pub(super) struct SinkNode<T: Send, A, F> {
    pub(super) inlet: Inlet<T>,
    /// `None` when the slot has it.
    pub(super) state: Option<A>,
    pub(super) on_item: F,
    pub(super) slot: Slot<A>,
}

impl<T: Send, A, F: FnMut(&mut A, T) -> Flow> SinkNode<T, A, F> {
    fn end(&mut self) -> Step {
        *self.slot.lock().unwrap_or_else(|poison| poison.into_inner()) = self.state.take();
        Step::Done
    }
}

impl<T: Send, A: Send, F: FnMut(&mut A, T) -> Flow + Send> Work for SinkNode<T, A, F> {
    fn work(&mut self, pace: &mut Pace, counts: &Counts) -> Step {
        let Some(state) = &mut self.state else { return Step::Done };
        let mut taken = 0;
        let mut ended = false;
        while !ended && pace.more() {
            match self.inlet.take() {
                Taken::Item(item) => {
                    taken += 1;
                    match (self.on_item)(state, item) {
                        Ok(flow) => ended = flow.is_break(),
                        Err(error) => return Step::Failed(error),
                    }
                }
                Taken::Nothing => {
                    counts.empty.add(1);
                    break;
                }
                Taken::End => ended = true,
            }
        }
        self.inlet.flush();
        counts.items(taken, 0);
        match () {
            () if ended => self.end(),
            () if taken > 0 => Step::Worked,
            () => Step::Idle,
        }
    }
}
