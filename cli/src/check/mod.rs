//! `ringtap check`: receives stamped frames and reports loss, order and latency.
//!
//! ```text
//!  interface ─▶ Receiver ─▶ Stamp::read ─▶ Arrivals, one per stream ─▶ report
//! ```
//!
//! Invariants: memory is bounded. The run ends when all frames have arrived, when no more arrive,
//! or when a stop is requested.

mod findings;
mod text;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use ringtap_engine::Watch;
use ringtap_io::live::{Drain, Options, Receiver, State, Wake};
use ringtap_wire::LinkType;

use crate::args::{CheckArgs, Form};
use crate::{exit, live, signals};
use findings::Findings;
use ringtap_base::Clock;
use ringtap_program::json::json;
use ringtap_program::privileges::CapabilitySet;
use ringtap_program::{privileges, sandbox};
use ringtap_terminal::console;

/// Most frames of a burst.
const BURST: usize = 256;

/// Longest wait for frames, and that with several queues, which wait in turn.
const WAIT: Duration = Duration::from_millis(50);
const WAIT_PER_QUEUE: Duration = Duration::from_millis(1);

/// Wait for duplicates after all frames have arrived.
const DUPLICATES_NS: u64 = 100_000_000;

static WATCH: Watch = Watch::new();

pub(crate) fn run(args: &CheckArgs) -> anyhow::Result<ExitCode> {
    signals::stoppable(&WATCH, || check(args)).context("handling signals")?
}

fn check(args: &CheckArgs) -> anyhow::Result<ExitCode> {
    let reason = "check receives from one interface";
    let interface = live::only("-i", &args.interface, reason)?.unwrap_or_default();
    // Frames that this host sends would arrive twice.
    let options = Options { method: args.method.method(), outgoing: false, ..Options::default() };
    sandbox::enter([].into_iter(), true)?;
    privileges::forbid_new();
    let mut receivers = live::open_with(0, interface, &options)?;
    privileges::drop_capabilities(CapabilitySet::empty(), [], [])?;
    if receivers.iter().any(|receiver| receiver.link() != LinkType::ETHERNET) {
        bail!("{interface} is not an Ethernet interface: stamps need Ethernet frames");
    }
    live::announce(&receivers);

    let mut findings = Findings::new(interface, args.count);
    let state = receive(&mut receivers, args, &mut findings);
    findings.close(&mut receivers);
    console::print_plain(&match args.output.report {
        Form::Text => text::report(&findings),
        Form::Json => json(&findings)?,
    })?;
    if state == State::Gone {
        bail!("{interface} is gone");
    }
    Ok(if findings.is_success() { ExitCode::SUCCESS } else { ExitCode::from(exit::LOST) })
}

/// Reads the frames that arrived before the stop signal. All queues are closed before any is read;
/// otherwise a stream could continue in some queues and end in others.
fn drain(receivers: &mut [Receiver], findings: &mut Findings) {
    let mut open: Vec<_> = receivers.iter_mut().map(|one| (Drain::begin(one), one)).collect();
    while !open.is_empty() {
        open.retain_mut(|(drain, receiver)| {
            drain.before_burst();
            let received = receiver.burst(BURST, |frame| findings.take(frame.ts_ns, frame.data));
            !drain.is_over(received, receiver)
        });
        if let Some((_, receiver)) = open.first_mut() {
            receiver.wait(WAIT_PER_QUEUE);
        }
    }
}

/// Receives until the end; returns the state of the interface.
fn receive(receivers: &mut [Receiver], args: &CheckArgs, findings: &mut Findings) -> State {
    let clock = Clock::start();
    let (mut stamped, mut latest_ns) = (0, 0);
    let wait = if receivers.len() == 1 { WAIT } else { WAIT_PER_QUEUE };
    for turn in 0.. {
        if WATCH.stopped() {
            drain(receivers, findings);
            break;
        }
        // Read before the poll, so that time without polling does not count as silence.
        let now = clock.now_ns();
        let mut received = 0;
        for receiver in receivers.iter_mut() {
            received += receiver.burst(BURST, |frame| findings.take(frame.ts_ns, frame.data));
        }
        if findings.stamped() > stamped {
            (stamped, latest_ns) = (findings.stamped(), now);
        }
        let silence = now - latest_ns;
        let over = silence >= args.idle_stop || findings.all_arrived() && silence >= DUPLICATES_NS;
        if stamped > 0 && over {
            break;
        }
        let next = turn % receivers.len();
        if received == 0 && receivers[next].wait(wait) == Wake::Nothing(State::Gone) {
            return State::Gone;
        }
    }
    receivers.first().map_or(State::Gone, Receiver::state)
}
