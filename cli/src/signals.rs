//! Signals and the passing of time, attended by one thread beside the run.
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

use crate::console::{Console, complain};
use crate::exports::Exporting;
use crate::outputs::Records;

/// How often it looks; nobody waits longer for the second interrupt.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What a shell expects of a program that an interrupt ended.
const INTERRUPTED: i32 = 130;

/// Does `work` while a thread attends to signals and progress.
pub(crate) fn attended<T>(
    watch: &Watch,
    console: &Console,
    records: &Records,
    exporting: &Exporting,
    work: impl FnOnce() -> T,
) -> io::Result<T> {
    let signals = Signals::new([SIGINT, SIGTERM, SIGUSR1])?;
    if !records.is_empty() || exporting.has_files() {
        signals.add_signal(SIGHUP)?;
    }
    let heard = |signal| match signal {
        SIGUSR1 => console.statistics(),
        SIGHUP => {
            records.reopen();
            exporting.renew();
        }
        _ if watch.stopped() => {
            records.abandon();
            exporting.abandon();
            exit_at_once()
        }
        _ => watch.stop(),
    };
    beside(signals, heard, || console.tick(), work)
}

/// Does `work`, which ends when `watch` says so, while a thread attends to INT and TERM.
pub(crate) fn stoppable<T>(watch: &Watch, work: impl FnOnce() -> T) -> io::Result<T> {
    let heard = |_| if watch.stopped() { exit_at_once() } else { watch.stop() };
    beside(Signals::new([SIGINT, SIGTERM])?, heard, || (), work)
}

/// Does `work` while a thread says which signals are heard, and that time passes.
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
        let attendant = std::thread::Builder::new().name("attendant".into());
        let attendant = attendant.spawn_scoped(scope, attend)?;
        // However the work ends, by a panic too, the attendant goes home.
        let _dismiss = Dismiss { done: &done, attendant: attendant.thread().clone() };
        Ok(work())
    })
}

/// Ends the attendant's watch when dropped.
struct Dismiss<'a> {
    done: &'a AtomicBool,
    attendant: Thread,
}

impl Drop for Dismiss<'_> {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
        self.attendant.unpark();
    }
}

fn exit_at_once() -> ! {
    complain("error", "interrupted twice: no report");
    std::process::exit(INTERRUPTED)
}
