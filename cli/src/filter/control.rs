//! The socket by which a filter is changed while it runs.
//!
//! ```text
//! socket (0600) ─▶ one question at a time, in the order they come ─▶ Orders ─▶ the board ─▶ all workers have passed ─▶ ok
//! ```
//!
//! Since questions are carried out one after the other, their order is that of the revisions. While rules are built,
//! workers go on by the old ones.
//!
//! Invariant: nothing that comes by the socket ends the run, and nobody who keeps silent keeps others waiting for long.

use std::io::{self, ErrorKind};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use ringtap_plan::Watch;
use ringtap_plan::filter::{Done, Orders};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::message::{LOOK_EVERY, Message, patience};
use crate::clock::Clock;
use crate::listener::{SocketFile, listen};

/// How long the workers may take to pass a revision, or to tell what they counted.
const WORKERS_NS: u64 = 10_000_000_000;

/// How often it is seen whether they have.
const ASK_EVERY: Duration = Duration::from_micros(50);

/// How often a wait for questions ends to look around.
const WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// See the module. Dropping it removes its file.
pub(super) struct Socket {
    listener: UnixListener,
    _file: SocketFile,
}

impl Socket {
    /// Only the user whose filter it is may connect.
    pub(super) fn open(path: &Path) -> anyhow::Result<Self> {
        let (listener, file) = listen(path, 0o600)?;
        Ok(Self { listener, _file: file })
    }

    /// Answers a question if one comes within [`WAIT`].
    pub(super) fn attend(&self, orders: Orders<'_>, watch: &Watch) {
        let mut ready = [PollFd::new(&self.listener, PollFlags::IN)];
        if !matches!(poll(&mut ready, Some(&WAIT)), Ok(1..)) {
            return;
        }
        if let Ok((stream, _)) = self.listener.accept() {
            // Who does not want the answer has gone.
            let _ = answer(&stream, orders, watch);
        }
    }
}

fn answer(stream: &UnixStream, orders: Orders<'_>, watch: &Watch) -> io::Result<()> {
    stream.set_read_timeout(Some(LOOK_EVERY))?;
    stream.set_write_timeout(patience())?;
    let answer = match Message::read(stream, patience(), || watch.stopped()) {
        Ok(message) => match carry_out(&message, orders) {
            Ok(text) => Message::new("ok", text),
            Err(error) => Message::new("error", error),
        },
        Err(error) if error.kind() == ErrorKind::InvalidData => {
            Message::new("error", format!("that was no question: {error}"))
        }
        Err(error) => return Err(error),
    };
    answer.write(stream)
}

/// Carries out what is asked. A change is said to be made when all workers have passed it.
fn carry_out(message: &Message, orders: Orders<'_>) -> Result<String, String> {
    let done = orders.carry_out(&message.word, &message.text).map_err(|error| error.to_string())?;
    match done {
        Done::Said(text) => Ok(text),
        Done::Made(revision) => {
            let passed = wait(|| (orders.board.passed() >= revision).then_some(()));
            passed.map(|()| format!("revision {revision}\n")).ok_or_else(|| {
                format!("revision {revision} is made, but not all workers have passed it yet")
            })
        }
        Done::Counters { question, list } => {
            let standing = wait(|| orders.census.answer(question));
            let standing = standing.ok_or("the workers do not tell what they counted")?;
            Ok(orders.say(&standing, list))
        }
    }
}

fn wait<T>(ready: impl Fn() -> Option<T>) -> Option<T> {
    let clock = Clock::start();
    loop {
        if let Some(ready) = ready() {
            return Some(ready);
        }
        if clock.now_ns() > WORKERS_NS {
            return None;
        }
        std::thread::sleep(ASK_EVERY);
    }
}
