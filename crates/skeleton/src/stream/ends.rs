//! The ends of rings as nodes hold them: one that items come in by, one that they go out by.

use std::collections::VecDeque;

use ringtap_ring::{Consumer, Producer};

/// What comes next.
pub(super) enum Taken<T> {
    Item(T),
    /// Nothing for now.
    Nothing,
    /// Nothing ever again.
    End,
}

/// Where items come in.
pub(super) struct Inlet<T: Send>(pub(super) Consumer<T>);

impl<T: Send> Inlet<T> {
    #[inline]
    pub(super) fn take(&mut self) -> Taken<T> {
        match self.0.pop() {
            Some(item) => Taken::Item(item),
            None if self.0.is_closed() => {
                // Closed after its last item was published, so what is not seen now never comes.
                self.0.pop().map_or(Taken::End, Taken::Item)
            }
            None => Taken::Nothing,
        }
    }

    /// Gives the slots of what was taken back.
    pub(super) fn flush(&mut self) {
        self.0.flush();
    }
}

/// Where a stage sends items. Sending never waits and never loses: what finds no room in the ring
/// is kept here, and the stage gets no new item before it is gone.
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

    /// Sends what is left over; true when nothing is.
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

    /// Whether nobody will take what is sent.
    pub(super) fn is_abandoned(&self) -> bool {
        self.ring.is_abandoned()
    }

    /// Makes everything sent so far visible.
    pub(super) fn flush(&mut self) {
        self.ring.flush();
    }
}
