//! Merges a table of several images.

use std::cmp::Ordering;
use std::io::Read;

use crate::format::ImageError;
use crate::row::combine;
use crate::{Reader, Row};

/// Calls `each` with the rows of a table of all images, in order, and with the position of the image that a row is of;
/// rows with equal keys are one, of the first image that has it. The images have the same tables, and their tables are
/// merged in order.
///
/// # Errors
/// If an image cannot be read or is damaged, or `each` fails.
pub fn merge<R: Read, E: From<ImageError>>(
    images: &mut [Reader<R>],
    table: usize,
    mut each: impl FnMut(usize, &Row<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let Some(&schema) = images.first().and_then(|image| image.tables().get(table)) else {
        return Ok(());
    };
    let mut tree = Tree::new(images, table);
    let (mut fixed, mut tail) = (Vec::new(), Vec::new());
    while let Some(row) = images[tree.first.image].row(table) {
        let first = tree.first.image;
        if schema.many || tree.is_alone(images, table) {
            each(first, &row)?;
            advance(images, first)?;
            tree.replay(images, table);
            continue;
        }
        fixed.clear();
        fixed.extend_from_slice(row.fixed);
        tail.clear();
        tail.extend_from_slice(row.tail);
        advance(images, first)?;
        tree.replay(images, table);
        while let Some(more) = images[tree.first.image].row(table)
            && (Row { fixed: &fixed, key: schema.key, tail: &tail }).order(&more) == Ordering::Equal
        {
            combine(schema, &mut fixed, more.fixed);
            advance(images, tree.first.image)?;
            tree.replay(images, table);
        }
        each(first, &Row { fixed: &fixed, key: schema.key, tail: &tail })?;
    }
    Ok(())
}

/// Goes to the next row of an image.
#[inline]
fn advance<R: Read>(images: &mut [Reader<R>], image: usize) -> Result<(), ImageError> {
    images[image].advance().map_err(|error| ImageError { image, error })
}

/// An image, and the first bytes of its row: most comparisons need no more, and no cache miss.
#[derive(Clone, Copy)]
struct Entry {
    prefix: u128,
    image: usize,
}

impl Entry {
    #[inline]
    fn of<R: Read>(images: &[Reader<R>], table: usize, image: usize) -> Self {
        // An image without a further row comes last.
        Self { prefix: images[image].prefix(table).unwrap_or(u128::MAX), image }
    }

    /// Whether its row comes before the other's: of equal rows, that of the first image.
    #[inline]
    fn is_before<R: Read>(&self, other: &Self, images: &[Reader<R>], table: usize) -> bool {
        if self.prefix == other.prefix {
            return self.order(other, images, table).then(self.image.cmp(&other.image)).is_lt();
        }
        self.prefix < other.prefix
    }

    /// The order of the rows, whatever their first bytes are.
    #[cold]
    fn order<R: Read>(&self, other: &Self, images: &[Reader<R>], table: usize) -> Ordering {
        match (images[self.image].row(table), images[other.image].row(table)) {
            (Some(one), Some(other)) => one.order(&other),
            (one, other) => one.is_none().cmp(&other.is_none()),
        }
    }
}

/// A tree of losers (Knuth, *The Art of Computer Programming*, volume 3, 5.4.1) over the images' rows: `first` has won, and each node has the loser of its match. Node 1 is the final; the
/// players of node `n` are the winners of `2 n` and `2 n + 1`, and those at `losers.len()` and after are the images.
struct Tree {
    first: Entry,
    losers: Vec<Entry>,
}

impl Tree {
    /// The tournament of one image or more.
    fn new<R: Read>(images: &[Reader<R>], table: usize) -> Self {
        let number = images.len();
        let mut winners: Vec<_> = (0..2 * number)
            .map(|node| Entry::of(images, table, node.saturating_sub(number)))
            .collect();
        let mut losers = winners[..number].to_vec();
        for node in (1..number).rev() {
            let (left, right) = (winners[2 * node], winners[2 * node + 1]);
            let is_left = left.is_before(&right, images, table);
            (winners[node], losers[node]) = if is_left { (left, right) } else { (right, left) };
        }
        Self { first: winners[1], losers }
    }

    /// Whether no other image has the first row's key.
    #[inline]
    fn is_alone<R: Read>(&self, images: &[Reader<R>], table: usize) -> bool {
        let mut node = (self.losers.len() + self.first.image) / 2;
        // The second row has lost against the first.
        while node > 0 {
            let other = &self.losers[node];
            if other.prefix == self.first.prefix
                && self.first.order(other, images, table) == Ordering::Equal
            {
                return false;
            }
            node /= 2;
        }
        true
    }

    /// Restores the tree after the first image advanced.
    #[inline]
    fn replay<R: Read>(&mut self, images: &[Reader<R>], table: usize) {
        let mut first = Entry::of(images, table, self.first.image);
        let mut node = (self.losers.len() + first.image) / 2;
        while node > 0 {
            let other = &mut self.losers[node];
            // Either outcome is as likely, so the entries are exchanged without a branch.
            let is_other = other.is_before(&first, images, table);
            let prefix = (first.prefix ^ other.prefix) & u128::from(is_other).wrapping_neg();
            let image = (first.image ^ other.image) & usize::from(is_other).wrapping_neg();
            (first.prefix, first.image) = (first.prefix ^ prefix, first.image ^ image);
            (other.prefix, other.image) = (other.prefix ^ prefix, other.image ^ image);
            node /= 2;
        }
        self.first = first;
    }
}
