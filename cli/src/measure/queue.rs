//! Texts on their way to an output, and the thread that writes them.
//!
//! ```text
//!  merger ─ put ─▶ texts that wait: at most 4 MiB ─▶ thread ─▶ stdout
//! ```
//!
//! Invariants: texts are written in their order. Over files the sender waits for room. On interfaces it never waits: without
//! room a text is lost, and counted if it is an interval.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::Duration;

use ringtap_engine::Watch;

/// Most bytes of texts that wait; a longer one waits alone.
const ROOM_BYTES: usize = 4 << 20;
/// The stack of the thread.
const STACK_BYTES: usize = 256 << 10;
/// Memory of a queue and its thread.
pub(super) const MEMORY_BYTES: u64 = (ROOM_BYTES + STACK_BYTES) as u64;
/// Bytes written at once.
const PIECE_BYTES: usize = 64 << 10;
/// How long the end waits for an output that takes nothing: in runs over files only if they were stopped.
const LINGER: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 5 });
/// A step of a wait, after which its end is checked.
const STEP: Duration = Duration::from_millis(50);

/// A text, and whether it is an interval.
struct Text(String, bool);

#[derive(Default)]
struct State {
    /// The first one is being written.
    texts: VecDeque<Arc<Text>>,
    bytes: usize,
    /// Pieces written so far.
    pieces: u64,
    /// Intervals without room.
    lost: u64,
    has_ended: bool,
    /// The output has taken nothing for [`LINGER`].
    is_stuck: bool,
    failure: Option<io::Error>,
}

impl State {
    fn has_room(&self, bytes: usize) -> bool {
        self.texts.is_empty() || self.bytes + bytes <= ROOM_BYTES
    }
}

/// The queue of one output.
pub(super) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
    is_live: bool,
    watch: &'static Watch,
}

impl Queue {
    /// Starts the thread, which stops the run if the output fails.
    pub(super) fn start(
        mut out: impl Write + Send + 'static,
        is_live: bool,
        watch: &'static Watch,
    ) -> io::Result<Arc<Self>> {
        let (state, changed) = (Mutex::default(), Condvar::new());
        let own = Arc::new(Self { state, changed, is_live, watch });
        let queue = Arc::clone(&own);
        let thread = Builder::new().name("stdout".into()).stack_size(STACK_BYTES);
        thread.spawn(move || {
            if let Err(error) = queue.write_to(&mut out) {
                queue.lock().failure = Some(error);
                watch.stop();
                queue.changed.notify_all();
            }
        })?;
        Ok(own)
    }

    /// Adds a text, and says whether it is an interval.
    pub(super) fn put(&self, text: String, is_interval: bool) {
        let (bytes, mut state) = (text.len(), self.lock());
        if !self.is_live {
            state = self.wait(state, |state| state.has_room(bytes));
        }
        if state.failure.is_some() {
            return;
        }
        if !state.has_room(bytes) {
            state.lost += u64::from(is_interval);
            return;
        }
        state.bytes += bytes;
        state.texts.push_back(Arc::new(Text(text, is_interval)));
        self.changed.notify_all();
    }

    /// Waits until all texts are written. Returns the number of intervals that were not.
    ///
    /// # Errors
    /// That of the output.
    pub(super) fn end(&self) -> io::Result<u64> {
        let mut state = self.lock();
        state.has_ended = true;
        self.changed.notify_all();
        state = self.wait(state, |state| state.texts.is_empty());
        let waiting = state.texts.iter().filter(|text| text.1).count() as u64;
        state.failure.take().map_or(Ok(state.lost + waiting), Err)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_to(&self, out: &mut impl Write) -> io::Result<()> {
        let mut state = self.lock();
        loop {
            let Some(text) = state.texts.front().cloned() else {
                if state.has_ended {
                    return Ok(());
                }
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            drop(state);
            for piece in text.0.as_bytes().chunks(PIECE_BYTES) {
                out.write_all(piece)?;
                out.flush()?;
                self.lock().pieces += 1;
            }
            state = self.lock();
            state.texts.pop_front();
            state.bytes -= text.0.len();
            self.changed.notify_all();
        }
    }

    /// Waits until this is so, or the output has failed or is stuck.
    fn wait<'a>(
        &self,
        mut state: MutexGuard<'a, State>,
        is_so: impl Fn(&State) -> bool,
    ) -> MutexGuard<'a, State> {
        let (mut pieces, mut idle) = (state.pieces, Duration::ZERO);
        while !is_so(&state) && state.failure.is_none() && !state.is_stuck {
            let waited = self.changed.wait_timeout(state, STEP);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            if state.pieces != pieces || !(self.is_live || self.watch.stopped()) {
                (pieces, idle) = (state.pieces, Duration::ZERO);
            } else {
                idle += STEP;
            }
            state.is_stuck |= idle >= LINGER;
        }
        state
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

    use super::*;

    type Written = Arc<Mutex<Vec<u8>>>;

    /// Takes a piece only when it may.
    struct Slow(Receiver<()>, Written);

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.recv().map_err(|_| io::ErrorKind::BrokenPipe)?;
            self.1.lock().unwrap().extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn started(is_live: bool) -> (Arc<Queue>, SyncSender<()>, Written, &'static Watch) {
        let watch: &'static Watch = Box::leak(Box::<Watch>::default());
        let ((may, waits), written) = (sync_channel(1 << 12), Arc::default());
        let queue = Queue::start(Slow(waits, Arc::clone(&written)), is_live, watch).unwrap();
        (queue, may, written, watch)
    }

    /// A quarter of the room.
    fn quarter(byte: u8) -> String {
        String::from_utf8(vec![byte; ROOM_BYTES / 4]).unwrap()
    }

    #[test]
    fn a_reader_that_stops_loses_what_has_no_room_and_holds_no_sender() {
        let (queue, may, written, watch) = started(true);
        (b'a'..=b'g').for_each(|byte| queue.put(quarter(byte), true));
        assert_eq!(queue.lock().lost, 3, "room for four");
        (0..4 * ROOM_BYTES / 4 / PIECE_BYTES).for_each(|_| may.send(()).unwrap());
        while !queue.lock().texts.is_empty() {
            std::thread::yield_now();
        }
        queue.put("h".repeat(2 * ROOM_BYTES), true);
        queue.put("i".into(), true);
        queue.put("the end".into(), false);
        assert_eq!((queue.lock().lost, watch.stopped()), (4, false), "a long one is alone");
        (0..2 * ROOM_BYTES / PIECE_BYTES).for_each(|_| may.send(()).unwrap());
        assert_eq!(queue.end().unwrap(), 4);
        let expected = (b'a'..=b'd').map(quarter).collect::<String>() + &"h".repeat(2 * ROOM_BYTES);
        assert!(written.lock().unwrap()[..] == *expected.as_bytes());
    }

    #[test]
    fn over_files_the_sender_waits_and_nothing_is_lost() {
        let (queue, may, written, _) = started(false);
        let sender = Arc::clone(&queue);
        let sender = Builder::new().spawn(move || {
            (b'a'..=b'z').for_each(|byte| sender.put(quarter(byte), true));
        });
        let sender = sender.unwrap();
        (0..26 * ROOM_BYTES / 4 / PIECE_BYTES).for_each(|_| may.send(()).unwrap());
        sender.join().unwrap();
        assert_eq!(queue.end().unwrap(), 0);
        let expected = (b'a'..=b'z').map(quarter).collect::<String>();
        assert!(written.lock().unwrap()[..] == *expected.as_bytes());
    }

    #[test]
    fn what_is_not_written_at_the_end_is_counted() {
        // A run over files waits for its reader until it is stopped.
        for is_live in [true, false] {
            let (queue, may, written, watch) = started(is_live);
            ["a", "b", "c"].into_iter().for_each(|text| queue.put(text.into(), true));
            queue.put("the end".into(), false);
            may.send(()).unwrap();
            while queue.lock().texts.len() > 3 {
                std::thread::yield_now();
            }
            if !is_live {
                watch.stop();
            }
            assert_eq!(queue.end().unwrap(), 2);
            assert_eq!(written.lock().unwrap()[..], *b"a");
        }
    }

    #[test]
    fn a_reader_that_leaves_stops_the_run() {
        for is_live in [true, false] {
            let (queue, may, _, watch) = started(is_live);
            drop(may);
            // Nothing waits for an output that failed.
            (0..8).for_each(|_| queue.put(quarter(b'a'), true));
            assert_eq!(queue.end().unwrap_err().kind(), io::ErrorKind::BrokenPipe);
            assert!(watch.stopped());
        }
    }
}
