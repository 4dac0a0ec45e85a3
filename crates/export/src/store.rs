//! Files, pipes and devices that records are written to, and what happens when that fails.

use std::io::{self, ErrorKind};
use std::time::Duration;

use crate::Reason;
use crate::shared::{Patience, Shared};

/// Pauses between attempts to write; they double.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// Where a file's octets go. Names and renaming are the implementer's.
pub trait Store: Send {
    /// Appends all of `octets`. Opens the file if it is not open.
    ///
    /// # Errors
    /// What the system says. A regular file is then as long as before, so the same octets can be written again.
    fn write(&mut self, octets: &[u8]) -> io::Result<()>;

    /// The file is complete: a regular file gets its name. The next [`write`](Self::write) begins another one.
    ///
    /// # Errors
    /// What the system says; the file stays open.
    fn finish(&mut self) -> io::Result<()>;

    /// Whether it is a regular file, which can be finished and begun anew.
    fn is_regular(&self) -> bool;

    /// Whether a reader may go before the end without that being a failure.
    fn may_be_left(&self) -> bool;
}

/// How patient the end of a run is with a store.
pub(crate) fn patience(store: &dyn Store) -> Patience {
    if store.is_regular() { Patience::File } else { Patience::Pipe }
}

/// Why octets were not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unwritten {
    /// They are lost, for this reason.
    Lost(Reason),
    /// Another file shall be begun first: nothing could be written to this one. Only if [`Retry::UntilRenewal`].
    Renewal,
}

/// Until when a write that fails is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retry {
    /// Until the run ends.
    UntilEnd,
    /// Or until another file shall be begun.
    UntilRenewal,
}

/// Writes `octets` once.
pub(crate) fn write_once(
    store: &mut dyn Store,
    octets: &[u8],
    shared: &Shared,
) -> Result<(), Reason> {
    match store.write(octets) {
        Ok(()) => {
            shared.works();
            Ok(())
        }
        Err(error) if error.kind() == ErrorKind::BrokenPipe && store.may_be_left() => {
            Err(Reason::ReaderGone)
        }
        Err(error) => {
            shared.fails(&error);
            Err(Reason::Failed)
        }
    }
}

/// Writes `octets`. If that fails, tries again with growing pauses.
pub(crate) fn persist(
    store: &mut dyn Store,
    octets: &[u8],
    shared: &Shared,
    retry: Retry,
) -> Result<(), Unwritten> {
    let mut pause = PAUSE_MIN;
    loop {
        match write_once(store, octets, shared) {
            Err(Reason::Failed) if !shared.is_ending() && !shared.over() => {}
            done => return done.map_err(Unwritten::Lost),
        }
        shared.pause(pause);
        if retry == Retry::UntilRenewal && store.is_regular() && shared.take_renewal() {
            return Err(Unwritten::Renewal);
        }
        pause = (pause * 2).min(PAUSE_MAX);
    }
}
