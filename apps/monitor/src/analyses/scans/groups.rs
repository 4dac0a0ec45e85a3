//! Failed attempts in groups: of a source on one target, or on one port.

use super::rows::SAMPLE;

/// The first and the last time of no attempt.
pub(super) const NO_TIMES: [u64; 2] = [u64::MAX, 0];

/// Counters of a [`Crowd`].
const COUNTERS: usize = 1 << 12;

/// Upper bounds of the attempts of each group; groups share counters by their hash. It separates
/// the few groups that may be scans from the others before they take memory.
pub(super) struct Crowd(Vec<u32>);

impl Crowd {
    pub(super) fn new() -> Self {
        Self(vec![0; COUNTERS])
    }

    pub(super) fn clear(&mut self) {
        self.0.fill(0);
    }

    #[inline(always)]
    pub(super) fn add(&mut self, hash: u32) {
        self.0[Self::at(hash)] += 1;
    }

    /// Whether a group may have more members than this.
    #[inline(always)]
    pub(super) fn may_exceed(&self, hash: u32, members: u32) -> bool {
        self.0[Self::at(hash)] > members
    }

    #[inline(always)]
    const fn at(hash: u32) -> usize {
        (hash >> 20) as usize % COUNTERS
    }
}

/// Attempts of one source with one target or port in common.
#[derive(Clone, Copy)]
pub(super) struct Group<A, C, M> {
    pub(super) source: A,
    pub(super) common: C,
    /// Failed ones, less those that offset them.
    pub(super) failed: i32,
    pub(super) first_ns: u64,
    pub(super) last_ns: u64,
    pub(super) hash: u32,
    listed: u8,
    /// The lowest members, in order.
    lowest: [M; SAMPLE],
}

impl<A: Copy + Eq, C: Copy + Eq, M: Copy + Default + Ord> Group<A, C, M> {
    /// A group of attempts with times and lowest members.
    #[inline(always)]
    pub(super) fn of(
        hash: u32,
        (source, common): (A, C),
        failed: i32,
        [first_ns, last_ns]: [u64; 2],
        members: &[M],
    ) -> Self {
        let mut lowest = [M::default(); SAMPLE];
        lowest[..members.len()].copy_from_slice(members);
        let listed = members.len() as u8;
        Self { source, common, failed, first_ns, last_ns, hash, listed, lowest }
    }

    /// The lowest members, in order.
    pub(super) fn sample(&self) -> &[M] {
        &self.lowest[..self.listed.into()]
    }

    /// Adds attempts with other members.
    #[inline(always)]
    fn add(&mut self, failed: i32, times_ns: [u64; 2], members: &[M]) {
        self.failed += failed;
        self.first_ns = self.first_ns.min(times_ns[0]);
        self.last_ns = self.last_ns.max(times_ns[1]);
        for &member in members {
            let listed = usize::from(self.listed);
            if listed < SAMPLE || member < self.lowest[SAMPLE - 1] {
                self.list(member);
            }
        }
    }

    fn list(&mut self, member: M) {
        let listed = usize::from(self.listed);
        let at = self.sample().partition_point(|own| *own < member);
        self.lowest.copy_within(at..listed.min(SAMPLE - 1), at + 1);
        self.lowest[at] = member;
        self.listed = (listed + 1).min(SAMPLE) as u8;
    }
}

/// Groups by source and common target or port.
pub(super) struct Groups<A, C, M> {
    groups: Vec<Group<A, C, M>>,
    /// Positions plus one, by hash; at least twice as many as groups.
    index: Vec<u32>,
}

impl<A: Copy + Eq, C: Copy + Eq, M: Copy + Default + Ord> Groups<A, C, M> {
    pub(super) fn new() -> Self {
        Self { groups: Vec::new(), index: vec![0; 64] }
    }

    /// Adds a group to the equal one.
    #[inline(always)]
    pub(super) fn add(&mut self, group: &Group<A, C, M>) {
        let times_ns = [group.first_ns, group.last_ns];
        let (slot, found) = self.find(group.hash, group.source, group.common);
        match found {
            Some(at) => self.groups[at].add(group.failed, times_ns, group.sample()),
            None => self.insert(slot, *group),
        }
    }

    /// Adds a failed attempt.
    #[inline(always)]
    pub(super) fn add_attempt(
        &mut self,
        hash: u32,
        (source, common, member): (A, C, M),
        times_ns: [u64; 2],
    ) {
        let (slot, found) = self.find(hash, source, common);
        match found {
            Some(at) => self.groups[at].add(1, times_ns, &[member]),
            None => self.insert(slot, Group::of(hash, (source, common), 1, times_ns, &[member])),
        }
    }

    /// Adds an attempt that offsets a failed one.
    #[inline(always)]
    pub(super) fn offset(&mut self, hash: u32, (source, common): (A, C)) {
        let (slot, found) = self.find(hash, source, common);
        match found {
            Some(at) => self.groups[at].failed -= 1,
            None => self.insert(slot, Group::of(hash, (source, common), -1, NO_TIMES, &[])),
        }
    }

    /// The slot of a group, and its position if it exists.
    #[inline(always)]
    fn find(&self, hash: u32, source: A, common: C) -> (usize, Option<usize>) {
        let mask = self.index.len() - 1;
        let mut slot = hash as usize & mask;
        loop {
            let Some(at) = (self.index[slot] as usize).checked_sub(1) else {
                return (slot, None);
            };
            let own = &self.groups[at];
            if own.hash == hash && own.source == source && own.common == common {
                return (slot, Some(at));
            }
            slot = (slot + 1) & mask;
        }
    }

    fn insert(&mut self, slot: usize, group: Group<A, C, M>) {
        self.groups.push(group);
        self.index[slot] = self.groups.len() as u32;
        if self.groups.len() * 2 > self.index.len() {
            self.grow();
        }
    }

    #[cold]
    fn grow(&mut self) {
        let words = self.index.len() * 4;
        self.index.clear();
        self.index.resize(words, 0);
        for (at, group) in self.groups.iter().enumerate() {
            let mut slot = group.hash as usize & (words - 1);
            while self.index[slot] != 0 {
                slot = (slot + 1) & (words - 1);
            }
            self.index[slot] = at as u32 + 1;
        }
    }

    /// Removes all groups, in order of creation.
    pub(super) fn take(&mut self) -> impl Iterator<Item = Group<A, C, M>> + use<'_, A, C, M> {
        self.index.fill(0);
        self.groups.drain(..)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use ringtap_wire::HashKey;

    use super::*;

    #[test]
    fn groups_agree_with_a_map_and_have_their_lowest_members() {
        let key = HashKey::from_seed(1);
        let mut expected = BTreeMap::<(u8, u16), Vec<u32>>::new();
        let (mut halves, mut groups, mut crowd) =
            ([Groups::new(), Groups::new()], Groups::new(), Crowd::new());
        for n in 0..20_000_u32 {
            let member = n.wrapping_mul(2_654_435_761);
            let (source, common) = ((n % 7) as u8, (n % 1_000) as u16);
            expected.entry((source, common)).or_default().push(member);
            let hash = (key.word(u64::from(source) << 16 | u64::from(common)) >> 32) as u32;
            crowd.add(hash);
            let time = [u64::from(n), u64::from(n) + 1];
            halves[n as usize % 2].add_attempt(hash, (source, common, member), time);
        }
        halves.iter_mut().flat_map(Groups::take).for_each(|group| groups.add(&group));
        assert_eq!(groups.groups.len(), expected.len());
        let mut offsets = Groups::new();
        for group in groups.take() {
            let members = expected.get_mut(&(group.source, group.common)).unwrap();
            members.sort_unstable();
            let attempts = members.len() as i32;
            assert_eq!(
                (group.sample(), group.failed),
                (&members[..members.len().min(SAMPLE)], attempts)
            );
            assert!(group.first_ns < group.last_ns);
            offsets.offset(group.hash, (group.source, group.common));
            offsets.add(&group);
            offsets.offset(group.hash, (group.source, group.common));
            assert!(crowd.may_exceed(group.hash, attempts as u32 - 1));
        }
        assert!(groups.take().next().is_none());
        for group in offsets.take() {
            let members = &expected[&(group.source, group.common)];
            assert_eq!(group.failed, members.len() as i32 - 2);
            assert_eq!(group.sample(), &members[..members.len().min(SAMPLE)]);
            assert!(group.first_ns < group.last_ns);
        }
    }
}
