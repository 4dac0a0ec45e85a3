//! Finds the rules that overlap one rule.
//!
//! ```text
//!  rules in the order of their sources, in parts; each part in the order of its destinations
//!  │ 16 rules │ 16 rules │ …     a bound around each sixteen, around sixteen of these, and so on
//! ```
//!
//! Source: packed R-trees (Leutenegger, Lopez, Edgington, *STR: A Simple and Efficient Algorithm for
//! R-Tree Packing*, ICDE 1997).

use super::plane::Rectangle;
use super::span::Number;

/// Rules under a bound, and bounds under one above.
const WIDTH: usize = 16;

/// The smallest rectangle around others: sources and destinations.
#[derive(Clone, Copy, Debug)]
struct Bound<A> {
    from: (A, A),
    to: (A, A),
}

impl<A: Number> Bound<A> {
    fn of(rectangle: &Rectangle<A>) -> Self {
        Self { from: rectangle.from, to: rectangle.to }
    }

    fn around(bounds: impl Iterator<Item = Self>) -> Option<Self> {
        let join = |(a, b): (A, A), (c, d): (A, A)| (a.min(c), b.max(d));
        bounds.reduce(|one, two| Self { from: join(one.from, two.from), to: join(one.to, two.to) })
    }

    fn overlaps(&self, other: &Self) -> bool {
        let meet = |(a, b): (A, A), (c, d): (A, A)| a <= d && c <= b;
        meet(self.from, other.from) && meet(self.to, other.to)
    }
}

/// Values of rectangles by place. The rectangles themselves are the caller's.
#[derive(Debug)]
pub(super) struct Overlaps<A> {
    order: Box<[u32]>,
    /// The lowest level first.
    bounds: Vec<Vec<Bound<A>>>,
}

impl<A: Number> Overlaps<A> {
    pub(super) fn new(mut rectangles: Vec<Rectangle<A>>) -> Self {
        rectangles.sort_unstable_by_key(|one| (one.from.0, one.to.0, one.value));
        let part = (rectangles.len() / WIDTH).isqrt().max(1) * WIDTH;
        for part in rectangles.chunks_mut(part) {
            part.sort_unstable_by_key(|one| (one.to.0, one.from.0, one.value));
        }
        let around = |sixteen: &[Bound<A>]| Bound::around(sixteen.iter().copied());
        let sixteens = rectangles.chunks(WIDTH);
        let mut level: Vec<Bound<A>> =
            sixteens.filter_map(|some| Bound::around(some.iter().map(Bound::of))).collect();
        let mut bounds = Vec::new();
        while level.len() > WIDTH {
            let above = level.chunks(WIDTH).filter_map(around).collect();
            bounds.push(std::mem::replace(&mut level, above));
        }
        bounds.push(level);
        Self { order: rectangles.into_iter().map(|one| one.value).collect(), bounds }
    }

    /// Calls `found` with the value of each rectangle that overlaps `with`, until it returns false.
    /// `rectangle` returns the rectangle of a value. Returns the number of bounds and rectangles that were
    /// compared.
    pub(super) fn each(
        &self,
        with: &Rectangle<A>,
        rectangle: impl Fn(u32) -> Option<Rectangle<A>>,
        mut found: impl FnMut(u32) -> bool,
    ) -> usize {
        let with = Bound::of(with);
        let top = self.bounds.len() - 1;
        let mut compared = 0;
        let mut open: Vec<(usize, usize)> =
            (0..self.bounds[top].len()).map(|at| (top, at)).collect();
        while let Some((level, at)) = open.pop() {
            compared += 1;
            if !self.bounds[level][at].overlaps(&with) {
                continue;
            }
            let below = at * WIDTH..(at + 1) * WIDTH;
            if let Some(level) = level.checked_sub(1) {
                let end = below.end.min(self.bounds[level].len());
                open.extend((below.start..end).map(|at| (level, at)));
                continue;
            }
            for &value in &self.order[below.start..below.end.min(self.order.len())] {
                compared += 1;
                let is_hit = rectangle(value).is_some_and(|one| Bound::of(&one).overlaps(&with));
                if is_hit && !found(value) {
                    return compared;
                }
            }
        }
        compared
    }

    /// Size in bytes for a number of rectangles.
    pub(super) fn bytes(rectangles: usize) -> usize {
        let mut bytes = rectangles * size_of::<u32>();
        let mut level = rectangles.div_ceil(WIDTH);
        while level > WIDTH {
            bytes += level * size_of::<Bound<A>>();
            level = level.div_ceil(WIDTH);
        }
        bytes + level * size_of::<Bound<A>>()
    }

    /// Size in bytes.
    pub(super) fn memory(&self) -> usize {
        Self::bytes(self.order.len())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rectangle((value, (a, b, c, d)): (u32, (u32, u32, u32, u32))) -> Rectangle<u32> {
        Rectangle { from: (a.min(b), a.max(b)), to: (c.min(d), c.max(d)), value }
    }

    proptest! {
        #[test]
        fn all_that_overlap_are_found_once(
            corners in prop::collection::vec((0..60u32, 0..60u32, 0..60u32, 0..60u32), 0..900),
            with in (0..60u32, 0..60u32, 0..60u32, 0..60u32),
        ) {
            let all: Vec<_> = (0..).zip(corners).map(rectangle).collect();
            let with = rectangle((0, with));
            let overlaps = Overlaps::new(all.clone());
            let mut found = Vec::new();
            overlaps.each(&with, |value| Some(all[value as usize]), |value| {
                found.push(value);
                true
            });
            found.sort_unstable();
            let expected = all.iter().filter(|one| Bound::of(one).overlaps(&Bound::of(&with)));
            prop_assert_eq!(found, expected.map(|one| one.value).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_small_rectangle_is_compared_with_few() {
        // Sources to any, any to destinations, and pairs.
        for kind in 0..3 {
            let all: Vec<_> = (0..100_000u32)
                .map(|value| {
                    let at = value.wrapping_mul(0x9e37_79b1);
                    let (any, one) = ((0, u32::MAX), (at, at.saturating_add(255)));
                    let [from, to] = [[one, any], [any, one], [one, one]][kind];
                    Rectangle { from, to, value }
                })
                .collect();
            let overlaps = Overlaps::new(all.clone());
            let mut found = 0;
            let compared = overlaps.each(
                &all[777],
                |value| Some(all[value as usize]),
                |_| {
                    found += 1;
                    true
                },
            );
            assert!((1..5).contains(&found) && compared < 2_000, "{kind}: {found}, {compared}");
            // It ends when the caller has enough.
            assert!(
                overlaps.each(&all[777], |value| Some(all[value as usize]), |_| false) <= compared
            );
        }
    }
}
