//! Messages, and the ends of the rings that they circulate on.

use ringtap_ring::{Consumer, Producer};
use ringtap_stage::{Burst, Mark};

/// A message: items for every worker, and the mark that follows them.
pub(super) struct Message<I> {
    /// One for each worker.
    pub(super) parts: Box<[Burst<I>]>,
    pub(super) mark: Option<Mark>,
}

impl<I> Message<I> {
    pub(super) fn new(workers: usize, items: usize) -> Self {
        Self { parts: (0..workers).map(|_| Burst::with_capacity(items)).collect(), mark: None }
    }
}

/// The end of a ring from which messages are taken.
pub(super) struct Inbox<I: Send>(pub(super) Consumer<Message<I>>);

impl<I: Send> Inbox<I> {
    pub(super) fn take(&mut self) -> Option<Message<I>> {
        let message = self.0.pop();
        // The slot is freed before the message moves on: see the head of mod.rs.
        self.0.flush();
        message
    }
}

/// The end of a ring into which messages are put.
pub(super) struct Outlet<I: Send>(pub(super) Producer<Message<I>>);

impl<I: Send> Outlet<I> {
    pub(super) fn pass_on(&mut self, message: Message<I>) {
        assert!(self.0.push(message).is_ok(), "a ring with room for all messages was full");
        self.0.flush();
    }
}
