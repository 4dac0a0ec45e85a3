//! The socket by which a filter is changed while it runs.
//!
//! ```text
//! socket (0600) ─▶ complete questions, one after the other ─▶ Orders ─▶ the board ─▶ all workers have passed ─▶ ok
//! ```
//!
//! Since questions are carried out one after the other, their order is that of the revisions. While rules are built,
//! workers go on by the old ones.
//!
//! Invariant: nothing that comes by the socket ends the run. A client that keeps silent, or sends or reads slowly, delays no
//! other (see [`crate::server`]).

use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::Duration;

use ringtap_filter::run::{Done, Orders, bans_line};

use super::message::{BYTES_PER_SECOND, LOOK_EVERY, Message, TEXT_MOST};
use crate::listener::{SocketFile, listen};
use crate::server::{After, Limits, Next, Protocol, Refusal, Server};
use ringtap_base::Clock;

/// How long the workers may take to pass a revision, or to tell what they counted.
const WORKERS_NS: u64 = 10_000_000_000;

/// How often it is seen whether they have.
const ASK_EVERY: Duration = Duration::from_micros(50);

/// What clients may use. A connection is closed after one answer.
const LIMITS: Limits = Limits {
    connections: 64,
    request: Duration::from_secs(5),
    response: Duration::from_secs(5),
    idle: Duration::ZERO,
    bytes_per_second: BYTES_PER_SECOND,
    held_bytes: TEXT_MOST + (1 << 20),
};

/// The listening socket. Dropping it removes its file.
pub(super) struct Socket {
    server: Server<UnixListener>,
    _file: SocketFile,
}

impl Socket {
    /// Only the user whose filter it is may connect.
    pub(super) fn open(path: &Path) -> anyhow::Result<Self> {
        let (listener, file) = listen(path, 0o600)?;
        Ok(Self { server: Server::new(listener, LIMITS), _file: file })
    }

    /// Serves pending requests; waits briefly if there are none.
    pub(super) fn attend(&mut self, orders: Orders<'_>) {
        self.server.turn(LOOK_EVERY, None, &mut Control(orders));
    }
}

/// A question, its answer, the end.
struct Control<'a>(Orders<'a>);

impl Protocol for Control<'_> {
    fn read(&mut self, received: &mut Vec<u8>, _: bool) -> Next {
        let answer = match Message::take(received) {
            Ok(None) => return Next::More,
            Ok(Some(message)) => match carry_out(&message, self.0) {
                Ok(text) => Message::new("ok", text),
                Err(error) => Message::new("error", error),
            },
            Err(error) => Message::new("error", format!("that was no question: {error}")),
        };
        Next::Answer(answer.to_bytes(), After::Close)
    }

    fn refuse(&mut self, refusal: Refusal) -> Vec<u8> {
        let why = match refusal {
            Refusal::Late => "the question was not complete in time; ask again",
            Refusal::Full => "too many long questions at a time; ask again later",
        };
        Message::new("error", why).to_bytes()
    }
}

/// Carries out what is asked. A change is said to be made when all workers have passed it.
fn carry_out(message: &Message, orders: Orders<'_>) -> Result<String, String> {
    let done = orders.carry_out(&message.word, &message.text).map_err(|error| error.to_string())?;
    match done {
        Done::Said(text) => Ok(text),
        Done::Made { revision, bans } => {
            let passed = wait(|| (orders.board.passed() >= revision).then_some(()));
            let made = || format!("revision {revision}\n{}", bans_line(&bans));
            passed.map(|()| made()).ok_or_else(|| {
                format!(
                    "revision {revision} is made, but after 10 s not all workers have taken it: frames that older rules \
                     let pass may still leave"
                )
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
