//! Signals and the passing of time, attended by a thread beside the run. No signal waits for an output.
//!
//! | signal | what happens |
//! |---|---|
//! | INT, TERM | reading stops, flows are flushed, the report is made; the second one exits at once |
//! | USR1 | a line of statistics on stderr |
//! | HUP | record files are finished and begun anew, and outputs that failed tried again (only if there are any, or under a service manager) |
//!
//! "The second" is counted by signals alone. A run that stops for another reason (`--duration`, `q` in the terminal view,
//! an interface that is gone) still makes its report when the first signal comes, and outputs that take something still
//! get their records; those that take nothing are not waited for any longer.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::Thread;
use std::time::Duration;

use ringtap_engine::Watch;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;

use crate::console::Console;
use crate::notify;
use crate::outputs::Control;
use crate::screen::Wish;
use ringtap_base::Clock;
use ringtap_terminal::console::{complain, note};

/// How often it looks; nobody waits longer for the second interrupt.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What a shell expects of a program that an interrupt ended.
const INTERRUPTED: i32 = 130;

/// To a first interrupt after the run was stopped otherwise: the report is still made.
const STOPPING: &str = "already stopping; another interrupt exits at once, without a report";

/// Does `work` while a thread attends to signals and progress. It is asked to stop after `duration`.
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
            console.say(STOPPING);
        }
        watch.stop();
        outputs.interrupt();
    };
    let heard = |signal| match signal {
        SIGUSR1 => console.statistics(),
        SIGHUP => outputs.renew(),
        _ => interrupt(),
    };
    let tick = || {
        if duration.is_some_and(|duration| console.elapsed() >= duration) {
            watch.stop();
        }
        notify::attend(watch);
        for wish in console.tick() {
            match wish {
                Wish::Stop => watch.stop(),
                Wish::Interrupt => interrupt(),
            }
        }
    };
    beside(signals, heard, tick, work)
}

/// Does `work`, which ends when `watch` says so, while a thread attends to INT and TERM.
pub(crate) fn stoppable<T>(watch: &Watch, work: impl FnOnce() -> T) -> io::Result<T> {
    stoppable_for(watch, None, work)
}

/// The same, and `watch` is asked to stop after `duration`.
pub(crate) fn stoppable_for<T>(
    watch: &Watch,
    duration: Option<Duration>,
    work: impl FnOnce() -> T,
) -> io::Result<T> {
    let clock = Clock::start();
    let interrupts = Interrupts::default();
    let heard = |_| {
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
    };
    beside(Signals::new([SIGINT, SIGTERM])?, heard, tick, work)
}

/// Does `work` while a thread calls `heard` for each signal, and `tick` every now and then.
fn beside<T>(
    mut signals: Signals,
    heard: impl Fn(i32) + Sync,
    tick: impl Fn() + Sync,
    work: impl FnOnce() -> T,
) -> io::Result<T> {
    let done = AtomicBool::new(false);
    let attend = || {
        // Relaxed: it says when, it hands over nothing.
        while !done.load(Ordering::Relaxed) {
            signals.pending().for_each(&heard);
            tick();
            std::thread::park_timeout(LOOK_EVERY);
        }
    };
    std::thread::scope(|scope| {
        let named = |name: &str| std::thread::Builder::new().name(name.into());
        let attendant = named("attendant").spawn_scoped(scope, attend)?.thread().clone();
        // However the work ends, by a panic too, the thread ends.
        let _dismiss = Dismiss { done: &done, thread: attendant };
        Ok(work())
    })
}

/// Ends the thread when dropped.
struct Dismiss<'a> {
    done: &'a AtomicBool,
    thread: Thread,
}

impl Drop for Dismiss<'_> {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
        self.thread.unpark();
    }
}

/// How many interrupts (INT, TERM, Ctrl-C in the terminal view) a run has had. The attendant alone counts.
#[derive(Default)]
struct Interrupts(AtomicU32);

impl Interrupts {
    /// Counts one. True from the second on.
    fn is_repeated(&self) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed) > 0
    }
}

fn exit_at_once() -> ! {
    complain("error", "interrupted twice: no report");
    std::process::exit(INTERRUPTED)
}
