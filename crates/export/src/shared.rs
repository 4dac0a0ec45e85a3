//! The books of an exporter, which several threads write, and what they tell one another.

use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard};

use crate::{Reason, Summary, Tally};

/// What the exporting thread has in common with the others.
#[derive(Default)]
pub(crate) struct Shared {
    books: Mutex<Books>,
    /// The run is over: [`LINGER`](crate::LINGER) begins.
    pub(crate) ending: AtomicBool,
    pub(crate) renew: AtomicBool,
}

#[derive(Default)]
pub(crate) struct Books {
    pub(crate) summary: Summary,
    /// Written by the feed when it goes.
    pub(crate) offered: Tally,
}

impl Shared {
    pub(crate) fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(|poison| poison.into_inner())
    }
}

impl Books {
    /// The thread cannot tell any more what it did not send: the rest.
    pub(crate) fn abandon(&mut self, why: &str) {
        let mut rest = self.offered;
        rest -= self.summary.accounted();
        self.summary.lose(Reason::TooLate, rest);
        self.summary.failure.get_or_insert_with(|| why.to_owned());
    }
}
