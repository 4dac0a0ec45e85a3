//! The rules of a revision, in levels: a small change makes a small level, and shares the others.
//!
//! ```text
//! before    [ 1,000,000 rules ] [ 40 ]
//! after            │            [ 40, 1 new ]      the last level was small: made again
//!                  └───── Arc ────────────────     shared
//! ```
//!
//! Rules of a later level have priority over all of earlier ones, so a look-up searches the last level first. A level
//! has more than [`RATIO`] times as many rules as the next one. So there are few levels, and each rule is in few levels
//! that are made: n additions, one a transaction, cost as much as some log n times building all.
//!
//! Removing a rule makes its level and all later ones again as one.

use std::sync::Arc;

use super::ruleset::Entry;
use super::span::{Number, Span};
use super::statement::Rule;
use crate::plane::{Plane, Rectangle};

/// A level with at most this many times the rules of what follows it is joined with that.
const RATIO: usize = 16;

/// Rules of all levels; later ones have priority.
#[derive(Clone, Debug, Default)]
pub(super) struct Levels(Vec<Arc<Level>>);

/// Consecutive rules with their look-ups.
#[derive(Debug)]
struct Level {
    /// The position of its first rule.
    start: u32,
    entries: Vec<Entry>,
    v4: Plane<u32>,
    v6: Plane<u128>,
}

impl Levels {
    /// Number of rules.
    pub(super) fn len(&self) -> usize {
        self.0.last().map_or(0, |last| last.start as usize + last.entries.len())
    }

    /// All rules.
    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry> + Clone {
        self.0.iter().flat_map(|level| &level.entries)
    }

    /// The rule at a position, which must exist.
    pub(super) fn entry(&self, place: usize) -> &Entry {
        let at = self.0.partition_point(|level| level.start as usize <= place) - 1;
        &self.0[at].entries[place - self.0[at].start as usize]
    }

    /// The position of the rule with a number.
    pub(super) fn place_of(&self, number: u64) -> Option<usize> {
        let first = |level: &Arc<Level>| level.entries.first().map_or(0, |entry| entry.number);
        let at = self.0.partition_point(|level| first(level) <= number).checked_sub(1)?;
        let level = &self.0[at];
        let place = level.entries.binary_search_by_key(&number, |entry| entry.number).ok()?;
        Some(level.start as usize + place)
    }

    /// The position and the action of the rule that decides.
    #[inline]
    pub(super) fn topmost_v4(&self, source: u32, destination: u32) -> Option<(u32, bool)> {
        self.0.iter().rev().find_map(|level| level.found(level.v4.topmost(source, destination)?))
    }

    /// The same for IPv6.
    #[inline]
    pub(super) fn topmost_v6(&self, source: u128, destination: u128) -> Option<(u32, bool)> {
        self.0.iter().rev().find_map(|level| level.found(level.v6.topmost(source, destination)?))
    }

    /// Bytes of the look-up structures.
    pub(super) fn memory(&self) -> usize {
        self.memory_by_family().iter().sum()
    }

    fn memory_by_family(&self) -> [usize; 2] {
        self.0
            .iter()
            .fold([0, 0], |[v4, v6], level| [v4 + level.v4.memory(), v6 + level.v6.memory()])
    }
}

impl Level {
    #[inline]
    fn found(&self, place: u32) -> Option<(u32, bool)> {
        Some((self.start + place, self.entries[place as usize].rule.allow))
    }
}

/// Rules while they change.
pub(super) struct LevelsDraft<'a> {
    before: &'a Levels,
    /// Number of levels that are kept.
    kept: usize,
    /// All later rules. Removed positions stay empty until the end, so that removing many costs no more than finding
    /// them.
    entries: Vec<Option<Entry>>,
    rules: usize,
    /// Positions in `entries` by content; made when the first rule is removed.
    by_words: Option<hashbrown::HashMap<Rule, Vec<usize>>>,
    /// Whether the position of a rule that existed before may have changed.
    moved: bool,
}

impl<'a> LevelsDraft<'a> {
    pub(super) fn of(before: &'a Levels) -> Self {
        let (kept, rules) = (before.0.len(), before.len());
        Self { before, kept, entries: Vec::new(), rules, by_words: None, moved: false }
    }

    /// Adds a rule, unless there are too many.
    pub(super) fn add(&mut self, entry: Entry, most: usize) -> bool {
        if self.rules >= most {
            return false;
        }
        if let Some(by_words) = &mut self.by_words {
            by_words.entry(entry.rule).or_default().push(self.entries.len());
        }
        self.entries.push(Some(entry));
        self.rules += 1;
        true
    }

    /// Removes the latest equal rule, if any.
    pub(super) fn remove(&mut self, rule: &Rule) -> bool {
        loop {
            if let Some(place) = self.by_words().get_mut(rule).and_then(Vec::pop) {
                self.entries[place] = None;
                self.rules -= 1;
                self.moved = true;
                return true;
            }
            if !self.open_level() {
                return false;
            }
        }
    }

    pub(super) fn clear(&mut self) {
        (self.kept, self.rules, self.moved) = (0, 0, true);
        self.entries.clear();
        self.by_words = None;
    }

    /// The rules, and whether positions may have changed. Refuses, with the bytes needed, if a family's look-ups may need
    /// more than `most`.
    pub(super) fn finish(mut self, most: usize) -> Result<(Levels, bool), usize> {
        let is_small = |draft: &Self| {
            let last = draft.kept.checked_sub(1).map(|last| draft.before.0[last].entries.len());
            last.is_some_and(|len| len <= RATIO * draft.entries.len())
        };
        while is_small(&self) {
            self.open_level();
        }
        let mut levels = Levels(self.before.0[..self.kept].to_vec());
        let entries: Vec<Entry> = self.entries.into_iter().flatten().collect();
        if !entries.is_empty() {
            let [v4, v6] = levels.memory_by_family();
            let level = Level {
                start: levels.len() as u32,
                v4: plane(&entries, Span::v4, v4, most)?,
                v6: plane(&entries, Span::v6, v6, most)?,
                entries,
            };
            levels.0.push(Arc::new(level));
        }
        Ok((levels, self.moved))
    }

    /// Takes the rules of the last kept level, if there is one, to change or join them.
    fn open_level(&mut self) -> bool {
        let Some(last) = self.kept.checked_sub(1) else { return false };
        let later = std::mem::take(&mut self.entries);
        let level = &self.before.0[last];
        self.entries.reserve(level.entries.len() + later.len());
        self.entries.extend(level.entries.iter().copied().map(Some));
        self.entries.extend(later);
        self.kept = last;
        self.by_words = None;
        true
    }

    fn by_words(&mut self) -> &mut hashbrown::HashMap<Rule, Vec<usize>> {
        let entries = &self.entries;
        self.by_words.get_or_insert_with(|| {
            let mut by_words: hashbrown::HashMap<Rule, Vec<usize>> = hashbrown::HashMap::new();
            for (place, entry) in entries.iter().enumerate() {
                if let Some(entry) = entry {
                    by_words.entry(entry.rule).or_default().push(place);
                }
            }
            by_words
        })
    }
}

/// The look-ups of a level for one family. `taken` bytes of `most` belong to other levels.
fn plane<A: Number>(
    entries: &[Entry],
    numbers: impl Fn(&Span) -> Option<(A, A)>,
    taken: usize,
    most: usize,
) -> Result<Plane<A>, usize> {
    let rectangles: Vec<Rectangle<A>> = (0..)
        .zip(entries)
        .filter_map(|(value, Entry { rule, .. })| {
            Some(Rectangle { from: numbers(&rule.from)?, to: numbers(&rule.to)?, value })
        })
        .collect();
    // A level without rules of the family needs next to nothing.
    let most = if rectangles.is_empty() { usize::MAX } else { most.saturating_sub(taken) };
    Plane::new(&rectangles, most).map_err(|needs| taken + needs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(number: u64) -> Entry {
        let first = std::net::Ipv4Addr::from_bits(number as u32);
        let rule = Rule { allow: false, from: Span::V4(first, first), to: Span::Any };
        Entry { rule, revision: number, number }
    }

    fn add(levels: &Levels, numbers: std::ops::Range<u64>) -> Levels {
        let mut draft = LevelsDraft::of(levels);
        numbers.for_each(|number| assert!(draft.add(entry(number), usize::MAX)));
        let (levels, moved) = draft.finish(usize::MAX).unwrap();
        assert!(!moved);
        levels
    }

    #[test]
    fn an_addition_shares_the_large_levels_and_costs_little() {
        let many = 20_000;
        let mut levels = add(&Levels::default(), 0..many);
        let large = Arc::clone(&levels.0[0]);
        let mut built = 0;
        for number in many..many + 1_000 {
            levels = add(&levels, number..number + 1);
            assert!(Arc::ptr_eq(&levels.0[0], &large), "the large level is shared");
            built += levels.0.last().unwrap().entries.len();
            let sizes: Vec<usize> = levels.0.iter().map(|level| level.entries.len()).collect();
            assert!(sizes.windows(2).all(|two| two[0] > RATIO * two[1]), "{sizes:?}");
        }
        assert!(levels.entries().map(|entry| entry.number).eq(0..many + 1_000));
        // Each addition made a few small levels; all rules together would be 20 million.
        assert!(built < 64 * 1_000, "{built}");
        for number in [0, 5, many - 1, many, many + 500, many + 999] {
            assert_eq!(levels.place_of(number), Some(number as usize));
            assert_eq!(levels.entry(number as usize).number, number);
            assert_eq!(levels.topmost_v4(number as u32, 7), Some((number as u32, false)));
        }
        assert_eq!((levels.place_of(many + 1_000), levels.topmost_v4(u32::MAX, 7)), (None, None));
    }

    #[test]
    fn removing_a_rule_of_the_last_level_shares_the_others() {
        let levels = add(&add(&Levels::default(), 0..1_000), 1_000..1_010);
        let mut draft = LevelsDraft::of(&levels);
        assert!(draft.remove(&entry(1_005).rule));
        let (after, moved) = draft.finish(usize::MAX).unwrap();
        assert!(moved && Arc::ptr_eq(&after.0[0], &levels.0[0]));
        assert_eq!(
            (after.len(), after.place_of(1_006), after.place_of(1_005)),
            (1_009, Some(1_005), None)
        );
        // One of the first level, and one that does not exist.
        let mut draft = LevelsDraft::of(&levels);
        assert!(draft.remove(&entry(3).rule) && !draft.remove(&entry(3).rule));
        let (after, _) = draft.finish(usize::MAX).unwrap();
        assert_eq!((after.len(), after.place_of(4)), (1_009, Some(3)));
    }
}
