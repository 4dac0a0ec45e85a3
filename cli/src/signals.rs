//! Signals and timers of a run, handled by an attendant thread. No signal waits for an output.
//!
//! | signal | effect |
//! |---|---|
//! | INT, TERM | reading stops, flows are flushed, the report is printed; a second one exits at once; if files were not read to their end, the exit code is 130 |
//! | USR1 | a line of statistics on stderr |
//! | HUP | record files are rotated, failed outputs retried, and the configuration is read again; handled only with outputs, a configuration or as a service |
//!
//! Outputs that make progress still get their records; others are abandoned.

use std::io;
use std::time::Duration;

use ringtap_engine::Watch;
use ringtap_program::interrupt::Interrupts;
use ringtap_program::notify;
use ringtap_program::run::Run;
pub(crate) use ringtap_program::signals::{INTERRUPTED, or_interrupted};
use ringtap_program::signals::{STOPPING, exit_at_once, with_attendant};
use ringtap_terminal::console::print_message;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;

use crate::console::Console;
use crate::links;
use crate::monitor::Requests;
use crate::outputs::Control;
use crate::screen::Request;

/// The watch of a run, for the attendant thread.
struct Watched<'a>(&'a Watch);

impl Run for Watched<'_> {
    fn stop(&self) {
        self.0.stop();
    }

    fn is_stopped(&self) -> bool {
        self.0.stopped()
    }

    fn rounds(&self) -> Vec<u64> {
        self.0.beats.parts(usize::MAX)
    }
}

/// Runs `work` while a thread handles signals and progress. A stop is requested after `duration`.
pub(crate) fn attended<T>(
    watch: &Watch,
    console: &Console,
    outputs: &Control,
    reload: Option<&Requests>,
    duration: Option<Duration>,
    work: impl FnOnce() -> T,
) -> io::Result<T> {
    let signals = Signals::new([SIGINT, SIGTERM, SIGUSR1])?;
    if !outputs.is_empty() || reload.is_some() || notify::is_service() {
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
        SIGHUP => {
            outputs.renew();
            reload.iter().for_each(|reload| reload.request());
        }
        _ => interrupt(),
    };
    let tick = || {
        if duration.is_some_and(|duration| console.elapsed() >= duration) {
            watch.stop();
        }
        notify::attend(&Watched(watch));
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
    let tick = || links::turn(watch, |text| print_message("warning", text));
    ringtap_program::signals::stoppable(&Watched(watch), duration, tick, work)
}
