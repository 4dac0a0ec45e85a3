//! The ends of rings as nodes hold them: an input and an output.

use std::collections::VecDeque;

use ringtap_ring::{Consumer, Producer};

/// The next input.
pub(super) enum Taken<T> {
    Item(T),
    /// Nothing for now.
    Nothing,
    /// Nothing follows.
    End,
}

/// The input end.
pub(super) struct Inlet<T: Send>(pub(super) Consumer<T>);

impl<T: Send> Inlet<T> {
    #[inline]
    pub(super) fn take(&mut self) -> Taken<T> {
        match self.0.pop() {
            Some(item) => Taken::Item(item),
            None if self.0.is_closed() => {
                // Closed after its last item was published, so an item that is not visible now does
                // not exist.
                self.0.pop().map_or(Taken::End, Taken::Item)
            }
            None => Taken::Nothing,
        }
    }

    /// Frees the slots of the items taken.
    pub(super) fn flush(&mut self) {
        self.0.flush();
    }
}

/// The output end of a stage. Sending never waits and never loses: items without room in the ring
/// are kept here, and the stage gets no new item before they are sent.
pub struct Outlet<T: Send> {
    ring: Producer<T>,
    backlog: VecDeque<T>,
    /// Items that went into the ring so far.
    moved: u64,
}

impl<T: Send> Outlet<T> {
    pub(super) fn new(ring: Producer<T>) -> Self {
        Self { ring, backlog: VecDeque::new(), moved: 0 }
    }

    /// Sends an item to the next node.
    #[inline]
    pub fn send(&mut self, item: T) {
        if !self.backlog.is_empty() {
            self.backlog.push_back(item);
        } else if let Err(item) = self.ring.push(item) {
            self.backlog.push_back(item);
        } else {
            self.moved += 1;
        }
    }

    /// Sends what is left; true when nothing is.
    #[inline]
    pub(super) fn clear(&mut self) -> bool {
        while let Some(item) = self.backlog.pop_front() {
            if let Err(item) = self.ring.push(item) {
                self.backlog.push_front(item);
                return false;
            }
            self.moved += 1;
        }
        true
    }

    pub(super) fn moved(&self) -> u64 {
        self.moved
    }

    /// Whether the receiver is gone.
    pub(super) fn is_abandoned(&self) -> bool {
        self.ring.is_abandoned()
    }

    /// Makes everything sent so far visible.
    pub(super) fn flush(&mut self) {
        self.ring.flush();
    }
}
