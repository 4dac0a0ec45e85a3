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
//! A removed rule keeps its position, and its level is shared. A look-up knows only the topmost rule at a point. So the
//! rules that the removed one covered are put in a look-up of their own, which is searched where a removed rule was
//! found:
//!
//! ```text
//! rules        0: ├──────────┤      2: ├────────┤        look-up at ↓: 2, removed; exposed: 0
//!                    1: ├──────┤   3: ├──┤       ↓
//! 2 removed    exposed: those below it that overlap it
//! ```
//!
//! Each removal exposes what the rule covered then, so the topmost rule that remains at a point was exposed when the
//! last of those above it was removed, and no removed one hides it there. Exposed rules are in parts of decreasing size,
//! as levels are. A level whose exposed rules are more than 1/[`EXPOSED`] of it, or of which more than 1/[`REMOVED`] was
//! removed, is made again with all later ones.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use super::span::{Number, Span};
use super::statement::Rule;
use crate::overlaps::Overlaps;
use crate::plane::{Plane, Rectangle};

/// A rule of a revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The rule.
    pub rule: Rule,
    /// The revision that added it.
    pub revision: u64,
    /// Its number, which is never reused.
    pub number: u64,
}

/// A level with at most this many times the rules of what follows it is joined with that.
const RATIO: usize = 16;

/// The part of a level that may be exposed by removed rules, and the part that may be removed.
const EXPOSED: usize = 64;
const REMOVED: usize = 4;

/// Rules of all levels; later ones have priority.
#[derive(Clone, Debug, Default)]
pub(super) struct Levels(Vec<Level>);

/// Consecutive rules with their look-ups, and those that were removed since.
#[derive(Clone, Debug)]
struct Level {
    /// The position of its first rule.
    start: u32,
    base: Arc<Base>,
    removed: Arc<Removed>,
}

/// What a level is made with.
#[derive(Debug)]
struct Base {
    entries: Vec<Entry>,
    planes: Planes,
    words: Words,
    overlaps: (Overlaps<u32>, Overlaps<u128>),
}

/// Look-ups of some rules of a level. Values are places in the level.
#[derive(Debug)]
struct Planes {
    v4: Plane<u32>,
    v6: Plane<u128>,
}

/// The removed rules of a level.
#[derive(Clone, Debug, Default)]
struct Removed {
    /// A bit for each place; empty if no rule was removed.
    bits: Vec<u64>,
    count: usize,
    /// The larger ones first.
    exposed: Vec<Arc<Exposed>>,
}

/// Rules that removed ones covered.
#[derive(Debug)]
struct Exposed {
    places: Vec<u32>,
    planes: Planes,
}

impl Levels {
    /// Number of rules.
    pub(super) fn len(&self) -> usize {
        self.0.iter().map(Level::len).sum()
    }

    /// Number of positions: removed rules have theirs until their level is made again.
    pub(super) fn positions(&self) -> usize {
        self.0.last().map_or(0, |last| last.start as usize + last.base.entries.len())
    }

    /// All rules.
    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry> + Clone {
        self.0.iter().flat_map(Level::entries)
    }

    /// The rules of all positions, removed ones included.
    pub(super) fn placed(&self) -> impl Iterator<Item = &Entry> {
        self.0.iter().flat_map(|level| &level.base.entries)
    }

    /// The rule at a position, which must exist.
    pub(super) fn entry(&self, place: usize) -> &Entry {
        let at = self.0.partition_point(|level| level.start as usize <= place) - 1;
        &self.0[at].base.entries[place - self.0[at].start as usize]
    }

    /// The position of the rule with a number.
    pub(super) fn place_of(&self, number: u64) -> Option<usize> {
        let first = |level: &Level| level.base.entries.first().map_or(0, |entry| entry.number);
        let at = self.0.partition_point(|level| first(level) <= number).checked_sub(1)?;
        let Level { start, base, removed } = &self.0[at];
        let place = base.entries.binary_search_by_key(&number, |entry| entry.number).ok()?;
        (!removed.has(place as u32)).then_some(*start as usize + place)
    }

    /// The position and the action of the rule that decides.
    #[inline]
    pub(super) fn topmost_v4(&self, source: u32, destination: u32) -> Option<(u32, bool)> {
        let find = |level: &Level| level.topmost(|planes| planes.v4.topmost(source, destination));
        self.0.iter().rev().find_map(find)
    }

    /// Returns the position and the action of the rule that decides, for IPv6.
    #[inline]
    pub(super) fn topmost_v6(&self, source: u128, destination: u128) -> Option<(u32, bool)> {
        let find = |level: &Level| level.topmost(|planes| planes.v6.topmost(source, destination));
        self.0.iter().rev().find_map(find)
    }

    /// Bytes of the look-up structures.
    pub(super) fn memory(&self) -> usize {
        let others = |level: &Level| level.base.words.memory() + level.removed.bits.len() * 8;
        let others: usize = self.0.iter().map(others).sum();
        others + self.memory_by_family().iter().sum::<usize>()
    }

    fn memory_by_family(&self) -> [usize; 2] {
        self.0.iter().fold([0, 0], |[v4, v6], level| {
            let exposed = level.removed.exposed.iter().map(|exposed| &exposed.planes);
            let (over4, over6) = &level.base.overlaps;
            std::iter::once(&level.base.planes)
                .chain(exposed)
                .fold([v4 + over4.memory(), v6 + over6.memory()], |[v4, v6], planes| {
                    [v4 + planes.v4.memory(), v6 + planes.v6.memory()]
                })
        })
    }
}

impl Level {
    /// Number of rules.
    fn len(&self) -> usize {
        self.base.entries.len() - self.removed.count
    }

    fn entries(&self) -> impl Iterator<Item = &Entry> + Clone {
        let places = (0..).zip(&self.base.entries);
        places.filter(move |(place, _)| !self.removed.has(*place)).map(|(_, entry)| entry)
    }

    #[inline]
    fn topmost(&self, find: impl Fn(&Planes) -> Option<u32>) -> Option<(u32, bool)> {
        let mut place = find(&self.base.planes)?;
        if self.removed.has(place) {
            let exposed = self.removed.exposed.iter();
            let found = exposed.filter_map(|exposed| find(&exposed.planes));
            place = found.filter(|place| !self.removed.has(*place)).max()?;
        }
        Some((self.start + place, self.base.entries[place as usize].rule.allow))
    }

    /// The rules that remain below a removed one and overlap it, added to `exposed`; at most `most` in all, else
    /// `None`. Returns the number of comparisons.
    fn expose(
        &self,
        place: u32,
        removed: &BTreeSet<u32>,
        exposed: &mut BTreeSet<u32>,
        most: usize,
    ) -> Option<usize> {
        let Base { entries, overlaps: (v4, v6), .. } = &*self.base;
        let mut found = |other: u32| {
            if other < place && !self.removed.has(other) && !removed.contains(&other) {
                exposed.insert(other);
            }
            exposed.len() <= most
        };
        let rule4 = |place: u32| rectangle(place, &entries[place as usize].rule, Span::v4);
        let rule6 = |place: u32| rectangle(place, &entries[place as usize].rule, Span::v6);
        let mut compared = 0;
        if let Some(with) = rule4(place) {
            compared += v4.each(&with, rule4, &mut found);
        }
        if let Some(with) = rule6(place) {
            compared += v6.each(&with, rule6, &mut found);
        }
        (exposed.len() <= most).then_some(compared)
    }

    /// The rules that the removal of some exposes, with those of earlier removals that are in parts too small to
    /// keep, and the number of parts that are kept; `None` if the level is to be made again.
    fn exposed_by(&self, removed: &BTreeSet<u32>) -> Option<(BTreeSet<u32>, usize)> {
        let len = self.base.entries.len();
        if (self.removed.count + removed.len()) * REMOVED > len {
            return None;
        }
        let parts = &self.removed.exposed;
        let (mut exposed, most) = (BTreeSet::new(), len / EXPOSED);
        for &place in removed {
            self.expose(place, removed, &mut exposed, most)?;
        }
        let mut kept = parts.len();
        while let Some(last) = kept.checked_sub(1)
            && parts[last].places.len() <= RATIO * exposed.len()
        {
            let remains = |place: &&u32| !self.removed.has(**place) && !removed.contains(*place);
            exposed.extend(parts[last].places.iter().filter(remains));
            kept = last;
        }
        let all = parts[..kept].iter().map(|part| part.places.len()).sum::<usize>() + exposed.len();
        (all <= most).then_some((exposed, kept))
    }

    /// The level without some rules. `taken` are the bytes of all levels by family.
    fn without(
        &self,
        removed: &BTreeSet<u32>,
        (exposed, kept): (BTreeSet<u32>, usize),
        taken: [usize; 2],
        most: usize,
    ) -> Result<Self, usize> {
        let Level { start, base, removed: before } = self;
        let mut bits = before.bits.clone();
        bits.resize(base.entries.len().div_ceil(64), 0);
        for place in removed {
            bits[*place as usize / 64] |= 1 << (place % 64);
        }
        let mut parts = before.exposed[..kept].to_vec();
        if !exposed.is_empty() {
            let places: Vec<u32> = exposed.into_iter().collect();
            let all4 = rectangles(&base.entries, places.iter().copied(), Span::v4);
            let all6 = rectangles(&base.entries, places.iter().copied(), Span::v6);
            let [v4, v6] = taken;
            let planes = Planes { v4: plane(&all4, v4, most)?, v6: plane(&all6, v6, most)? };
            parts.push(Arc::new(Exposed { places, planes }));
        }
        let removed = Removed { bits, count: before.count + removed.len(), exposed: parts };
        Ok(Self { start: *start, base: Arc::clone(base), removed: Arc::new(removed) })
    }
}

impl Removed {
    #[inline]
    fn has(&self, place: u32) -> bool {
        let word = self.bits.get(place as usize / 64);
        word.is_some_and(|word| word >> (place % 64) & 1 == 1)
    }
}

/// Finds rules by their content.
#[derive(Debug)]
struct Words {
    hasher: RandomState,
    /// Places by hash, then by content, then by place.
    order: Box<[u32]>,
}

impl Words {
    fn new(entries: &[Entry]) -> Self {
        let hasher = RandomState::new();
        let hash = |entry: &Entry| hasher.hash_one(entry.rule) as u32;
        let mut hashed: Vec<(u32, u32)> =
            (0..).zip(entries).map(|(place, entry)| (hash(entry), place)).collect();
        hashed.sort_unstable_by(|one, two| {
            let rule = |place: u32| &entries[place as usize].rule;
            let by_words = || rule(one.1).cmp(rule(two.1));
            one.0.cmp(&two.0).then_with(by_words).then(one.1.cmp(&two.1))
        });
        Self { hasher, order: hashed.into_iter().map(|(_, place)| place).collect() }
    }

    /// The last place of a rule that was not removed. Equal rules are removed from the last on.
    fn last(&self, entries: &[Entry], rule: &Rule, removed: impl Fn(u32) -> bool) -> Option<u32> {
        let hash = |rule: &Rule| self.hasher.hash_one(rule) as u32;
        let sought = (hash(rule), rule);
        let key = |place: &u32| {
            let other = &entries[*place as usize].rule;
            (hash(other), other)
        };
        let first = self.order.partition_point(|place| key(place) < sought);
        let equal = &self.order[first..];
        let equal = &equal[..equal.partition_point(|place| key(place) <= sought)];
        let left = equal.partition_point(|place| !removed(*place));
        left.checked_sub(1).map(|last| equal[last])
    }

    fn memory(&self) -> usize {
        self.order.len() * size_of::<u32>()
    }
}

/// Rules while they change.
pub(super) struct LevelsDraft<'a> {
    before: &'a Levels,
    /// Number of levels that are kept.
    kept: usize,
    /// Places that are removed from kept levels.
    removed: Vec<BTreeSet<u32>>,
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
        let removed = vec![BTreeSet::new(); kept];
        Self { before, kept, removed, entries: Vec::new(), rules, by_words: None, moved: false }
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
        if let Some(place) = self.by_words().get_mut(rule).and_then(Vec::pop) {
            self.entries[place] = None;
            self.rules -= 1;
            return true;
        }
        for (level, removed) in self.before.0[..self.kept].iter().zip(&mut self.removed).rev() {
            let Level { base, removed: before, .. } = level;
            let is_removed = |place| before.has(place) || removed.contains(&place);
            if let Some(place) = base.words.last(&base.entries, rule, is_removed) {
                removed.insert(place);
                self.rules -= 1;
                return true;
            }
        }
        false
    }

    pub(super) fn clear(&mut self) {
        (self.kept, self.rules, self.moved) = (0, 0, true);
        self.entries.clear();
        self.by_words = None;
    }

    /// The rules, and whether positions may have changed. Refuses, with the bytes needed, if a family's look-ups may need
    /// more than `most`.
    pub(super) fn finish(mut self, most: usize) -> Result<(Levels, bool), usize> {
        let mut exposed = Vec::new();
        for at in 0..self.kept {
            let removed = &self.removed[at];
            let by = (!removed.is_empty()).then(|| self.before.0[at].exposed_by(removed));
            if by == Some(None) {
                while self.kept > at {
                    self.open_level();
                }
                break;
            }
            exposed.push(by.flatten());
        }
        let is_small = |draft: &Self| {
            let last = draft.kept.checked_sub(1)?;
            let len = draft.before.0[last].len() - draft.removed[last].len();
            Some(len <= RATIO * draft.entries.len())
        };
        while is_small(&self) == Some(true) {
            self.open_level();
        }
        let mut levels = Levels(self.before.0[..self.kept].to_vec());
        for (at, by) in (0..self.kept).zip(exposed) {
            if let Some(by) = by {
                let taken = levels.memory_by_family();
                levels.0[at] = levels.0[at].without(&self.removed[at], by, taken, most)?;
            }
        }
        let entries: Vec<Entry> = self.entries.into_iter().flatten().collect();
        if !entries.is_empty() {
            let base = Arc::new(Base::new(entries, levels.memory_by_family(), most)?);
            let (start, removed) = (levels.positions() as u32, Arc::default());
            levels.0.push(Level { start, base, removed });
        }
        Ok((levels, self.moved))
    }

    /// Takes the rules of the last kept level, if there is one, to change or join them.
    fn open_level(&mut self) {
        let Some(last) = self.kept.checked_sub(1) else { return };
        let later = std::mem::take(&mut self.entries);
        let level = &self.before.0[last];
        let removed = &self.removed[last];
        let places = (0..).zip(&level.base.entries);
        let remains =
            |(place, _): &(u32, _)| !level.removed.has(*place) && !removed.contains(place);
        self.entries.reserve(level.len() + later.len());
        self.entries.extend(places.filter(remains).map(|(_, entry)| Some(*entry)));
        self.entries.extend(later);
        self.moved |= level.removed.count + removed.len() > 0;
        self.kept = last;
        self.by_words = None;
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

/// A rule in one family, if it has addresses of that.
fn rectangle<A: Number>(
    value: u32,
    rule: &Rule,
    numbers: impl Fn(&Span) -> Option<(A, A)>,
) -> Option<Rectangle<A>> {
    Some(Rectangle { from: numbers(&rule.from)?, to: numbers(&rule.to)?, value })
}

fn rectangles<A: Number>(
    entries: &[Entry],
    places: impl Iterator<Item = u32>,
    numbers: impl Fn(&Span) -> Option<(A, A)> + Copy,
) -> Vec<Rectangle<A>> {
    places.filter_map(|place| rectangle(place, &entries[place as usize].rule, numbers)).collect()
}

impl Base {
    /// `taken` are the bytes of the other levels by family.
    fn new(entries: Vec<Entry>, [v4, v6]: [usize; 2], most: usize) -> Result<Self, usize> {
        let places = || 0..entries.len() as u32;
        let all4 = rectangles(&entries, places(), Span::v4);
        let all6 = rectangles(&entries, places(), Span::v6);
        let (over4, over6) =
            (Overlaps::<u32>::bytes(all4.len()), Overlaps::<u128>::bytes(all6.len()));
        let planes =
            Planes { v4: plane(&all4, v4 + over4, most)?, v6: plane(&all6, v6 + over6, most)? };
        let overlaps = (Overlaps::new(all4), Overlaps::new(all6));
        Ok(Self { words: Words::new(&entries), overlaps, planes, entries })
    }
}

/// A look-up of these rules. `taken` bytes of `most` belong to others.
fn plane<A: Number>(
    rectangles: &[Rectangle<A>],
    taken: usize,
    most: usize,
) -> Result<Plane<A>, usize> {
    // A level without rules of the family needs next to nothing.
    let most = if rectangles.is_empty() { usize::MAX } else { most.saturating_sub(taken) };
    Plane::new(rectangles, most).map_err(|needs| taken + needs)
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
        let large = Arc::clone(&levels.0[0].base);
        let mut built = 0;
        for number in many..many + 1_000 {
            levels = add(&levels, number..number + 1);
            assert!(Arc::ptr_eq(&levels.0[0].base, &large), "the large level is shared");
            built += levels.0.last().unwrap().len();
            let sizes: Vec<usize> = levels.0.iter().map(Level::len).collect();
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

    fn remove(levels: &Levels, rules: &[Rule]) -> (Levels, bool) {
        let mut draft = LevelsDraft::of(levels);
        rules.iter().for_each(|rule| assert!(draft.remove(rule)));
        draft.finish(usize::MAX).unwrap()
    }

    #[test]
    fn a_small_level_is_made_again_without_the_others() {
        let levels = add(&add(&Levels::default(), 0..1_000), 1_000..1_010);
        let (after, moved) = remove(&levels, &[entry(1_005).rule]);
        assert!(!moved && Arc::ptr_eq(&after.0[1].base, &levels.0[1].base));
        assert_eq!((after.len(), after.positions()), (1_009, 1_010));
        assert_eq!((after.place_of(1_006), after.place_of(1_005)), (Some(1_006), None));
        // One that does not exist any more.
        assert!(!LevelsDraft::of(&after).remove(&entry(1_005).rule));
        let (after, moved) = remove(&after, &[entry(1_001).rule, entry(1_009).rule]);
        assert!(moved && Arc::ptr_eq(&after.0[0].base, &levels.0[0].base));
        assert_eq!(
            (after.len(), after.positions(), after.place_of(1_006)),
            (1_007, 1_007, Some(1_004))
        );
        assert_eq!(after.topmost_v4(1_006, 7), Some((1_004, false)));
    }

    /// Rules of random networks of both families, some of all addresses.
    fn random(random: &mut ringtap_base::SplitMix, number: u64) -> Entry {
        let mut span = |v6: bool| {
            if random.below(200) == 0 {
                return Span::Any;
            }
            let (bits, length) = (u128::from(random.next()), random.below(9) as u32 + 6);
            match v6 {
                true => {
                    let (first, hosts) = (bits << 64, u128::MAX >> length);
                    Span::V6((first & !hosts).into(), (first | hosts).into())
                }
                false => {
                    let (first, hosts) = (bits as u32, u32::MAX >> length);
                    Span::V4((first & !hosts).into(), (first | hosts).into())
                }
            }
        };
        let v6 = number.is_multiple_of(3);
        let (from, to) = (span(v6), span(v6));
        Entry { rule: Rule { allow: number.is_multiple_of(2), from, to }, revision: number, number }
    }

    #[test]
    fn a_removal_shares_the_large_level_and_costs_as_much_as_the_rule_covered() {
        let (many, turns) = (40_000, 200);
        let mut dice = ringtap_base::SplitMix::new(5);
        let mut draft = LevelsDraft::of(const { &Levels(Vec::new()) });
        let mut left: Vec<Entry> = (0..many).map(|number| random(&mut dice, number)).collect();
        left.iter().for_each(|one| assert!(draft.add(*one, usize::MAX)));
        let (mut levels, _) = draft.finish(usize::MAX).unwrap();
        let (large, memory) = (Arc::clone(&levels.0[0].base), levels.memory());
        let (mut built, mut compared, mut latest) = (0, 0, 0);
        for _ in 0..turns {
            let narrow = |one: &Entry| one.rule.from != Span::Any && one.rule.to != Span::Any;
            let at = loop {
                let at = dice.below(left.len() as u64) as usize;
                if narrow(&left[at]) {
                    break at;
                }
            };
            let gone = left.remove(at);
            let place = levels.place_of(gone.number).unwrap() as u32;
            compared += levels.0[0]
                .expose(place, &BTreeSet::new(), &mut BTreeSet::new(), usize::MAX)
                .unwrap();
            let (after, moved) = remove(&levels, &[gone.rule]);
            assert!(!moved && after.0.len() == 1 && Arc::ptr_eq(&after.0[0].base, &large));
            let parts = &after.0[0].removed.exposed;
            let newest = parts.last().filter(|part| {
                !levels.0[0].removed.exposed.iter().any(|old| Arc::ptr_eq(old, part))
            });
            let size = newest.map_or(0, |part| part.places.len());
            (built, latest) = (built + size, latest.max(size));
            assert!(levels.0[0].removed.count + 1 == after.0[0].removed.count);
            levels = after;
        }
        // Making all again would be 20 million.
        assert!(
            built > 100 && built < 60 * turns as usize && latest <= many as usize / EXPOSED,
            "{built}, {latest}"
        );
        assert!(compared < 8_000 * turns as usize, "{compared}");
        assert!(levels.memory() * 10 < memory * 13, "{} of {memory}", levels.memory());
        assert!(
            levels.entries().map(|entry| entry.number).eq(left.iter().map(|entry| entry.number))
        );
        // Positions stay.
        assert_eq!((levels.len(), levels.positions()), (left.len(), many as usize));
    }

    #[test]
    fn after_many_removals_the_level_is_made_again() {
        let levels = add(&Levels::default(), 0..1_000);
        let rules: Vec<Rule> = (0..1_000).map(|number| entry(number).rule).collect();
        let (after, moved) = remove(&levels, &rules[..250]);
        assert!(!moved && Arc::ptr_eq(&after.0[0].base, &levels.0[0].base));
        let (after, moved) = remove(&after, &rules[250..251]);
        assert!(moved && after.positions() == 749 && after.place_of(251) == Some(0));
        // And one that covers many: the first of these is seen again.
        let wide = Rule { allow: true, from: Span::Any, to: Span::Any };
        let mut draft = LevelsDraft::of(&after);
        assert!(draft.add(Entry { rule: wide, revision: 1, number: 2_000 }, usize::MAX));
        while draft.kept > 0 {
            draft.open_level();
        }
        let (covered, _) = draft.finish(usize::MAX).unwrap();
        assert_eq!(covered.topmost_v4(251, 1), Some((749, true)));
        let (after, moved) = remove(&covered, &[wide]);
        assert!(moved && !Arc::ptr_eq(&after.0[0].base, &covered.0[0].base));
        assert_eq!(after.topmost_v4(251, 1), Some((0, false)));
        let none = remove(&after, &rules[251..]).0;
        assert_eq!((none.len(), none.topmost_v4(251, 1)), (0, None));
    }

    #[test]
    fn equal_rules_are_removed_from_the_last_on() {
        let rule = entry(7).rule;
        let mut draft = LevelsDraft::of(const { &Levels(Vec::new()) });
        for number in 0..2_000 {
            let entry = if number % 4 == 0 {
                Entry { rule, ..entry(number) }
            } else {
                entry(number + 10_000)
            };
            assert!(draft.add(Entry { number, ..entry }, usize::MAX));
        }
        let (mut levels, _) = draft.finish(usize::MAX).unwrap();
        for number in (0..500).rev() {
            assert_eq!(
                levels.topmost_v4(7, 1).map(|(place, _)| levels.entry(place as usize).number),
                Some(4 * number)
            );
            levels = remove(&levels, &[rule]).0;
        }
        assert!(!LevelsDraft::of(&levels).remove(&rule));
        assert_eq!((levels.len(), levels.topmost_v4(7, 1)), (1_500, None));
    }
}
