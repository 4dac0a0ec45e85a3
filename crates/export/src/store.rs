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

/// How often a regular file is tried again once the run ends, if it did not fail before: a disk may fail once, and a full
/// one is not waited for.
const LAST_TRIES: u32 = 3;

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
    let (mut pause, mut last) = (PAUSE_MIN, LastTries::new(shared));
    loop {
        match write_on(store, &mut octets, shared) {
            Err(Reason::Failed) if !shared.is_ending() && !shared.over() => {
                shared.pause(pause);
                pause = (pause * 2).min(PAUSE_MAX);
            }
            Err(Reason::Failed) if store.is_regular() && last.wait(shared) => {}
            done => return done.map_err(Unwritten::Lost),
        }
        if retry == Retry::UntilRenewal && store.is_regular() && shared.take_renewal() {
            return Err(Unwritten::Renewal);
        }
    }
}

/// Finishes a file, by `finish`. Once the run ends, tries it again after a failure.
pub(crate) fn finish(
    shared: &Shared,
    mut finish: impl FnMut() -> io::Result<()>,
) -> Result<(), Reason> {
    let mut last = LastTries::new(shared);
    let mut finished = finish();
    while let Err(error) = &finished {
        shared.fails(error);
        if !shared.is_ending() || !last.wait(shared) {
            return Err(Reason::Failed);
        }
        finished = finish();
        if finished.is_ok() {
            shared.works();
        }
    }
    Ok(())
}

/// A second has passed. `failed`: at the second before, the store failed.
pub(crate) fn tick(store: &mut dyn Store, failed: &mut bool, shared: &Shared) {
    match store.tick() {
        Err(error) => {
            shared.fails(&error);
            *failed = true;
        }
        Ok(()) if std::mem::take(failed) => shared.works(),
        Ok(()) => {}
    }
}

/// The tries that are left once the run ends.
struct LastTries(u32);

impl LastTries {
    fn new(shared: &Shared) -> Self {
        Self(if shared.is_failing() { 0 } else { LAST_TRIES })
    }

    /// Pauses before the next one. Returns false if none is left.
    fn wait(&mut self, shared: &Shared) -> bool {
        let is_left = self.0 > 0 && !shared.over();
        if is_left {
            self.0 -= 1;
            shared.pause(PAUSE_MIN);
        }
        is_left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stores the written octets; these attempts fail.
    struct Notes {
        regular: bool,
        attempts: u32,
        failing: std::ops::Range<u32>,
        taken: Vec<Vec<u8>>,
    }

    impl Notes {
        fn new(regular: bool, failing: std::ops::Range<u32>) -> Self {
            Self { regular, attempts: 0, failing, taken: Vec::new() }
        }

        fn attempt(&mut self) -> io::Result<()> {
            self.attempts += 1;
            if self.failing.contains(&self.attempts) {
                return Err(ErrorKind::StorageFull.into());
            }
            Ok(())
        }
    }

    impl Store for Notes {
        fn write(&mut self, octets: &[u8]) -> io::Result<()> {
            self.attempt()?;
            self.taken.push(octets.to_vec());
            Ok(())
        }

        fn finish(&mut self) -> io::Result<()> {
            self.attempt()
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
            let mut store = Notes::new(regular, 2..3);
            let shared = Shared::new("test".into(), wait_policy(&store), true);
            assert_eq!(persist(&mut store, &octets, &shared, Retry::UntilEnd), Ok(()));
            assert_eq!(store.taken.concat(), octets);
            assert!(store.taken.iter().map(Vec::len).eq(pieces.iter().copied()));
        }
    }

    #[test]
    fn at_the_end_a_file_is_tried_again_a_few_times_and_a_pipe_is_not() {
        let most = LAST_TRIES + 1;
        for (regular, failing, attempts, works) in
            [(true, most, most, true), (true, most + 1, most, false), (false, 2, 1, false)]
        {
            let new = || {
                let store = Notes::new(regular, 1..failing);
                let shared = Shared::new("test".into(), wait_policy(&store), false);
                shared.end();
                (store, shared)
            };
            let (mut store, shared) = new();
            let written = persist(&mut store, b"line", &shared, Retry::UntilEnd);
            assert_eq!((written.is_ok(), store.attempts), (works, attempts));
            assert_eq!(shared.is_failing(), !works);
            if !works {
                // Further octets are tried once.
                store.failing = 1..u32::MAX;
                assert!(persist(&mut store, b"next", &shared, Retry::UntilEnd).is_err());
                assert_eq!(store.attempts, attempts + 1);
            }
            if regular {
                let (mut store, shared) = new();
                let finished = finish(&shared, || store.finish());
                assert_eq!((finished.is_ok(), store.attempts), (works, attempts));
                assert_eq!(shared.is_failing(), !works);
            }
        }
        // Before the end, a file that cannot be finished is continued.
        let mut store = Notes::new(true, 1..2);
        let shared = Shared::new("test".into(), wait_policy(&store), false);
        assert_eq!(finish(&shared, || store.finish()), Err(Reason::Failed));
        assert_eq!((store.attempts, shared.is_failing()), (1, true));
    }
}
