//! Signals of a run, handled by an attendant thread. No signal waits for an output.
//!
//! INT and TERM request the end of the run, which still prints its report; a second one exits at once. Only interrupts
//! count towards the second one: if a run stops for another reason (`--duration`, a removed interface), the first
//! interrupt still yields the report.

use std::io;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Thread;
use std::time::Duration;

use ringtap_base::Clock;
use ringtap_terminal::console::{note, print_message};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::interrupt::Interrupts;
use crate::run::Run;
use crate::{notify, privileges};

/// The polling interval, and the longest delay of the second interrupt.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// How long an exit waits until stderr has taken its message.
const SAID_WITHIN: Duration = Duration::from_millis(500);

/// The exit code that shells expect after an interrupt.
pub const INTERRUPTED: u8 = 130;

/// Printed at a first interrupt after the run was stopped otherwise.
pub const STOPPING: &str = "already stopping; another interrupt exits at once, without a report";

/// Runs `work` while a thread handles INT and TERM, and calls `tick` at each poll. `work` must end when `run` is
/// stopped. A stop is requested after `duration`.
///
/// # Errors
/// The signals cannot be handled.
pub fn stoppable<T>(
    run: &dyn Run,
    duration: Option<Duration>,
    tick: impl Fn() + Sync,
    work: impl FnOnce() -> T,
) -> io::Result<T> {
    let clock = Clock::start();
    let interrupts = Interrupts::default();
    let on_signal = |_| {
        if interrupts.is_repeated() {
            exit_at_once()
        }
        if run.is_stopped() {
            note(STOPPING);
        }
        run.stop();
    };
    let tick = || {
        if duration.is_some_and(|duration| u128::from(clock.now_ns()) >= duration.as_nanos()) {
            run.stop();
        }
        notify::attend(run);
        tick();
    };
    with_attendant(Signals::new([SIGINT, SIGTERM])?, on_signal, tick, work)
}

/// The exit code of work that a stop left without a result: prints why.
///
/// # Errors
/// That of the work, if no stop was requested.
pub fn or_interrupted(
    is_stopped: bool,
    result: anyhow::Result<ExitCode>,
) -> anyhow::Result<ExitCode> {
    match result {
        Err(error) if is_stopped => {
            print_message("error", &format!("{error:#}"));
            Ok(ExitCode::from(INTERRUPTED))
        }
        result => result,
    }
}

/// Runs `work` while a thread calls `on_signal` for each signal and `tick` at each poll.
///
/// # Errors
/// The thread cannot be started.
pub fn with_attendant<T>(
    mut signals: Signals,
    on_signal: impl Fn(i32) + Sync,
    tick: impl Fn() + Sync,
    work: impl FnOnce() -> T,
) -> io::Result<T> {
    let done = AtomicBool::new(false);
    let attend = || {
        let mut follows = false;
        // Relaxed: the flag orders no other data.
        while !done.load(Ordering::Relaxed) {
            // Commands drop their capabilities when interfaces are open, which may be later.
            follows = follows || privileges::follow();
            signals.pending().for_each(&on_signal);
            tick();
            std::thread::park_timeout(POLL_INTERVAL);
        }
    };
    std::thread::scope(|scope| {
        let named = |name: &str| std::thread::Builder::new().name(name.into());
        let attendant = named("attendant").spawn_scoped(scope, attend)?.thread().clone();
        // Ends the thread however the work ends, also by a panic.
        let _stop = StopOnDrop { done: &done, thread: attendant };
        Ok(work())
    })
}

/// Ends the attendant thread when dropped.
struct StopOnDrop<'a> {
    done: &'a AtomicBool,
    thread: Thread,
}

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
        self.thread.unpark();
    }
}

/// Prints that there is no report, and exits; also if stderr is a pipe or terminal that is not read.
pub fn exit_at_once() -> ! {
    let (said, is_said) = std::sync::mpsc::sync_channel(1);
    let say = move || {
        print_message("error", "interrupted twice: no report");
        let _ = said.send(());
    };
    if std::thread::Builder::new().spawn(say).is_ok() {
        let _ = is_said.recv_timeout(SAID_WITHIN);
    }
    std::process::exit(INTERRUPTED.into())
}
