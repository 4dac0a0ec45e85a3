//! Merges a table of several images.

use std::cmp::Ordering;
use std::io::Read;

use crate::format::Error;
use crate::rows::combine;
use crate::{Reader, Row};

/// Calls `each` with the rows of a table of all images, in order, and with the position of the image that a row is of;
/// rows with equal keys are one, of the first image that has it. The images have the same tables, and their tables are
/// merged in order.
///
/// # Errors
/// If an image cannot be read or is damaged, or `each` fails.
pub fn merge<R: Read, E: From<Error>>(
    images: &mut [Reader<R>],
    table: usize,
    mut each: impl FnMut(usize, &Row<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let Some(&schema) = images.first().and_then(|image| image.tables().get(table)) else {
        return Ok(());
    };
    let mut heap = Heap::new(images, table);
    let (mut fixed, mut tail) = (Vec::new(), Vec::new());
    while let Some(first) = heap.first() {
        let Some(row) = images[first].row(table) else { break };
        if schema.many || heap.is_alone(images, table) {
            each(first, &row)?;
            images[first].advance()?;
            heap.sink(images, table);
            continue;
        }
        fixed.clear();
        fixed.extend_from_slice(row.fixed);
        tail.clear();
        tail.extend_from_slice(row.tail);
        images[first].advance()?;
        heap.sink(images, table);
        while let Some(next) = heap.first()
            && let Some(more) = images[next].row(table)
            && (Row { fixed: &fixed, key: schema.key, tail: &tail }).order(&more) == Ordering::Equal
        {
            combine(schema.numbers, &mut fixed[schema.key..], &more.fixed[schema.key..]);
            images[next].advance()?;
            heap.sink(images, table);
        }
        each(first, &Row { fixed: &fixed, key: schema.key, tail: &tail })?;
    }
    Ok(())
}

/// A binary heap of the images that still have rows of the table; the one with the lowest row is the first.
struct Heap(Vec<Entry>);

/// The first bytes of a key as a number in the order of the keys of a table. A gap of zeros takes one of them, as behind an
/// IPv4 address in 16 bytes, so that more of what differs is in the number.
#[inline]
pub(crate) fn prefix(key: &[u8]) -> u128 {
    const GAP: usize = 12;
    let mut out = [0; size_of::<u128>()];
    match key.first_chunk::<{ 5 + GAP + 10 }>() {
        Some(head) => {
            out[..5].copy_from_slice(&head[..5]);
            let is_gap = head[5..][..GAP] == [0; GAP];
            out[5] = u8::from(!is_gap);
            let rest = if is_gap { 5 + GAP } else { 5 };
            out[6..].copy_from_slice(&head[rest..][..10]);
        }
        None => out.iter_mut().zip(key).for_each(|(to, from)| *to = *from),
    }
    u128::from_be_bytes(out)
}

/// An image, and the first bytes of its row: most comparisons need no more, and no cache miss.
#[derive(Clone, Copy)]
struct Entry {
    prefix: u128,
    image: usize,
}

impl Entry {
    /// That of an image's row; `None` at the end of the table.
    #[inline]
    fn of<R: Read>(images: &[Reader<R>], table: usize, image: usize) -> Option<Self> {
        let row = images[image].row(table)?;
        Some(Self { prefix: prefix(row.key()), image })
    }

    #[inline]
    fn order<R: Read>(&self, other: &Self, images: &[Reader<R>], table: usize) -> Ordering {
        self.prefix.cmp(&other.prefix).then_with(|| {
            let row = |entry: &Self| images[entry.image].row(table);
            // All images of a heap have a row.
            row(self).zip(row(other)).map_or(Ordering::Equal, |(one, other)| one.order(&other))
        })
    }
}

impl Heap {
    fn new<R: Read>(images: &[Reader<R>], table: usize) -> Self {
        let mut all: Vec<_> =
            (0..images.len()).filter_map(|image| Entry::of(images, table, image)).collect();
        // A sorted list is a heap.
        all.sort_by(|one, other| one.order(other, images, table));
        Self(all)
    }

    /// The image with the lowest row.
    #[inline]
    fn first(&self) -> Option<usize> {
        self.0.first().map(|entry| entry.image)
    }

    /// Whether no other image has the first row's key.
    #[inline]
    fn is_alone<R: Read>(&self, images: &[Reader<R>], table: usize) -> bool {
        let first = &self.0[0];
        let differs = |other: &Entry| first.order(other, images, table) != Ordering::Equal;
        self.0.get(1).is_none_or(differs) && self.0.get(2).is_none_or(differs)
    }

    /// The first image has gone on: restores the order.
    #[inline]
    fn sink<R: Read>(&mut self, images: &[Reader<R>], table: usize) {
        match Entry::of(images, table, self.0[0].image) {
            Some(entry) => self.0[0] = entry,
            None => _ = self.0.swap_remove(0),
        }
        let heap = &mut self.0;
        let mut at = 0;
        loop {
            let (left, right) = (2 * at + 1, 2 * at + 2);
            let Some(child) = heap.get(left) else { return };
            let lower = match heap.get(right) {
                Some(other) if other.order(child, images, table) == Ordering::Less => right,
                _ => left,
            };
            if heap[at].order(&heap[lower], images, table) != Ordering::Greater {
                return;
            }
            heap.swap(at, lower);
            at = lower;
        }
    }
}
