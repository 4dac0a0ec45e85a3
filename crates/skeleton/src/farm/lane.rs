//! A lane: the ring of items to one worker, and beside it a small ring of marks, each with the
//! number of items that precede it.
//!
//! ```text
//! items  | 0 | 1 | 2 | 3 | 4 | 5 | …
//! marks          └ after 2: Tick  └ after 5: End
//! ```
//!
//! So a mark has its exact place in the stream, and a burst is still a plain slice of items,
//! each one cache line. Why the worker cannot run past a mark: the mark is published before any
//! item that follows it, and the worker looks for items first and for marks afterwards; so if it
//! sees such an item, it sees the mark too.

use ringtap_ring::{Consumer, InvalidCapacity, Kind, Producer, ring};
use ringtap_stage::Mark;

/// Marks are rare; the dispatcher waits if a worker is this many behind.
const MARKS: usize = 16;

#[derive(Clone, Copy)]
struct Placed {
    after: u64,
    mark: Mark,
}

/// The dispatcher's end.
pub(super) struct LaneTx<I: Send> {
    items: Producer<I>,
    marks: Producer<Placed>,
    pushed: u64,
}

/// The worker's end.
pub(super) struct LaneRx<I: Send> {
    items: Consumer<I>,
    marks: Consumer<Placed>,
    taken: u64,
}

/// What comes next on a lane.
pub(super) enum Next<'a, I> {
    Items(&'a [I]),
    Mark(Mark),
    Nothing,
}

pub(super) fn lane<I: Copy + Send>(
    kind: Kind,
    capacity: usize,
    batch: usize,
) -> Result<(LaneTx<I>, LaneRx<I>), InvalidCapacity> {
    let (items, items_rx) = ring(kind, capacity, batch)?;
    let (marks, marks_rx) = ring(kind, MARKS, 1)?;
    Ok((LaneTx { items, marks, pushed: 0 }, LaneRx { items: items_rx, marks: marks_rx, taken: 0 }))
}

impl<I: Copy + Send> LaneTx<I> {
    /// False if there is no room.
    #[inline(always)]
    pub(super) fn push(&mut self, item: I) -> bool {
        let pushed = self.items.push(item).is_ok();
        self.pushed += u64::from(pushed);
        pushed
    }

    /// How many of `items` found room.
    pub(super) fn push_burst(&mut self, items: &[I]) -> usize {
        let pushed = self.items.push_burst(items);
        self.pushed += pushed as u64;
        pushed
    }

    /// False if there is no room.
    pub(super) fn mark(&mut self, mark: Mark) -> bool {
        let pushed = self.marks.push(Placed { after: self.pushed, mark }).is_ok();
        self.marks.flush();
        pushed
    }

    /// Makes everything pushed so far visible to the worker.
    pub(super) fn flush(&mut self) {
        self.items.flush();
    }
}

impl<I: Copy + Send> LaneRx<I> {
    pub(super) fn next(&mut self, most: usize) -> Next<'_, I> {
        let items = self.items.peek(most);
        let upto = match self.marks.peek(1).first().copied() {
            Some(placed) if placed.after == self.taken => {
                self.marks.release(1);
                self.marks.flush();
                return Next::Mark(placed.mark);
            }
            Some(placed) => usize::try_from(placed.after - self.taken).unwrap_or(usize::MAX),
            None => usize::MAX,
        };
        match items {
            [] => Next::Nothing,
            _ => Next::Items(&items[..items.len().min(upto)]),
        }
    }

    /// Gives the slots of the `n` first items back.
    pub(super) fn release(&mut self, n: usize) {
        self.items.release(n);
        self.taken += n as u64;
    }
}
