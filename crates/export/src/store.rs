//! Files, pipes and devices for records, and the handling of write errors.

use std::io::{self, ErrorKind};
use std::time::Duration;

use crate::Reason;
use crate::shared::{Shared, WaitPolicy};
use crate::space::Space;
use crate::sums::Sums;

/// Pauses between attempts to write; they double.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// Bytes of one write to a pipe: a page, because a reader frees one page of a pipe after another.
const PIECE: usize = 4096;

/// The target of a file's octets. The implementation chooses and changes names.
pub trait Store: Send {
    /// Appends all of `octets`. Opens the file if it is not open.
    ///
    /// # Errors
    /// The error of the system. A regular file is then as long as before, so the same octets can be written again.
    fn write(&mut self, octets: &[u8]) -> io::Result<()>;

    /// The file is complete: a regular file gets its final name. The next [`write`](Self::write) starts another one.
    ///
    /// # Errors
    /// The error of the system; the file stays open.
    fn finish(&mut self) -> io::Result<()>;

    /// The files from now on are of the period that begins then, in seconds since 1970; also the current one, if nothing
    /// was written to it. A file that is appended to line by line ends with its period; others are finished before.
    fn begins(&mut self, _seconds: u64) {}

    /// Flow records with these sums were written, since the last call, to the current file.
    fn rows(&mut self, _sums: &Sums) {}

    /// Replaces the contents of the current file, all at once.
    ///
    /// # Errors
    /// The error of the system; the file is as before.
    fn rewrite(&mut self, _octets: &[u8]) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    /// Called once a second. The time of a file that is appended to line by line may be over.
    ///
    /// # Errors
    /// The error of the system; the file stays open.
    fn tick(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// The last call for a file that is appended to line by line.
    ///
    /// # Errors
    /// The error of the system.
    fn close(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Called once a second, and checks the space of the file system.
    fn check_space(&mut self) {}

    /// The number of old files that were removed.
    fn removed(&self) -> u64 {
        0
    }

    /// The space of its file system, as last checked; `None` if it has none.
    fn space(&self) -> Option<Space> {
        None
    }

    /// Returns true for a regular file, which can be finished and started again.
    fn is_regular(&self) -> bool;

    /// Returns true if the reader may close it before the end without a failure.
    fn may_abandon(&self) -> bool;
}

/// How long the end of a run waits for a store.
pub(crate) fn wait_policy(store: &dyn Store) -> WaitPolicy {
    if store.is_regular() { WaitPolicy::File } else { WaitPolicy::Pipe }
}

/// Why octets were not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unwritten {
    /// The octets are lost, for this reason.
    Lost(Reason),
    /// Another file must be started first: nothing could be written to this one. Only with [`Retry::UntilRenewal`].
    Renewal,
}

/// How long a failed write is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retry {
    /// Until the run ends.
    #[cfg_attr(not(any(test, feature = "parquet")), expect(dead_code, reason = "of Parquet alone"))]
    UntilEnd,
    /// Or until another file is to be started.
    UntilRenewal,
}

/// Writes `octets` once.
pub(crate) fn write_once(
    store: &mut dyn Store,
    mut octets: &[u8],
    shared: &Shared,
) -> Result<(), Reason> {
    write_on(store, &mut octets, shared)
}

/// Writes `rest`, until it is empty or a write fails.
fn write_on(store: &mut dyn Store, rest: &mut &[u8], shared: &Shared) -> Result<(), Reason> {
    let piece = if store.is_regular() { usize::MAX } else { PIECE };
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(piece.min(rest.len()));
        match store.write(piece) {
            Ok(()) => {
                shared.works();
                *rest = after;
            }
            Err(error) if error.kind() == ErrorKind::BrokenPipe && store.may_abandon() => {
                return Err(Reason::ReaderGone);
            }
            Err(error) => {
                shared.note_store(store.removed(), store.space());
                shared.fails(&error);
                return Err(Reason::Failed);
            }
        }
    }
    Ok(())
}

/// Writes `octets`. After a failure, tries the rest again, with growing pauses.
pub(crate) fn persist(
    store: &mut dyn Store,
    mut octets: &[u8],
    shared: &Shared,
    retry: Retry,
) -> Result<(), Unwritten> {
    let mut pause = PAUSE_MIN;
    loop {
        match write_on(store, &mut octets, shared) {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Stores the written octets; the second write fails.
    struct Notes {
        regular: bool,
        attempts: usize,
        taken: Vec<Vec<u8>>,
    }

    impl Store for Notes {
        fn write(&mut self, octets: &[u8]) -> io::Result<()> {
            self.attempts += 1;
            if self.attempts == 2 {
                return Err(ErrorKind::StorageFull.into());
            }
            self.taken.push(octets.to_vec());
            Ok(())
        }

        fn finish(&mut self) -> io::Result<()> {
            Ok(())
        }

        fn is_regular(&self) -> bool {
            self.regular
        }

        fn may_abandon(&self) -> bool {
            false
        }
    }

    #[test]
    fn a_pipe_is_written_page_by_page_and_nothing_twice() {
        let octets: Vec<u8> = (0..10_000).map(|number: u32| number as u8).collect();
        for (regular, pieces) in [(false, &[4096, 4096, 1808][..]), (true, &[10_000])] {
            let mut store = Notes { regular, attempts: 0, taken: Vec::new() };
            let shared = Shared::new("test".into(), wait_policy(&store), true);
            assert_eq!(persist(&mut store, &octets, &shared, Retry::UntilEnd), Ok(()));
            assert_eq!(store.taken.concat(), octets);
            assert!(store.taken.iter().map(Vec::len).eq(pieces.iter().copied()));
        }
    }
}
