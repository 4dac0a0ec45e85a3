//! The bans of a revision, in a form that shares unchanged parts with the next revision.
//!
//! ```text
//! spans   10.0.0.0/8: rev 3    10.1.0.0/16: rev 7    11.0.0.5: rev 2       banned, and since when
//! edges   10.0.0.0 +1   10.1.0.0 +1   10.2.0.0 −1   11.0.0.0 −1   …        number of bans that begin or end there
//! flips   10.0.0.0                                  11.0.0.0      …        changes between banned and not banned
//! ```
//!
//! An address is banned if the sum of the edges up to it exceeds 0. Spans and edges are lists in
//! blocks ([`Blocks`]). For look-ups a block of edges has its flips, with an index; the parity of
//! the number of flips up to an address shows whether it is banned, unless a ban covers the whole
//! block. The number of such bans is stored beside the pointer to the block (`cover`), so a ban
//! that covers many blocks changes these numbers and no block.
//!
//! A look-up reads two cache lines of one block (IPv4). A change copies at most four blocks a ban
//! and the pointers to all blocks.

use std::sync::Arc;

use super::blocks::{Block, Blocks, MOST};
use crate::span::{Number, Span};
use crate::steps::{Shelf, Steps};

/// Keys compared at once.
const LINE: usize = 16;
/// Keys of the index of a block: the first of each line except the first line.
const LINES: usize = MOST / LINE - 1;

/// A ban.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Banned {
    /// Banned sources: all their packets are dropped.
    pub span: Span,
    /// The revision that added it.
    pub revision: u64,
}

/// All bans: source networks whose packets are dropped for any destination.
#[derive(Clone, Debug)]
pub(super) struct Bans {
    /// The revision of `ban any`.
    any: Option<u64>,
    pub(super) v4: Arc<Family<u32>>,
    pub(super) v6: Arc<Family<u128>>,
}

/// A ban before and after some changes: the revision that added it, if it exists.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    pub(super) before: Option<u64>,
    pub(super) after: Option<u64>,
}

impl Change {
    /// Not changed yet.
    pub(super) fn none(before: Option<u64>) -> Self {
        Self { before, after: before }
    }
}

impl Bans {
    pub(super) fn new() -> Self {
        Self { any: None, v4: Arc::new(Family::new()), v6: Arc::new(Family::new()) }
    }

    pub(super) fn len(&self) -> usize {
        usize::from(self.any.is_some()) + self.v4.spans.len() + self.v6.spans.len()
    }

    /// The revision that added exactly this ban.
    pub(super) fn get(&self, span: Span) -> Option<u64> {
        match span {
            Span::Any => self.any,
            Span::V4(first, last) => self.v4.spans.get((first.to_bits(), last.to_bits())),
            Span::V6(first, last) => self.v6.spans.get((first.to_bits(), last.to_bits())),
        }
    }

    /// All bans, in no particular order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Banned> + '_ {
        let any = self.any.map(|revision| Banned { span: Span::Any, revision });
        let v4 = self.v4.spans.rows().map(|((first, last), revision)| Banned {
            span: Span::V4(first.into(), last.into()),
            revision,
        });
        let v6 = self.v6.spans.rows().map(|((first, last), revision)| Banned {
            span: Span::V6(first.into(), last.into()),
            revision,
        });
        any.into_iter().chain(v4).chain(v6)
    }

    /// The bans after some changes, each span once.
    pub(super) fn changed(&self, changes: impl Iterator<Item = (Span, Change)>) -> Self {
        let (mut any, mut v4, mut v6) = (None, Vec::new(), Vec::new());
        for (span, change) in changes.filter(|(_, change)| change.before != change.after) {
            match span {
                Span::Any => any = Some(change),
                Span::V4(first, last) => v4.push(((first.to_bits(), last.to_bits()), change)),
                Span::V6(first, last) => v6.push(((first.to_bits(), last.to_bits()), change)),
            }
        }
        Self {
            any: any.map_or(self.any, |change| change.after),
            v4: self.v4.changed(v4, any),
            v6: self.v6.changed(v6, any),
        }
    }

    /// Size in bytes.
    pub(super) fn memory(&self) -> usize {
        self.v4.memory() + self.v6.memory()
    }
}

/// The bans of an address family.
#[derive(Debug)]
pub(super) struct Family<A: Number> {
    spans: Blocks<SpanBlock<A>>,
    edges: Blocks<EdgeBlock<A>>,
    /// The first edge of each block except the first block.
    index: Shelf<A>,
    begins: Steps,
}

impl<A: Number> Family<A> {
    fn new() -> Self {
        Self::of(Blocks::new(), Blocks::new())
    }

    fn of(spans: Blocks<SpanBlock<A>>, mut edges: Blocks<EdgeBlock<A>>) -> Self {
        let mut standing = 0;
        for part in edges.parts_mut() {
            part.note.cover = standing + part.note.lowest;
            standing += part.note.sum;
        }
        let mut index = Shelf::new();
        let begins = index.add_places(edges.firsts().get(1..).unwrap_or_default());
        index.shrink();
        Self { spans, edges, index, begins }
    }

    fn changed(
        self: &Arc<Self>,
        mut changes: Vec<((A, A), Change)>,
        any: Option<Change>,
    ) -> Arc<Self> {
        let everyone = any.map(|change| ((A::ZERO, A::MAX), change));
        let mut edges: Vec<(A, i32)> = Vec::with_capacity(2 * changes.len());
        for ((first, last), change) in changes.iter().copied().chain(everyone) {
            let count = i32::from(change.after.is_some()) - i32::from(change.before.is_some());
            if count != 0 {
                edges.push((first, count));
                edges.extend(last.next().map(|end| (end, -count)));
            }
        }
        if changes.is_empty() && edges.is_empty() {
            return Arc::clone(self);
        }
        edges.sort_unstable_by_key(|&(at, _)| at);
        edges.dedup_by(|&mut (at, count), (before, sum)| {
            let same = *before == at;
            *sum += if same { count } else { 0 };
            same
        });
        let edges = self
            .edges
            .changed(&edges, |old, more| Some(old.unwrap_or(0) + more).filter(|&count| count != 0));
        changes.sort_unstable_by_key(|&(span, _)| span);
        Arc::new(Self::of(self.spans.changed(&changes, |_, change| change.after), edges))
    }

    /// Whether a source is banned.
    #[inline]
    pub(super) fn contains(&self, source: A) -> bool {
        let at = self.index.count(self.begins, source);
        let Some(part) = self.edges.parts().get(at) else { return false };
        let Note { cover, flips, begins_banned, .. } = part.note;
        cover > 0 || (part.block.flips(source, flips) % 2 == 1) != begins_banned
    }

    fn memory(&self) -> usize {
        self.spans.memory() + self.edges.memory() + self.index.memory()
    }
}

/// Spans, and the revisions that added them.
#[derive(Debug)]
struct SpanBlock<A>(Box<[((A, A), u64)]>);

impl<A: Number> Block for SpanBlock<A> {
    type Key = (A, A);
    type Value = u64;
    type Note = ();

    const ROW_BYTES: usize = size_of::<((A, A), u64)>();

    fn new(rows: &[((A, A), u64)]) -> (Self, ()) {
        (Self(rows.into()), ())
    }

    fn rows(&self) -> impl Iterator<Item = ((A, A), u64)> + '_ {
        self.0.iter().copied()
    }

    fn get(&self, key: (A, A)) -> Option<u64> {
        self.0.binary_search_by_key(&key, |row| row.0).ok().map(|at| self.0[at].1)
    }
}

/// Positions where the number of bans changes, with the change.
#[derive(Debug)]
#[repr(C, align(64))]
struct EdgeBlock<A> {
    /// The first flip of each line except the first line.
    lines: [A; LINES],
    /// Changes between banned and not banned, by these edges alone; then padding with the highest
    /// address.
    flips: [A; MOST],
    places: Box<[A]>,
    counts: Box<[i32]>,
}

/// Stored beside the pointer to a block of edges.
#[derive(Clone, Copy, Debug)]
struct Note {
    /// Bans that cover everything from the block's first edge to the next block's.
    cover: i32,
    /// The smallest running sum of the block's edges, or 0 if that is smaller.
    lowest: i32,
    /// The sum of the block's edges.
    sum: i32,
    flips: u16,
    /// Whether the end of the block before is banned, if no ban covers this block.
    begins_banned: bool,
}

impl<A: Number> Block for EdgeBlock<A> {
    type Key = A;
    type Value = i32;
    type Note = Note;

    const ROW_BYTES: usize = size_of::<A>() + size_of::<i32>();

    fn new(rows: &[(A, i32)]) -> (Self, Note) {
        let sums = rows.iter().scan(0, |sum, (_, count)| {
            *sum += count;
            Some(*sum)
        });
        let lowest = sums.clone().min().unwrap_or(0).min(0);
        let begins_banned = 0 > lowest;
        let mut flips = [A::MAX; MOST];
        let (mut len, mut banned) = (0, begins_banned);
        for (&(place, _), sum) in rows.iter().zip(sums.clone()) {
            if (sum > lowest) != banned {
                banned = !banned;
                flips[len] = place;
                len += 1;
            }
        }
        let block = Self {
            lines: std::array::from_fn(|line| flips[(line + 1) * LINE]),
            flips,
            places: rows.iter().map(|row| row.0).collect(),
            counts: rows.iter().map(|row| row.1).collect(),
        };
        let sum = sums.last().unwrap_or(0);
        (block, Note { cover: 0, lowest, sum, flips: len as u16, begins_banned })
    }

    fn rows(&self) -> impl Iterator<Item = (A, i32)> + '_ {
        self.places.iter().copied().zip(self.counts.iter().copied())
    }

    fn get(&self, key: A) -> Option<i32> {
        self.places.binary_search(&key).ok().map(|at| self.counts[at])
    }
}

impl<A: Number> EdgeBlock<A> {
    /// The number of flips up to an address, among the first `most`.
    #[inline]
    fn flips(&self, address: A, most: u16) -> u32 {
        let up_to = |keys: &[A]| keys.iter().map(|&key| u32::from(key <= address)).sum::<u32>();
        let line = up_to(&self.lines);
        let start = line as usize * LINE;
        let keys = &self.flips[start..start + LINE];
        (start as u32 + up_to(keys)).min(most.into())
    }
}
