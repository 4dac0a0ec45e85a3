//! Merges a table of several images.

use std::cmp::Ordering;
use std::io::Read;

use crate::format::Error;
use crate::rows::combine;
use crate::{Reader, Row};

/// Calls `each` with the rows of a table of all images, in order; rows with equal keys are one. The images have the
/// same tables, and their tables are merged in order.
///
/// # Errors
/// If an image cannot be read or is damaged, or `each` fails.
pub fn merge<R: Read, E: From<Error>>(
    images: &mut [Reader<R>],
    table: usize,
    mut each: impl FnMut(&Row<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let Some(&schema) = images.first().and_then(|image| image.tables().get(table)) else {
        return Ok(());
    };
    let mut heap = Heap::new(images, table);
    let (mut fixed, mut tail) = (Vec::new(), Vec::new());
    while let Some(&first) = heap.0.first() {
        let Some(row) = images[first].row(table) else { break };
        if schema.many || heap.is_alone(images, table) {
            each(&row)?;
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
        while let Some(&next) = heap.0.first()
            && let Some(more) = images[next].row(table)
            && (Row { fixed: &fixed, key: schema.key, tail: &tail }).order(&more) == Ordering::Equal
        {
            combine(schema.numbers, &mut fixed[schema.key..], &more.fixed[schema.key..]);
            images[next].advance()?;
            heap.sink(images, table);
        }
        each(&Row { fixed: &fixed, key: schema.key, tail: &tail })?;
    }
    Ok(())
}

/// A binary heap of the images that still have rows of the table; the one with the lowest row is the first.
struct Heap(Vec<usize>);

impl Heap {
    fn new<R: Read>(images: &[Reader<R>], table: usize) -> Self {
        let mut all: Vec<usize> = (0..images.len()).collect();
        all.retain(|&image| images[image].row(table).is_some());
        // A sorted list is a heap.
        all.sort_by(|&a, &b| order(images, table, a, b));
        Self(all)
    }

    /// Whether no other image has the first row's key.
    #[inline]
    fn is_alone<R: Read>(&self, images: &[Reader<R>], table: usize) -> bool {
        let differs = |&other: &usize| order(images, table, self.0[0], other) != Ordering::Equal;
        self.0.get(1).is_none_or(differs) && self.0.get(2).is_none_or(differs)
    }

    /// The first image has gone on: restores the order.
    #[inline]
    fn sink<R: Read>(&mut self, images: &[Reader<R>], table: usize) {
        if images[self.0[0]].row(table).is_none() {
            self.0.swap_remove(0);
        }
        let heap = &mut self.0;
        let mut at = 0;
        loop {
            let (left, right) = (2 * at + 1, 2 * at + 2);
            let Some(&child) = heap.get(left) else { return };
            let lower = match heap.get(right) {
                Some(&other) if order(images, table, other, child) == Ordering::Less => right,
                _ => left,
            };
            if order(images, table, heap[at], heap[lower]) != Ordering::Greater {
                return;
            }
            heap.swap(at, lower);
            at = lower;
        }
    }
}

#[inline]
fn order<R: Read>(images: &[Reader<R>], table: usize, a: usize, b: usize) -> Ordering {
    match (images[a].row(table), images[b].row(table)) {
        (Some(a), Some(b)) => a.order(&b),
        // Images at the end of the table are not in the heap.
        (a, b) => b.is_some().cmp(&a.is_some()),
    }
}
