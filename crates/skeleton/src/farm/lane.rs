//! A lane: the ring of items to one worker, and beside it two small rings, of marks and of attachments, each entry with the
//! number of items that precede it.
//!
//! ```text
//! items        | 0 | 1 | 2 | 3 | 4 | 5 | …
//! marks              └ after 2: Tick  └ after 5: End
//! attachments      └ of 1: three pieces
//! ```
//!
//! So a mark has its exact place in the stream, and a burst is a plain slice of items, each one
//! cache line. Why the worker cannot pass a mark: the mark is published before any item that
//! follows it, and the worker polls items first and marks second; so if it sees such an item, it
//! sees the mark, too. In the same way an item and its attachments are one unit: they are published
//! before it, and without room for them the item waits.

use ringtap_ring::{Consumer, InvalidCapacity, Kind, Producer, ring};
use ringtap_stage::{Attachments, Cursor, Mark};

/// Marks are rare; the dispatcher waits if a worker is this many behind.
const MARKS: usize = 16;

/// Room for attachment pieces: twice the maximum of one item.
const PIECES: usize = 2 * (Attachments::MOST_BYTES / Piece::BYTES + Attachments::MOST);

#[derive(Clone, Copy)]
struct Placed {
    after: u64,
    mark: Mark,
}

/// A piece of an attachment, one cache line.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct Piece {
    /// The number of its item.
    item: u64,
    kind: u8,
    /// Number of bytes used.
    len: u8,
    /// Whether the attachment ends here.
    last: bool,
    bytes: [u8; Piece::BYTES],
}

impl Piece {
    const BYTES: usize = 53;
}

/// The dispatcher's end.
pub(super) struct LaneTx<I: Send> {
    items: Producer<I>,
    marks: Producer<Placed>,
    pieces: Producer<Piece>,
    pushed: u64,
}

/// The worker's end.
pub(super) struct LaneRx<I: Send> {
    items: Consumer<I>,
    marks: Consumer<Placed>,
    pieces: Consumer<Piece>,
    taken: u64,
    /// Attachments of the items handed out last.
    attachments: Attachments,
    /// An attachment whose pieces are being joined.
    value: Vec<u8>,
}

/// The next input of a lane.
pub(super) enum Next<'a, I> {
    Items(&'a [I], &'a Attachments),
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
    let (pieces, pieces_rx) = ring(kind, PIECES, 1)?;
    let to = LaneTx { items, marks, pieces, pushed: 0 };
    let from = LaneRx {
        items: items_rx,
        marks: marks_rx,
        pieces: pieces_rx,
        taken: 0,
        attachments: Attachments::default(),
        value: Vec::new(),
    };
    Ok((to, from))
}

impl<I: Copy + Send> LaneTx<I> {
    /// Returns false if there is no room.
    #[inline(always)]
    pub(super) fn push(&mut self, item: I) -> bool {
        let pushed = self.items.push(item).is_ok();
        self.pushed += u64::from(pushed);
        pushed
    }

    /// Pushes an item with its attachments, which `cursor` reads at this position of the burst.
    /// False, without any effect, if there is no room for both.
    pub(super) fn push_with(&mut self, item: I, at: usize, cursor: &mut Cursor<'_>) -> bool {
        if cursor.next_item() != at {
            return self.push(item);
        }
        let (values, bytes) = cursor.size(at);
        if self.items.free() == 0 || self.pieces.free() < values + bytes / Piece::BYTES {
            return false;
        }
        while let Some((kind, value)) = cursor.take(at) {
            self.push_value(kind, value);
        }
        self.pieces.flush();
        self.push(item)
    }

    fn push_value(&mut self, kind: u8, mut value: &[u8]) {
        loop {
            let (now, rest) = value.split_at(value.len().min(Piece::BYTES));
            let mut bytes = [0; Piece::BYTES];
            bytes[..now.len()].copy_from_slice(now);
            let (len, last) = (now.len() as u8, rest.is_empty());
            let piece = Piece { item: self.pushed, kind, len, last, bytes };
            assert!(self.pieces.push(piece).is_ok(), "a ring with room for all pieces was full");
            value = rest;
            if last {
                return;
            }
        }
    }

    /// Pushes as many `items` as have room; returns their number.
    pub(super) fn push_burst(&mut self, items: &[I]) -> usize {
        let pushed = self.items.push_burst(items);
        self.pushed += pushed as u64;
        pushed
    }

    /// Returns false if there is no room.
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
        if items.is_empty() {
            return Next::Nothing;
        }
        let items = &items[..items.len().min(upto)];
        let Self { pieces, taken, attachments, value, .. } = self;
        attachments.clear();
        join(pieces, *taken, items.len(), attachments, value);
        Next::Items(items, attachments)
    }

    /// Frees the slots of the first `n` items.
    pub(super) fn release(&mut self, n: usize) {
        self.items.release(n);
        self.taken += n as u64;
    }
}

/// Reads the attachment pieces of the next `items` items, of which the first has the number
/// `first`, and joins them.
#[inline]
fn join(
    pieces: &mut Consumer<Piece>,
    first: u64,
    items: usize,
    attachments: &mut Attachments,
    value: &mut Vec<u8>,
) {
    let mut taken = false;
    while let Some(piece) = pieces.peek(1).first() {
        let Some(at) = usize::try_from(piece.item - first).ok().filter(|&at| at < items) else {
            break;
        };
        value.extend_from_slice(&piece.bytes[..usize::from(piece.len)]);
        if piece.last {
            // The attachments of one item fit again.
            let _ = attachments.push(at, piece.kind, value);
            value.clear();
        }
        pieces.release(1);
        taken = true;
    }
    if taken {
        pieces.flush();
    }
}
