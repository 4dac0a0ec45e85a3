//! The control socket of a running filter: executes the requests of `ringtap filter ctl`.
//!
//! ```text
//! socket (0600) ─▶ requests, one at a time ─▶ Requests ─▶ publisher ─▶ all workers use it ─▶ ok
//! ```
//!
//! Requests are executed one after the other, so their order is that of the revisions. While rules
//! are built, workers continue with the old ones.
//!
//! Invariant: no request ends the run. An idle or slow client delays no other (see
//! [`ringtap_serve::Server`]).

use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::Duration;

use ringtap_filter::run::{Done, Requests, bans_line};

use super::message::{BYTES_PER_SECOND, Message, POLL_INTERVAL, TEXT_MOST};
use ringtap_base::Clock;
use ringtap_serve::{After, Limits, Next, Protocol, Refusal, Server};
use ringtap_serve::{SocketFile, listen};

/// Longest wait until all workers use a revision, or report their counters.
const WORKERS_NS: u64 = 10_000_000_000;

/// Interval at which that wait checks its condition.
const CHECK_INTERVAL: Duration = Duration::from_micros(50);

/// Limits of clients. A connection is closed after one answer.
const LIMITS: Limits = Limits {
    connections: 64,
    requests: 1,
    followers: 0,
    request: Duration::from_secs(5),
    response: Duration::from_secs(5),
    idle: Duration::ZERO,
    bytes_per_second: BYTES_PER_SECOND,
    buffered_bytes: TEXT_MOST + (1 << 20),
};

/// The listening socket. Dropping it removes its file.
pub(super) struct Socket {
    server: Server<UnixListener>,
    _file: SocketFile,
}

impl Socket {
    /// Listens at `path`. Only the filter's user may connect.
    pub(super) fn open(path: &Path) -> anyhow::Result<Self> {
        let (listener, file) = listen(path, 0o600)?;
        Ok(Self { server: Server::new(listener, LIMITS), _file: file })
    }

    /// Serves pending requests; waits up to [`POLL_INTERVAL`] if there are none.
    pub(super) fn serve(&mut self, requests: Requests<'_>) {
        self.server.turn(POLL_INTERVAL, None, &mut Control(requests));
    }
}

/// One request, one answer.
struct Control<'a>(Requests<'a>);

impl Protocol for Control<'_> {
    fn read(&mut self, received: &mut Vec<u8>, _: bool) -> Next {
        let answer = match Message::take(received) {
            Ok(None) => return Next::More,
            Ok(Some(message)) => match execute(&message, self.0) {
                Ok(text) => Message::new("ok", text),
                Err(error) => Message::new("error", error),
            },
            Err(error) => Message::new("error", format!("invalid request: {error}")),
        };
        Next::Answer(answer.to_bytes(), After::Close)
    }

    fn refuse(&mut self, refusal: Refusal) -> Vec<u8> {
        let why = match refusal {
            Refusal::Late => "the request was not complete in time; try again",
            Refusal::Full => "too many long requests at a time; try again later",
        };
        Message::new("error", why).to_bytes()
    }
}

/// Executes a request. A change succeeds when all workers use its revision.
fn execute(message: &Message, requests: Requests<'_>) -> Result<String, String> {
    let done = requests.execute(&message.word, &message.text).map_err(|error| error.to_string())?;
    match done {
        Done::Text(text) => Ok(text),
        Done::Changed { revision, bans } => {
            let used = wait(|| (requests.publisher.passed() >= revision).then_some(()));
            let answer = || format!("revision {revision}\n{}", bans_line(&bans));
            used.map(|()| answer()).ok_or_else(|| {
                format!(
                    "revision {revision} is not used by all workers after 10 s: frames that older rules \
                     let pass may still leave"
                )
            })
        }
        Done::Counters { request, list } => {
            let stats = wait(|| requests.snapshot.reply(request));
            let stats = stats.ok_or("the workers do not report their counters")?;
            Ok(requests.format_stats(&stats, list))
        }
    }
}

/// Polls `ready` until it returns a value, at most [`WORKERS_NS`].
fn wait<T>(ready: impl Fn() -> Option<T>) -> Option<T> {
    let clock = Clock::start();
    loop {
        if let Some(ready) = ready() {
            return Some(ready);
        }
        if clock.now_ns() > WORKERS_NS {
            return None;
        }
        std::thread::sleep(CHECK_INTERVAL);
    }
}
