//! Rectangles, source × destination, and the topmost one at a point.
//!
//! ```text
//! destinations, cut at all ends of rectangles                   a tree over the pieces
//!  │ 0 │   1    │ 2 │     3      │                                     ┌──┴──┐
//!      ├─ rule 0 ───┤     = pieces 1, 2                              ┌┴┐   ┌┴┐
//!      each node: the sources of the rules that cover all of it      0 1   2 3
//! ```
//!
//! A rule is stored at the few nodes that together cover its destinations (at most 2 log₂ n), and
//! each node has its sources as a step function. A look-up finds the piece of the destination, and
//! searches the nodes above it that have rules; the topmost match counts. Source: segment trees
//! (Bentley, 1977).
//!
//! Memory: n rules of arbitrary ranges are stored at n · 2 log₂ n nodes in the worst case; prefixes
//! of a few lengths, or of any source or destination, at a few n. It is computed before it is
//! allocated, and refused above a limit.

use super::span::Number;
use crate::steps::{NONE, Shelf, Steps};

/// A rectangle: sources from the first to the last, destinations from the first to the last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rectangle<A> {
    pub(super) from: (A, A),
    pub(super) to: (A, A),
    /// The higher value lies on top.
    pub(super) value: u32,
}

#[derive(Debug)]
pub(super) struct Plane<A> {
    shelf: Shelf<A>,
    /// Positions where destinations are cut.
    cuts: Steps,
    /// A node's sources: node 1 is the root, 2n and 2n + 1 are below n, pieces come last.
    nodes: Vec<Steps>,
    /// By piece: bit k is set if the node k levels above it has sources.
    paths: Vec<u32>,
}

impl<A: Number> Plane<A> {
    /// Builds the plane of rectangles by ascending value. Refuses, with the bytes needed, if it may
    /// need more than `most`.
    pub(super) fn new(rectangles: &[Rectangle<A>], most: usize) -> Result<Self, usize> {
        let mut cuts: Vec<A> = rectangles
            .iter()
            .flat_map(|rectangle| [Some(rectangle.to.0), rectangle.to.1.next()])
            .flatten()
            .collect();
        cuts.sort_unstable();
        cuts.dedup();
        let pieces = cuts.len() + 1;
        let mut shelf = Shelf::new();
        let found = shelf.add_places(&cuts);
        // The pieces that a rectangle covers.
        let cover = |rectangle: &Rectangle<A>| {
            let first = shelf.count(found, rectangle.to.0);
            let last = shelf.count(found, rectangle.to.1);
            first + pieces..last + 1 + pieces
        };
        // The number of rectangles at each node, then the start of each node's list.
        let mut starts = vec![0u32; 2 * pieces + 1];
        let mut entries = 0usize;
        for rectangle in rectangles {
            each_node(cover(rectangle), |node| {
                starts[node + 1] += 1;
                entries += 1;
            });
        }
        // At most two keys a span, a sixteenth more for upper levels, and twice that while growing.
        let fixed = 2 * pieces * size_of::<Steps>() + pieces * size_of::<u32>();
        let span = 2 * (size_of::<A>() + size_of::<u32>()) * 17 / 16;
        let needs = fixed + (cuts.len() + 2 * entries) * span;
        if needs > most || entries > (NONE / 4) as usize {
            return Err(needs);
        }
        (0..2 * pieces).for_each(|node| starts[node + 1] += starts[node]);
        let mut fill = starts.clone();
        let mut members = vec![0u32; entries];
        for (index, rectangle) in (0..).zip(rectangles) {
            each_node(cover(rectangle), |node| {
                members[fill[node] as usize] = index;
                fill[node] += 1;
            });
        }
        let mut nodes = Vec::with_capacity(2 * pieces);
        let mut spans = Vec::new();
        for node in 0..2 * pieces {
            let own = &members[starts[node] as usize..starts[node + 1] as usize];
            spans.clear();
            spans.extend(own.iter().map(|&index| {
                let Rectangle { from, value, .. } = rectangles[index as usize];
                (from.0, from.1, value)
            }));
            nodes.push(if spans.is_empty() { Steps::default() } else { shelf.add(&spans) });
        }
        shelf.shrink();
        let has_rectangles = |node: usize| starts[node + 1] > starts[node];
        let paths = (0..pieces)
            .map(|piece| {
                let above = (0..u32::BITS).map(|floor| (piece + pieces) >> floor);
                let floors = (0..).zip(above.take_while(|&node| node > 0));
                floors
                    .fold(0, |path, (floor, node)| path | u32::from(has_rectangles(node)) << floor)
            })
            .collect();
        Ok(Self { shelf, cuts: found, nodes, paths })
    }

    /// The value of the topmost rectangle at a point.
    #[inline]
    pub(super) fn topmost(&self, source: A, destination: A) -> Option<u32> {
        let piece = self.shelf.count(self.cuts, destination);
        let leaf = piece + self.paths.len();
        let mut path = self.paths[piece];
        let mut topmost = None;
        while path != 0 {
            let node = leaf >> path.trailing_zeros();
            path &= path - 1;
            let value = self.shelf.value(self.nodes[node], source);
            if value != NONE {
                topmost = topmost.max(Some(value));
            }
        }
        topmost
    }

    /// Size in bytes.
    pub(super) fn memory(&self) -> usize {
        self.shelf.memory()
            + self.nodes.capacity() * size_of::<Steps>()
            + self.paths.capacity() * size_of::<u32>()
    }
}

/// The nodes that together cover some pieces, given as nodes of the lowest level.
fn each_node(pieces: std::ops::Range<usize>, mut node: impl FnMut(usize)) {
    let (mut first, mut end) = (pieces.start, pieces.end);
    while first < end {
        if first % 2 == 1 {
            node(first);
            first += 1;
        }
        if end % 2 == 1 {
            end -= 1;
            node(end);
        }
        first /= 2;
        end /= 2;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_look_up_equals_a_search_through_all_rectangles(
            corners in prop::collection::vec((0..24u32, 0..24u32, 0..24u32, 0..24u32), 0..24),
            high: bool,
        ) {
            let lift = |at: u32| if high { u32::MAX - 23 + at } else { at };
            let rectangles: Vec<_> = (0..)
                .zip(corners)
                .map(|(value, (a, b, c, d))| Rectangle {
                    from: (lift(a.min(b)), lift(a.max(b))),
                    to: (lift(c.min(d)), lift(c.max(d))),
                    value,
                })
                .collect();
            let plane = Plane::new(&rectangles, usize::MAX).unwrap();
            for (source, destination) in (0..24).flat_map(|s| (0..24).map(move |d| (s, d))) {
                let (source, destination) = (lift(source), lift(destination));
                let within = |range: (u32, u32), at| (range.0..=range.1).contains(&at);
                let naive = rectangles
                    .iter()
                    .rfind(|r| within(r.from, source) && within(r.to, destination))
                    .map(|r| r.value);
                prop_assert_eq!(plane.topmost(source, destination), naive);
            }
        }
    }

    #[test]
    fn a_plane_over_the_memory_limit_is_refused_before_allocation() {
        let rectangles: Vec<_> = (0..1_000u32)
            .map(|n| Rectangle { from: (n, 9_000), to: (n, 10_000 - n), value: n })
            .collect();
        let needs = Plane::new(&rectangles, 1_000).unwrap_err();
        let plane = Plane::new(&rectangles, needs).unwrap();
        assert!(plane.memory() <= needs, "{} of {needs}", plane.memory());
    }
}
