//! Messages to the service manager, as defined by sd_notify(3): datagrams to the socket in
//! `NOTIFY_SOCKET`.
//!
//! | message | when |
//! |---|---|
//! | `READY=1` | everything is open and the run begins |
//! | `WATCHDOG=1` | three times per `WATCHDOG_USEC`, while all readers make progress or the run is stopping |
//! | `STOPPING=1` | a stop was requested |
//!
//! The attendant thread sends the last two. The socket is connected at the start of the program,
//! because the later user and the sandbox may forbid it; a connected socket keeps working.
//!
//! Invariant: the program does not wait for the manager. If the socket is full, a message is sent
//! again later. Without `NOTIFY_SOCKET` nothing is sent.

use std::ffi::OsString;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use ringtap_base::Clock;
use ringtap_terminal::console::print_message;

use crate::run::Run;

static MANAGER: OnceLock<Manager> = OnceLock::new();

/// The connection to the service manager.
struct Manager {
    socket: UnixDatagram,
    /// Interval of watchdog messages, if the manager requests them.
    every_ns: Option<u64>,
    clock: Clock,
    sent: Mutex<Sent>,
}

/// Messages sent so far.
#[derive(Default)]
struct Sent {
    begun: bool,
    /// The ready message, while it has not been sent.
    ready: Option<String>,
    stopping: bool,
    /// Time of the last watchdog message, and the rounds of the threads at that time.
    alive_ns: u64,
    rounds: Vec<u64>,
}

/// Connects to the service manager, if one started this program.
pub fn connect() {
    let Some(name) = std::env::var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty()) else {
        return;
    };
    match open(&name) {
        Ok(socket) => {
            let (clock, sent) = (Clock::start(), Mutex::default());
            MANAGER.get_or_init(|| Manager { socket, every_ns: every_ns(), clock, sent });
        }
        Err(error) => {
            let name = name.display();
            print_message(
                "warning",
                &format!("NOTIFY_SOCKET={name}: {error}; the service manager gets no messages"),
            );
        }
    }
}

/// Whether a service manager started this program.
pub fn is_service() -> bool {
    MANAGER.get().is_some()
}

/// Sends the ready message; `status` describes the run.
pub fn ready(status: &str) {
    let Some(manager) = MANAGER.get() else { return };
    let message = format!("READY=1\nSTATUS={}", status.replace('\n', " "));
    let mut sent = manager.sent();
    sent.begun = true;
    if !manager.send(&message) {
        sent.ready = Some(message);
    }
}

/// Sends pending, stop and watchdog messages that are due. The attendant thread calls it regularly.
pub fn attend(run: &dyn Run) {
    let Some(manager) = MANAGER.get() else { return };
    let mut sent = manager.sent();
    if !sent.begun {
        return;
    }
    sent.ready.take_if(|message| manager.send(message));
    if run.is_stopped() && !sent.stopping {
        sent.stopping = manager.send("STOPPING=1");
    }
    let now_ns = manager.clock.now_ns();
    let is_due = |every_ns| now_ns.saturating_sub(sent.alive_ns) >= every_ns;
    if !manager.every_ns.is_some_and(is_due) {
        return;
    }
    let rounds = run.rounds();
    // After a stop, readers make no progress while outputs are flushed.
    if (run.is_stopped() || progressed(&sent.rounds, &rounds)) && manager.send("WATCHDOG=1") {
        (sent.alive_ns, sent.rounds) = (now_ns, rounds);
    }
}

/// Whether each active reader has made progress.
fn progressed(before: &[u64], now: &[u64]) -> bool {
    before.iter().zip(now).all(|(&before, &now)| before == 0 || now > before)
}

impl Manager {
    /// Returns false if the socket is full. Other errors are ignored: the run does not depend on
    /// the manager.
    fn send(&self, message: &str) -> bool {
        let result = self.socket.send(message.as_bytes());
        !result.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    fn sent(&self) -> MutexGuard<'_, Sent> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Connects to a path, or to an abstract socket whose name follows an `@`.
fn open(name: &OsString) -> io::Result<UnixDatagram> {
    let address = match name.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        [b'/', ..] => SocketAddr::from_pathname(name)?,
        _ => {
            let why = "invalid socket: use an absolute path, or @NAME for an abstract socket";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
    };
    let socket = UnixDatagram::unbound()?;
    socket.connect_addr(&address)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// A third of the manager's watchdog timeout, if there is one.
fn every_ns() -> Option<u64> {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let is_other = number("WATCHDOG_PID").is_some_and(|pid| pid != u64::from(std::process::id()));
    let usec = number("WATCHDOG_USEC").filter(|&usec| usec > 0 && !is_other)?;
    Some(usec.saturating_mul(1_000) / 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_active_readers_must_have_made_progress() {
        assert!(progressed(&[], &[0, 0]), "no counters yet");
        assert!(progressed(&[0, 7, 0], &[0, 8, 3]), "a reader that has not begun is ignored");
        assert!(!progressed(&[1, 7], &[2, 7]), "the second one hangs");
    }
}
