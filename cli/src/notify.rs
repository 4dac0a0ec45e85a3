//! Messages to the service manager, as sd_notify(3) defines them: datagrams to the socket that `NOTIFY_SOCKET` names.
//!
//! | message | when |
//! |---|---|
//! | `READY=1` | everything is open and the run begins |
//! | `WATCHDOG=1` | three times in `WATCHDOG_USEC`, as long as the attendant and the readers of all queues make progress, and from its stop to its end |
//! | `STOPPING=1` | the run was asked to stop |
//!
//! The socket is connected when the program starts. Later, neither the user it runs as nor its sandbox may allow that; a
//! connected socket goes on working.
//!
//! Invariant: the program does not wait for the manager. What its socket has no room for is sent again later.
//! Without `NOTIFY_SOCKET` nothing here does anything.

use std::ffi::OsString;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use ringtap_engine::Watch;

use ringtap_base::Clock;
use ringtap_terminal::console::complain;

static MANAGER: OnceLock<Manager> = OnceLock::new();

struct Manager {
    socket: UnixDatagram,
    /// How often the watchdog wants to be told, if there is one.
    every_ns: Option<u64>,
    clock: Clock,
    told: Mutex<Told>,
}

/// What the manager has been told.
#[derive(Default)]
struct Told {
    begun: bool,
    /// That it has begun, if the manager could not be told yet.
    ready: Option<String>,
    stopping: bool,
    /// When the watchdog was told last, and what the readers had counted then.
    alive_ns: u64,
    beats: Vec<u64>,
}

/// Connects to the service manager, if one started this program.
pub(crate) fn connect() {
    let Some(name) = std::env::var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty()) else {
        return;
    };
    match open(&name) {
        Ok(socket) => {
            let (clock, told) = (Clock::start(), Mutex::default());
            MANAGER.get_or_init(|| Manager { socket, every_ns: every_ns(), clock, told });
        }
        Err(error) => {
            let name = name.display();
            complain(
                "warning",
                &format!("NOTIFY_SOCKET={name}: {error}; the service manager gets no messages"),
            );
        }
    }
}

/// Whether a service manager started this program.
pub(crate) fn is_service() -> bool {
    MANAGER.get().is_some()
}

/// Everything is open; `status` says what the run does.
pub(crate) fn ready(status: &str) {
    let Some(manager) = MANAGER.get() else { return };
    let message = format!("READY=1\nSTATUS={}", status.replace('\n', " "));
    let mut told = manager.told();
    told.begun = true;
    if !manager.send(&message) {
        told.ready = Some(message);
    }
}

/// To be called by the attendant now and then: says when the run stops, and that it is alive.
pub(crate) fn attend(watch: &Watch) {
    let Some(manager) = MANAGER.get() else { return };
    let mut told = manager.told();
    if !told.begun {
        return;
    }
    told.ready.take_if(|message| manager.send(message));
    if watch.stopped() && !told.stopping {
        told.stopping = manager.send("STOPPING=1");
    }
    let now_ns = manager.clock.now_ns();
    let is_due = |every_ns| now_ns.saturating_sub(told.alive_ns) >= every_ns;
    if !manager.every_ns.is_some_and(is_due) {
        return;
    }
    let beats = watch.beats.parts(usize::MAX);
    // What is flushed at the end is no reader's work any more.
    if (watch.stopped() || progressed(&told.beats, &beats)) && manager.send("WATCHDOG=1") {
        (told.alive_ns, told.beats) = (now_ns, beats);
    }
}

/// Whether each reader that has ever counted has counted on.
fn progressed(before: &[u64], now: &[u64]) -> bool {
    before.iter().zip(now).all(|(&before, &now)| before == 0 || now > before)
}

impl Manager {
    /// False if there is no room for it now.
    fn send(&self, message: &str) -> bool {
        // Of a manager that is gone nothing is to be expected later either, and it is no reason to stop.
        let sent = self.socket.send(message.as_bytes());
        !sent.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A path, or the name of an abstract socket behind an `@`.
fn open(name: &OsString) -> io::Result<UnixDatagram> {
    let address = match name.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        [b'/', ..] => SocketAddr::from_pathname(name)?,
        _ => {
            let why = "neither a path nor the name of an abstract socket, as in @name";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
    };
    let socket = UnixDatagram::unbound()?;
    socket.connect_addr(&address)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// A third of the time after which the manager takes this process for dead, if it watches it.
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
    fn every_reader_must_have_counted_on() {
        assert!(progressed(&[], &[0, 0]), "nothing is known yet");
        assert!(progressed(&[0, 7, 0], &[0, 8, 3]), "a reader that never began is none");
        assert!(!progressed(&[1, 7], &[2, 7]), "the second one hangs");
    }
}
