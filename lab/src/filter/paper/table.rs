//! The shared permission table with striped locks, and the obsolete marks of all workers.
//!
//! ```text
//! stripe 0 (lock)   addresses 0, n, 2n, …     each: banned, accepting, recent changes by revision
//! stripe 1 (lock)   addresses 1, n+1, …
//! applied           by address: the last change made                 readers wait for it
//! marks             by worker and address: cached verdicts older than this are obsolete
//! ```
//!
//! A data packet must see the permissions of its place in the stream, though a worker that is ahead
//! may have made later changes. So an entry keeps its recent changes with their revisions, and a
//! packet reads the entry *as of* its own revision. A change is merged into the entry once no
//! earlier packet is in flight ([`Window::settled`](crate::filter::window::Window::settled)), so
//! the window bounds the number of recent changes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use crate::filter::accepting::Accepting;
use crate::filter::packet::{Address, Control, Data};
use ringtap_filter::Policy;

/// The permission table. The *revision* of a packet is its number plus one; revision 0 is the
/// initial state.
#[derive(Debug)]
pub(super) struct Table {
    stripes: Box<[Mutex<Vec<Entry>>]>,
    /// By address: the revision of the last change that was made.
    applied: Box<[AtomicU64]>,
    /// By worker, by address.
    marks: Box<[Box<[AtomicU64]>]>,
    /// A planted bug for tests: cached verdicts are not invalidated.
    #[cfg(test)]
    pub(super) omits_marks: bool,
}

#[derive(Clone, Debug)]
struct Entry {
    banned: bool,
    accepting: Accepting,
    /// Changes that are not yet in the two fields above, by ascending revision.
    recent: Vec<(u64, Control)>,
}

impl Table {
    pub(super) fn new(addresses: usize, policy: Policy, stripes: usize, workers: usize) -> Self {
        let accepting = Accepting::new(policy);
        let entry = Entry { banned: false, accepting, recent: Vec::new() };
        let stripes = stripes.clamp(1, addresses.max(1));
        let zeros = || (0..addresses).map(|_| AtomicU64::new(0)).collect::<Box<[_]>>();
        Self {
            stripes: (0..stripes)
                .map(|stripe| {
                    let own = (addresses + stripes - 1 - stripe) / stripes;
                    Mutex::new(vec![entry.clone(); own])
                })
                .collect(),
            applied: zeros(),
            marks: (0..workers).map(|_| zeros()).collect(),
            #[cfg(test)]
            omits_marks: false,
        }
    }

    /// Whether the change of `revision` or a later one has been made for an address.
    #[inline]
    pub(super) fn has(&self, address: Address, revision: u64) -> bool {
        // Pairs with the Release store in `change`: a thread that sees the change sees its marks.
        self.applied[usize::from(address)].load(Ordering::Acquire) >= revision
    }

    /// Makes a change. The previous change of the same address must have been made, and no packet
    /// before `settled` may be in flight.
    pub(super) fn change(&self, control: &Control, revision: u64, settled: u64) {
        let (mut stripe, place) = self.stripe(control.address);
        let entry = &mut stripe[place];
        let old = entry.recent.partition_point(|&(revision, _)| revision <= settled);
        for (_, control) in entry.recent.drain(..old) {
            entry.banned = control.banned;
            entry.accepting.set(control.begin, control.end, control.accepting);
        }
        entry.recent.push((revision, *control));
        drop(stripe);
        self.mark(control.address, revision);
        // Pairs with the Acquire load in `has`.
        self.applied[usize::from(control.address)].store(revision, Ordering::Release);
    }

    fn mark(&self, address: Address, revision: u64) {
        #[cfg(test)]
        if self.omits_marks {
            return;
        }
        for marks in &self.marks {
            // Published by the Release store of `applied`.
            marks[usize::from(address)].store(revision, Ordering::Relaxed);
        }
    }

    /// Whether a verdict that a worker cached at revision `at` is obsolete.
    #[inline]
    pub(super) fn is_obsolete(&self, worker: usize, data: &Data, at: u64) -> bool {
        let marks = &self.marks[worker];
        // Relaxed: `has` has acquired all marks up to the packet. Whether a later mark is visible
        // makes no difference: the worker then reads the table, which yields the same verdict.
        let mark = |address: Address| marks[usize::from(address)].load(Ordering::Relaxed);
        mark(data.source) > at || mark(data.destination) > at
    }

    /// The verdict as of revision `at`. All changes up to it must have been made. The two locks are
    /// taken one after the other, because the state as of `at` does not change any more.
    pub(super) fn pass(&self, data: &Data, at: u64) -> bool {
        let (stripe, place) = self.stripe(data.source);
        let banned = stripe[place].banned(at);
        drop(stripe);
        if banned {
            return false;
        }
        let (stripe, place) = self.stripe(data.destination);
        stripe[place].accepts(data.source, at)
    }

    fn stripe(&self, address: Address) -> (MutexGuard<'_, Vec<Entry>>, usize) {
        let (address, stripes) = (usize::from(address), self.stripes.len());
        // A worker that panicked ends the run.
        let stripe = self.stripes[address % stripes].lock();
        (stripe.unwrap_or_else(|poison| poison.into_inner()), address / stripes)
    }
}

impl Entry {
    /// The recent changes up to revision `at`, the last one first.
    fn until(&self, at: u64) -> impl Iterator<Item = &Control> {
        self.recent.iter().rev().filter(move |(revision, _)| *revision <= at).map(|(_, c)| c)
    }

    fn banned(&self, at: u64) -> bool {
        self.until(at).next().map_or(self.banned, |control| control.banned)
    }

    fn accepts(&self, source: Address, at: u64) -> bool {
        self.until(at)
            .find(|control| (control.begin..control.end).contains(&source))
            .map_or_else(|| self.accepting.contains(source), |control| control.accepting)
    }
}
