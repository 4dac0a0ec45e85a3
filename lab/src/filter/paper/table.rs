//! The shared permission table with striped locks, and the obsolete marks of all workers.
//!
//! ```text
//! stripe 0 (lock)   addresses 0, n, 2n, …     each: banned, accepting, recent changes by number
//! stripe 1 (lock)   addresses 1, n+1, …
//! applied           by address: the last change made                 whoever needs it waits for it
//! marks             by worker and address: cached verdicts older than this are obsolete
//! ```
//!
//! A data packet must see the permissions of its place in the stream, though a worker that is ahead may
//! have made later changes. So an entry keeps its changes of late with their numbers, and a packet reads
//! *as of* its own. Changes go into the entry for good once no packet before them is in flight
//! ([`Window::settled`](crate::window::Window::settled)), hence there are fewer than the bound of those.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use crate::filter::accepting::Accepting;
use crate::filter::packet::{Address, Control, Data};
use ringtap_filter::Policy;

/// *Revisions* are numbers of packets plus one; revision 0 is the beginning.
#[derive(Debug)]
pub(super) struct Table {
    stripes: Box<[Mutex<Vec<Entry>>]>,
    /// By address: the revision of the last change that was made.
    applied: Box<[AtomicU64]>,
    /// By worker, by address.
    marks: Box<[Box<[AtomicU64]>]>,
    /// A planted bug: nobody hears that cached verdicts are obsolete.
    #[cfg(test)]
    pub(super) forgets_marks: bool,
}

#[derive(Clone, Debug)]
struct Entry {
    banned: bool,
    accepting: Accepting,
    /// Not yet in the two above, by ascending revision.
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
            forgets_marks: false,
        }
    }

    /// Whether the change of that revision has been made, or a later one, for an address.
    #[inline]
    pub(super) fn has(&self, address: Address, revision: u64) -> bool {
        // Pairs with the Release store in `change`: who sees the change made sees its marks.
        self.applied[usize::from(address)].load(Ordering::Acquire) >= revision
    }

    /// Makes a change whose predecessor for the same address has been made. No packet before
    /// `settled` is in flight.
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
        if self.forgets_marks {
            return;
        }
        for marks in &self.marks {
            // Published by the Release store of `applied`.
            marks[usize::from(address)].store(revision, Ordering::Relaxed);
        }
    }

    /// Whether something cached at revision `at` is obsolete for a worker.
    #[inline]
    pub(super) fn is_obsolete(&self, worker: usize, data: &Data, at: u64) -> bool {
        let marks = &self.marks[worker];
        // `has` has acquired all marks that matter. A later one may be seen or not: who sees it goes
        // to the table, which has the same answer.
        let mark = |address: Address| marks[usize::from(address)].load(Ordering::Relaxed);
        mark(data.source) > at || mark(data.destination) > at
    }

    /// The verdict as of revision `at`, by which all changes up to it have been made. The two locks
    /// are taken one after the other, for what was as of `at` changes no more.
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
    /// The changes made by then, the last one first.
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
