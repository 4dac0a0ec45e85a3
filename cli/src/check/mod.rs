//! `ringtap check`: receives stamped frames and says what became of those that were sent.
//!
//! ```text
//!  interface ─▶ Receiver ─▶ Stamp::read ─▶ Arrivals, one a stream ─▶ report
//! ```
//!
//! Invariants: memory does not grow. It ends when all have come, when none come any more, or when
//! asked to.

mod findings;
mod text;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use ringtap_engine::Watch;
use ringtap_io::live::{Drain, Options, Receiver, State, Wake};
use ringtap_wire::LinkType;

use crate::args::{CheckArgs, Form};
use crate::{live, signals};
use findings::Findings;
use ringtap_base::Clock;
use ringtap_terminal::console;

const LOST: u8 = 3;

/// Frames of a burst.
const BURST: usize = 256;

/// One wait for frames; with several queues, after which the next one is looked at.
const WAIT: Duration = Duration::from_millis(50);
const WAIT_OF_MANY: Duration = Duration::from_millis(1);

/// When all have come: copies may follow, which are waited for no longer than this.
const COPIES_NS: u64 = 100_000_000;

static WATCH: Watch = Watch::new();

pub(crate) fn run(args: &CheckArgs) -> anyhow::Result<ExitCode> {
    signals::stoppable(&WATCH, || check(args)).context("attending to signals")?
}

fn check(args: &CheckArgs) -> anyhow::Result<ExitCode> {
    let takes = "check receives from one interface";
    let interface = live::only("-i", &args.interface, takes)?.unwrap_or_default();
    // What this host sends itself would come twice.
    let options = Options { method: args.method.method(), outgoing: false, ..Options::default() };
    let mut receivers = live::open_with(interface, &options)?;
    if receivers.iter().any(|receiver| receiver.link() != LinkType::ETHERNET) {
        bail!("{interface} is not Ethernet: stamps are read in Ethernet frames");
    }
    live::announce(&receivers);

    let mut findings = Findings::new(interface, args.count);
    let state = receive(&mut receivers, args, &mut findings);
    findings.close(&mut receivers);
    console::print(&match args.output.report {
        Form::Text => text::report(&findings),
        Form::Json => serde_json::to_string_pretty(&findings)? + "\n",
    })?;
    if state == State::Gone {
        bail!("{interface} is gone");
    }
    Ok(if findings.all_well() { ExitCode::SUCCESS } else { ExitCode::from(LOST) })
}

/// Takes what came before somebody said stop. All queues are shut before one is read: else what is of one stream would
/// still come by some, and be missed by the others.
fn drain(receivers: &mut [Receiver], findings: &mut Findings) {
    let mut open: Vec<_> = receivers.iter_mut().map(|one| (Drain::begin(one), one)).collect();
    while !open.is_empty() {
        open.retain_mut(|(drain, receiver)| {
            drain.look();
            let came = receiver.burst(BURST, |frame| findings.take(frame.ts_ns, frame.data));
            !drain.is_over(came, receiver)
        });
        if let Some((_, receiver)) = open.first_mut() {
            receiver.wait(WAIT_OF_MANY);
        }
    }
}

/// Receives until it is over; how the interface is then.
fn receive(receivers: &mut [Receiver], args: &CheckArgs, findings: &mut Findings) -> State {
    let clock = Clock::start();
    let (mut stamped, mut latest_ns) = (0, 0);
    let wait = if receivers.len() == 1 { WAIT } else { WAIT_OF_MANY };
    for turn in 0.. {
        if WATCH.stopped() {
            drain(receivers, findings);
            break;
        }
        // Before the look: a silence that nobody listened to is none.
        let now = clock.now_ns();
        let mut came = 0;
        for receiver in receivers.iter_mut() {
            came += receiver.burst(BURST, |frame| findings.take(frame.ts_ns, frame.data));
        }
        if findings.stamped() > stamped {
            (stamped, latest_ns) = (findings.stamped(), now);
        }
        let silence = now - latest_ns;
        let over = silence >= args.idle_stop || findings.all_came() && silence >= COPIES_NS;
        if stamped > 0 && over {
            break;
        }
        let next = turn % receivers.len();
        if came == 0 && receivers[next].wait(wait) == Wake::Nothing(State::Gone) {
            return State::Gone;
        }
    }
    receivers.first().map_or(State::Gone, Receiver::state)
}
