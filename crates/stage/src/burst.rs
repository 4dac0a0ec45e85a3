//! A burst of items for a worker, with their attachments.
//!
//! ```text
//! items        | 0 | 1 | 2 | 3 | 4 | …            plain values, one cache line each
//! attachments        └ kind, bytes  └ kind, bytes   in the order of the items
//! ```
//!
//! Few items have an attachment, so attachments are stored apart: a burst is a plain slice, and
//! workers without attachments pay nothing.

use std::ops::{Deref, DerefMut, Range};

/// A reader's next items, with their attachments. Dereferences to the items.
#[derive(Clone, Debug)]
pub struct Burst<I> {
    items: Vec<I>,
    attachments: Attachments,
}

impl<I> Burst<I> {
    /// Empty, with room for `items` items.
    pub fn with_capacity(items: usize) -> Self {
        Self { items: Vec::with_capacity(items), attachments: Attachments::default() }
    }

    /// Removes items and attachments, and keeps the memory.
    pub fn clear(&mut self) {
        self.items.clear();
        self.attachments.clear();
    }

    /// What is attached to the items.
    #[inline(always)]
    pub fn attachments(&self) -> &Attachments {
        &self.attachments
    }

    /// The items and their attachments.
    #[inline(always)]
    pub fn parts_mut(&mut self) -> (&mut Vec<I>, &mut Attachments) {
        (&mut self.items, &mut self.attachments)
    }
}

impl<I: Copy> Burst<I> {
    /// Appends every item with its attachments to one of `parts`: `owner` returns its number,
    /// `part` its burst.
    #[inline(always)]
    pub fn share_out<P>(
        &self,
        parts: &mut [P],
        owner: impl Fn(&I) -> usize,
        part: impl Fn(&mut P) -> &mut Burst<I>,
    ) {
        let mut cursor = self.attachments.cursor();
        for (at, item) in self.items.iter().enumerate() {
            let part = part(&mut parts[owner(item)]);
            part.items.push(*item);
            if cursor.next_item() == at {
                cursor.copy_range(at..at + 1, part.items.len() - 1, &mut part.attachments);
            }
        }
    }
}

impl<I> Default for Burst<I> {
    fn default() -> Self {
        Self::with_capacity(0)
    }
}

impl<I> Deref for Burst<I> {
    type Target = Vec<I>;

    #[inline(always)]
    fn deref(&self) -> &Vec<I> {
        &self.items
    }
}

impl<I> DerefMut for Burst<I> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Vec<I> {
        &mut self.items
    }
}

/// What is attached to the items of a burst: values of a few hundred bytes, in the order of the items.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attachments {
    heads: Vec<Head>,
    bytes: Vec<u8>,
    /// Where the heads and the bytes of the last item begin.
    first: usize,
    start: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head {
    item: u32,
    /// The end of its bytes.
    end: u32,
    kind: u8,
}

impl Attachments {
    /// Most bytes attached to one item.
    pub const MOST_BYTES: usize = 8192;

    /// Most attachments of one item.
    pub const MOST: usize = 96;

    /// No attachments, for bursts without any.
    pub const NONE: &'static Self =
        &Self { heads: Vec::new(), bytes: Vec::new(), first: 0, start: 0 };

    /// True if no item has one.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.heads.is_empty()
    }

    /// Removes all, and keeps the memory.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.heads.clear();
        self.bytes.clear();
        (self.first, self.start) = (0, 0);
    }

    /// Attaches `bytes` to the item at this position of the burst; calls must be in the order of
    /// the items. False, without any effect, if the item has [`MOST`](Self::MOST) or would have
    /// more than [`MOST_BYTES`](Self::MOST_BYTES).
    #[inline]
    #[must_use]
    pub fn push(&mut self, item: usize, kind: u8, bytes: &[u8]) -> bool {
        let (first, start) = match self.heads.last() {
            Some(head) if head.item as usize == item => (self.first, self.start),
            _ => (self.heads.len(), self.bytes.len()),
        };
        let already = self.heads.len() - first;
        if already >= Self::MOST || self.bytes.len() - start + bytes.len() > Self::MOST_BYTES {
            return false;
        }
        (self.first, self.start) = (first, start);
        self.bytes.extend_from_slice(bytes);
        self.heads.push(Head { item: item as u32, end: self.bytes.len() as u32, kind });
        true
    }

    /// A cursor over all attachments, in the order of the items.
    #[inline(always)]
    pub fn cursor(&self) -> Cursor<'_> {
        Cursor { attachments: self, at: 0, start: 0 }
    }
}

/// A position among the attachments of a burst.
pub struct Cursor<'a> {
    attachments: &'a Attachments,
    at: usize,
    start: usize,
}

impl<'a> Cursor<'a> {
    /// The position of the next item with attachments; `usize::MAX` if there is none.
    #[inline(always)]
    pub fn next_item(&self) -> usize {
        self.attachments.heads.get(self.at).map_or(usize::MAX, |head| head.item as usize)
    }

    /// The next attachment, if it belongs to this item: kind and bytes.
    #[inline]
    pub fn take(&mut self, item: usize) -> Option<(u8, &'a [u8])> {
        let head = self.attachments.heads.get(self.at).filter(|head| head.item as usize == item)?;
        let bytes = &self.attachments.bytes[self.start..head.end as usize];
        (self.at, self.start) = (self.at + 1, head.end as usize);
        Some((head.kind, bytes))
    }

    /// The next attachment's bytes, if it belongs to this item and is of this kind.
    #[inline]
    pub fn take_kind(&mut self, item: usize, kind: u8) -> Option<&'a [u8]> {
        let head = self.attachments.heads.get(self.at)?;
        if (head.item as usize, head.kind) != (item, kind) {
            return None;
        }
        self.take(item).map(|(_, bytes)| bytes)
    }

    /// The bytes of the first attachment of this kind that follows and belongs to this item; nothing is taken.
    pub fn find(&self, item: usize, kind: u8) -> Option<&'a [u8]> {
        let Attachments { heads, bytes, .. } = self.attachments;
        let mut start = self.start;
        for head in heads[self.at..].iter().take_while(|head| head.item as usize == item) {
            if head.kind == kind {
                return bytes.get(start..head.end as usize);
            }
            start = head.end as usize;
        }
        None
    }

    /// Skips the attachments of items before this position.
    pub fn skip_to(&mut self, item: usize) {
        while self.next_item() < item {
            self.take(self.next_item());
        }
    }

    /// Number and bytes of the attachments of this item, which must be the next one with any.
    pub fn size(&self, item: usize) -> (usize, usize) {
        let of_item = |head: &&Head| head.item as usize == item;
        let heads = self.attachments.heads[self.at..].iter().take_while(of_item);
        let (count, end) =
            heads.fold((0, self.start), |(count, _), head| (count + 1, head.end as usize));
        (count, end - self.start)
    }

    /// Appends the attachments of a range of items to those of another burst, in which the items begin at `to`.
    pub fn copy_range(&mut self, items: Range<usize>, to: usize, attachments: &mut Attachments) {
        self.skip_to(items.start);
        let Attachments { heads, bytes, .. } = self.attachments;
        let heads = &heads[self.at..];
        let count = heads.iter().take_while(|head| (head.item as usize) < items.end).count();
        let Some(last) = heads[..count].last() else { return };
        // Numbers wrap, because items and bytes may move in either direction.
        let item_shift = (to as u32).wrapping_sub(items.start as u32);
        let end_shift = (attachments.bytes.len() as u32).wrapping_sub(self.start as u32);
        let moved = |head: &Head| Head {
            item: head.item.wrapping_add(item_shift),
            end: head.end.wrapping_add(end_shift),
            kind: head.kind,
        };
        let of_last = heads[..count].iter().rev().take_while(|head| head.item == last.item).count();
        attachments.heads.extend(heads[..count].iter().map(moved));
        attachments.bytes.extend_from_slice(&bytes[self.start..last.end as usize]);
        (self.at, self.start) = (self.at + count, last.end as usize);
        attachments.first = attachments.heads.len() - of_last;
        attachments.start = match attachments.first.checked_sub(1) {
            Some(before) => attachments.heads[before].end as usize,
            None => 0,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attachments_go_with_their_items() {
        let mut burst = Burst::with_capacity(8);
        burst.extend([10_usize, 11, 12, 13]);
        let (_, attachments) = burst.parts_mut();
        assert!(attachments.push(1, 7, b"one"));
        assert!(attachments.push(1, 8, b""));
        assert!(attachments.push(3, 7, b"three"));
        let mut parts = [Burst::with_capacity(8), Burst::with_capacity(8)];
        parts[1].push(9);
        burst.share_out(&mut parts, |item| item % 2, |part| part);
        let [even, odd] = parts;
        assert_eq!((even.as_slice(), odd.as_slice()), (&[10, 12][..], &[9, 11, 13][..]));
        assert!(even.attachments().is_empty());
        let mut cursor = odd.attachments().cursor();
        assert_eq!((cursor.next_item(), cursor.take(0)), (1, None));
        assert_eq!(cursor.take(1), Some((7, &b"one"[..])));
        assert_eq!(cursor.take(1), Some((8, &b""[..])));
        assert_eq!((cursor.take(1), cursor.next_item()), (None, 2));
        assert_eq!(cursor.take(2), Some((7, &b"three"[..])));
        assert_eq!(cursor.next_item(), usize::MAX);
        burst.clear();
        assert!(burst.is_empty() && burst.attachments().is_empty());
    }

    #[test]
    fn ranges_of_attachments_are_copied() {
        let mut all = Attachments::default();
        for (item, kind) in [(1, 1), (1, 2), (2, 3), (4, 4), (6, 5), (6, 6), (7, 7)] {
            assert!(all.push(item, kind, &[kind; 9][..usize::from(kind)]));
        }
        let mut kept = Attachments::default();
        assert!(kept.push(0, 9, b"before"));
        let mut cursor = all.cursor();
        cursor.copy_range(1..2, 1, &mut kept);
        cursor.copy_range(3..4, 2, &mut kept);
        cursor.copy_range(4..7, 2, &mut kept);
        assert_eq!(cursor.next_item(), 7);
        let mut expected = Attachments::default();
        assert!(expected.push(0, 9, b"before"));
        for (item, kind) in [(1, 1), (1, 2), (2, 4), (4, 5), (4, 6)] {
            assert!(expected.push(item, kind, &[kind; 9][..usize::from(kind)]));
        }
        assert_eq!(kept, expected);
    }

    #[test]
    fn an_item_has_no_more_than_it_may() {
        let mut attachments = Attachments::default();
        assert!(attachments.push(0, 0, &[0; Attachments::MOST_BYTES]));
        assert!(!attachments.push(0, 0, &[0]));
        for _ in 0..Attachments::MOST {
            assert!(attachments.push(1, 0, &[0; 8]));
        }
        assert!(!attachments.push(1, 0, &[]));
        assert!(attachments.push(2, 0, &[1]));
    }
}
