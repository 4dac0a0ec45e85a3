//! The open channels by number.
//!
//! ```text
//!  | channel 0 | closed | channel 2 |     a new channel takes the place of a closed one
//! ```
//!
//! Invariant: a channel is closed only without faces, so no face has the number of a closed one.
//! Other numbers, such as that of a queue which is being read, may be of a closed channel.

use std::collections::BTreeSet;
use std::ops::{Index, IndexMut};

use crate::faces::channel::Channel;

#[derive(Default)]
pub(crate) struct Channels {
    slots: Vec<Option<Channel>>,
    /// Numbers of closed channels.
    free: Vec<usize>,
    /// Numbers of channels that were opened or closed since the last call of
    /// [`Channels::take_changed`].
    changed: BTreeSet<usize>,
}

impl Channels {
    /// The number of the next channel that is added.
    pub(crate) fn next(&self) -> usize {
        self.free.last().copied().unwrap_or(self.slots.len())
    }

    /// Adds a channel; returns its number.
    pub(crate) fn add(&mut self, channel: Channel) -> usize {
        let number = self.next();
        match self.free.pop() {
            Some(number) => self.slots[number] = Some(channel),
            None => self.slots.push(Some(channel)),
        }
        self.changed.insert(number);
        number
    }

    /// Removes a channel, which must have no faces.
    pub(crate) fn remove(&mut self, number: usize) -> Option<Channel> {
        let removed = self.slots.get_mut(number)?.take()?;
        self.free.push(number);
        self.changed.insert(number);
        Some(removed)
    }

    /// The numbers of channels that were opened or closed since the last call.
    pub(crate) fn take_changed(&mut self) -> BTreeSet<usize> {
        std::mem::take(&mut self.changed)
    }

    pub(crate) fn get(&self, number: usize) -> Option<&Channel> {
        self.slots.get(number)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, number: usize) -> Option<&mut Channel> {
        self.slots.get_mut(number)?.as_mut()
    }

    /// The number of the first channel with this property.
    pub(crate) fn find(&self, is_it: impl Fn(&Channel) -> bool) -> Option<usize> {
        self.slots.iter().position(|slot| slot.as_ref().is_some_and(&is_it))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Channel> {
        self.slots.iter().flatten()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Channel> {
        self.slots.iter_mut().flatten()
    }

    /// One more than the largest number so far.
    pub(crate) fn end(&self) -> usize {
        self.slots.len()
    }
}

impl Index<usize> for Channels {
    type Output = Channel;

    #[inline]
    fn index(&self, number: usize) -> &Channel {
        self.slots[number].as_ref().expect("a channel with faces is open")
    }
}

impl IndexMut<usize> for Channels {
    #[inline]
    fn index_mut(&mut self, number: usize) -> &mut Channel {
        self.slots[number].as_mut().expect("a channel with faces is open")
    }
}
