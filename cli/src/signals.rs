//! Signals and the passing of time, attended by a thread beside the run; another one passes records on to readers.
//!
//! | signal | what happens |
//! |---|---|
//! | INT, TERM | reading stops, flows are flushed, the report is made; the second one exits at once |
//! | USR1 | a line of statistics on stderr |
//! | HUP | record files are closed and begun anew (only if there are any) |

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Thread;
use std::time::Duration;

use ringtap_plan::Watch;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;

use crate::clock::Clock;
use crate::console::{Console, complain};
use crate::exports::Exporting;
use crate::outputs::Records;
use crate::screen::Wish;

/// How often it looks; nobody waits longer for the second interrupt.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How long records may be held back from whoever reads them as they come.
const SHOW_EVERY: Duration = Duration::from_secs(1);

/// What a shell expects of a program that an interrupt ended.
const INTERRUPTED: i32 = 130;

/// Does `work` while a thread attends to signals and progress. It is asked to stop after `duration`.
pub(crate) fn attended<T>(
    watch: &Watch,
    console: &Console,
    records: &Records,
    exporting: &Exporting,
    duration: Option<Duration>,
    work: impl FnOnce() -> T,
) -> io::Result<T> {
    let signals = Signals::new([SIGINT, SIGTERM, SIGUSR1])?;
    if !records.is_empty() || exporting.has_files() {
        signals.add_signal(SIGHUP)?;
    }
    let stop = || {
        if watch.stopped() {
            console.close();
            records.abandon();
            exporting.abandon();
            exit_at_once()
        }
        watch.stop();
    };
    let heard = |signal| match signal {
        SIGUSR1 => console.statistics(),
        SIGHUP => {
            records.reopen();
            exporting.renew();
        }
        _ => stop(),
    };
    let tick = || {
        if duration.is_some_and(|duration| console.elapsed() >= duration) {
            watch.stop();
        }
        console.tick().into_iter().for_each(|Wish::Stop| stop());
    };
    beside(signals, heard, tick, Some(records).filter(|records| !records.is_empty()), work)
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
    let heard = |_| if watch.stopped() { exit_at_once() } else { watch.stop() };
    let tick = || {
        if duration.is_some_and(|duration| u128::from(clock.now_ns()) >= duration.as_nanos()) {
            watch.stop();
        }
    };
    beside(Signals::new([SIGINT, SIGTERM])?, heard, tick, None, work)
}

/// Does `work` while a thread says which signals are heard, and that time passes; another one shows `records` to whoever
/// reads along.
fn beside<T>(
    mut signals: Signals,
    heard: impl Fn(i32) + Sync,
    tick: impl Fn() + Sync,
    records: Option<&Records>,
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
        // However the work ends, by a panic too, they go home.
        let mut dismiss = Dismiss { done: &done, threads: vec![attendant] };
        if let Some(records) = records {
            // A thread of its own, for a reader may keep it waiting.
            let shower = named("shower").spawn_scoped(scope, || {
                while !done.load(Ordering::Relaxed) {
                    std::thread::park_timeout(SHOW_EVERY);
                    records.show();
                }
            });
            dismiss.threads.push(shower?.thread().clone());
        }
        Ok(work())
    })
}

/// Ends the watch of these threads when dropped.
struct Dismiss<'a> {
    done: &'a AtomicBool,
    threads: Vec<Thread>,
}

impl Drop for Dismiss<'_> {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
        self.threads.iter().for_each(Thread::unpark);
    }
}

fn exit_at_once() -> ! {
    complain("error", "interrupted twice: no report");
    std::process::exit(INTERRUPTED)
}
