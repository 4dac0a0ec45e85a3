//! Signals and timers of a run, handled by an attendant thread. No signal waits for an output.
//!
//! | signal | effect |
//! |---|---|
//! | INT, TERM | reading stops, flows are flushed, the report is printed; a second one exits at once; if files were not read to their end, the exit code is 130 |
//! | USR1 | a line of statistics on stderr |
//! | HUP | record files are rotated and failed outputs retried; handled only with outputs or as a service |
//!
//! Only interrupts count towards the second one. If a run stops for another reason (`--duration`,
//! `q` in the terminal view, a removed interface), the first interrupt still yields the report.
//! Outputs that make progress still get their records; others are abandoned.

use std::io;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::Thread;
use std::time::Duration;

use ringtap_engine::Watch;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;

use crate::console::Console;
use crate::outputs::Control;
use crate::screen::Request;
use crate::{links, notify, privileges};
use ringtap_base::Clock;
use ringtap_terminal::console::{note, print_message};

/// The polling interval, and the longest delay of the second interrupt.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// How long an exit waits until stderr has taken its message.
const SAID_WITHIN: Duration = Duration::from_millis(500);

/// The exit code that shells expect after an interrupt.
pub(crate) const INTERRUPTED: u8 = 130;

/// Printed at a first interrupt after the run was stopped otherwise.
const STOPPING: &str = "already stopping; another interrupt exits at once, without a report";

/// Set by the first interrupt.
static INTERRUPT: AtomicBool = AtomicBool::new(false);

/// Whether an interrupt came.
pub(crate) fn are_interrupted() -> bool {
    INTERRUPT.load(Ordering::Relaxed)
}

/// Runs `work` while a thread handles signals and progress. A stop is requested after `duration`.
pub(crate) fn attended<T>(
    watch: &Watch,
    console: &Console,
    outputs: &Control,
    duration: Option<Duration>,
    work: impl FnOnce() -> T,
) -> io::Result<T> {
    let signals = Signals::new([SIGINT, SIGTERM, SIGUSR1])?;
    if !outputs.is_empty() || notify::is_service() {
        signals.add_signal(SIGHUP)?;
    }
    let interrupts = Interrupts::default();
    let interrupt = || {
        if interrupts.is_repeated() {
            console.close();
            outputs.abandon();
            exit_at_once()
        }
        if watch.stopped() {
            console.print_line(STOPPING);
        }
        watch.stop();
        outputs.interrupt();
    };
    let on_signal = |signal| match signal {
        SIGUSR1 => console.statistics(),
        SIGHUP => outputs.renew(),
        _ => interrupt(),
    };
    let tick = || {
        if duration.is_some_and(|duration| console.elapsed() >= duration) {
            watch.stop();
        }
        notify::attend(watch);
        for request in console.tick() {
            match request {
                Request::Stop => watch.stop(),
                Request::Interrupt => interrupt(),
            }
        }
    };
    with_attendant(signals, on_signal, tick, work)
}

/// Runs `work` while a thread handles INT and TERM. `work` must end when `watch` is stopped.
pub(crate) fn stoppable<T>(watch: &Watch, work: impl FnOnce() -> T) -> io::Result<T> {
    stoppable_for(watch, None, work)
}

/// Like [`stoppable`]; a stop is requested after `duration`.
pub(crate) fn stoppable_for<T>(
    watch: &Watch,
    duration: Option<Duration>,
    work: impl FnOnce() -> T,
) -> io::Result<T> {
    let clock = Clock::start();
    let interrupts = Interrupts::default();
    let on_signal = |_| {
        if interrupts.is_repeated() {
            exit_at_once()
        }
        if watch.stopped() {
            note(STOPPING);
        }
        watch.stop();
    };
    let tick = || {
        if duration.is_some_and(|duration| u128::from(clock.now_ns()) >= duration.as_nanos()) {
            watch.stop();
        }
        notify::attend(watch);
        links::turn(watch, |text| print_message("warning", text));
    };
    with_attendant(Signals::new([SIGINT, SIGTERM])?, on_signal, tick, work)
}

/// The exit code of work that a stop left without a result: prints why.
///
/// # Errors
/// That of the work, if no stop was requested.
pub(crate) fn or_interrupted(
    watch: &Watch,
    result: anyhow::Result<ExitCode>,
) -> anyhow::Result<ExitCode> {
    match result {
        Err(error) if watch.stopped() => {
            print_message("error", &format!("{error:#}"));
            Ok(ExitCode::from(INTERRUPTED))
        }
        result => result,
    }
}

/// Runs `work` while a thread calls `on_signal` for each signal and `tick` at each poll.
fn with_attendant<T>(
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

/// Number of interrupts (INT, TERM, Ctrl-C in the terminal view). Only the attendant thread counts.
#[derive(Default)]
struct Interrupts(AtomicU32);

impl Interrupts {
    /// Counts one. True from the second on.
    fn is_repeated(&self) -> bool {
        // Relaxed: it carries no data.
        INTERRUPT.store(true, Ordering::Relaxed);
        self.0.fetch_add(1, Ordering::Relaxed) > 0
    }
}

/// Says so and exits; also if stderr is a pipe or terminal that is not read.
fn exit_at_once() -> ! {
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
