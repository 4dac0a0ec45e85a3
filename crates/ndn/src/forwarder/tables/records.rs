//! Lists of records. The first record of a list is stored in the list itself, further ones in a
//! pool.
//!
//! ```text
//!  list: | first | more | ─▶ | second | next | ─▶ | third | – |
//! ```
//!
//! Most lists have one record, which is read together with the owner of the list.

use super::NONE;
use super::pool::Pool;

/// A list of records.
#[derive(Debug)]
#[repr(C)]
pub(super) struct List<T> {
    first: Option<T>,
    more: u32,
}

impl<T> List<T> {
    pub(super) const EMPTY: Self = Self { first: None, more: NONE };
}

#[derive(Clone, Copy, Debug)]
struct Further<T> {
    record: T,
    next: u32,
}

/// The further records of all lists.
#[derive(Debug)]
pub(super) struct Records<T>(Pool<Further<T>>);

impl<T: Copy> Records<T> {
    /// Room for `capacity` records besides the first one of each list.
    pub(super) fn new(capacity: usize) -> Self {
        Self(Pool::new(capacity))
    }

    #[inline]
    pub(super) fn iter<'a>(&'a self, list: &'a List<T>) -> impl Iterator<Item = &'a T> {
        let mut next = list.more;
        let further = std::iter::from_fn(move || {
            let at = (next != NONE).then(|| &self.0[next])?;
            next = at.next;
            Some(&at.record)
        });
        list.first.iter().chain(further)
    }

    /// The first record for which `is_wanted` returns true.
    #[inline]
    pub(super) fn find_mut<'a>(
        &'a mut self,
        list: &'a mut List<T>,
        is_wanted: impl Fn(&T) -> bool,
    ) -> Option<&'a mut T> {
        if list.first.as_ref().is_some_and(&is_wanted) {
            return list.first.as_mut();
        }
        let mut next = list.more;
        while next != NONE && !is_wanted(&self.0[next].record) {
            next = self.0[next].next;
        }
        (next != NONE).then(|| &mut self.0[next].record)
    }

    /// Adds a record at the front of a list; returns false if there is no room.
    #[inline]
    pub(super) fn push_front(&mut self, list: &mut List<T>, record: T) -> bool {
        if let Some(first) = list.first {
            let Some(at) = self.0.put(Further { record: first, next: list.more }) else {
                return false;
            };
            list.more = at;
        }
        list.first = Some(record);
        true
    }

    /// Adds a record at the end of a list; returns false if there is no room.
    #[inline]
    pub(super) fn push_back(&mut self, list: &mut List<T>, record: T) -> bool {
        if list.first.is_none() {
            list.first = Some(record);
            return true;
        }
        let Some(new) = self.0.put(Further { record, next: NONE }) else { return false };
        let last = self.before(list, |_| false);
        *self.link(list, last) = new;
        true
    }

    /// Removes and returns the first record for which `is_wanted` returns true.
    #[inline]
    pub(super) fn remove(
        &mut self,
        list: &mut List<T>,
        is_wanted: impl Fn(&T) -> bool,
    ) -> Option<T> {
        if let Some(first) = list.first.take_if(|first| is_wanted(first)) {
            if list.more != NONE {
                list.first = self.unlink(list, NONE);
            }
            return Some(first);
        }
        let before = self.before(list, is_wanted);
        self.unlink(list, before)
    }

    /// The further record before the first one for which `is_wanted` returns true, or the last one.
    #[inline]
    fn before(&self, list: &List<T>, is_wanted: impl Fn(&T) -> bool) -> u32 {
        let (mut before, mut next) = (NONE, list.more);
        while next != NONE && !is_wanted(&self.0[next].record) {
            (before, next) = (next, self.0[next].next);
        }
        before
    }

    /// The reference to the further record after `before`; to the first one if that is `NONE`.
    #[inline]
    fn link<'a>(&'a mut self, list: &'a mut List<T>, before: u32) -> &'a mut u32 {
        match before {
            NONE => &mut list.more,
            before => &mut self.0[before].next,
        }
    }

    /// Removes the further record after `before`.
    #[inline]
    fn unlink(&mut self, list: &mut List<T>, before: u32) -> Option<T> {
        let at = *self.link(list, before);
        let Further { record, next } = (at != NONE).then(|| self.0[at])?;
        *self.link(list, before) = next;
        self.0.free(at);
        Some(record)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn lists_are_as_vectors(steps in prop::collection::vec((0..4, 0..3usize, 0..6u8), 0..200)) {
            let mut records = Records::new(4);
            let mut lists = [const { List::EMPTY }; 3];
            let mut model = [const { Vec::new() }; 3];
            for (step, which, record) in steps {
                let further: usize = model.iter().map(|model| model.len().saturating_sub(1)).sum();
                let (list, model) = (&mut lists[which], &mut model[which]);
                let has_room = further < 4 || model.is_empty();
                match step {
                    0 => {
                        prop_assert_eq!(records.push_front(list, record), has_room);
                        model.splice(..0, has_room.then_some(record));
                    }
                    1 => {
                        prop_assert_eq!(records.push_back(list, record), has_room);
                        model.extend(has_room.then_some(record));
                    }
                    2 => {
                        let at = model.iter().position(|&other| other == record);
                        let removed = records.remove(list, |&other| other == record);
                        prop_assert_eq!(removed, at.map(|at| model.remove(at)));
                    }
                    _ => {
                        // Parity is what the search compares, so that it may find another record.
                        let is_wanted = |other: &u8| other % 2 == record % 2;
                        let expected = model.iter_mut().find(|other| is_wanted(other));
                        let found = records.find_mut(list, is_wanted);
                        prop_assert_eq!(found.is_some(), expected.is_some());
                        if let (Some(found), Some(expected)) = (found, expected) {
                            prop_assert_eq!(*found, *expected);
                            (*found, *expected) = (record, record);
                        }
                    }
                }
                prop_assert!(records.iter(list).eq(&*model));
            }
        }
    }
}
