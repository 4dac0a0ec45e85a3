//! `ringtap generate`: frames of a profile or of captures, to a file or to an interface.
//!
//! ```text
//!  profile, seed ─┐            ┌─▶ file        file.rs
//!                 ├▶ frames ───┼─▶ Sender      send.rs: when due, batch by batch
//!  captures ──────┘ (replay)   └─▶ LiveSender  live.rs: copies of one of them
//! ```

mod counts;
mod file;
mod frames;
mod given;
mod live;
mod mac;
mod profile;
mod rate;
mod replay;
mod send;
mod stamps;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use ringtap_engine::Watch;
use ringtap_io::live::{Method, SendOptions};
use ringtap_traffic::{FlowRules, Generator, Profile, Size};

pub(crate) use mac::Mac;
pub(crate) use profile::named as profile;
pub(crate) use rate::Rate;

use crate::args::{Form, GenerateArgs, SendMethod};
use crate::{live as interfaces, signals};
use counts::Counts;
use frames::Frames;
use live::Original;
use mac::Macs;
use replay::Replay;
use ringtap_terminal::Usage;
use ringtap_terminal::console::{self, complain};
use send::Treatment;
use stamps::Stamps;

/// No frame is longer; those that are sent are sent whole.
const WHOLE: u32 = 262_144;

/// Flows of `--method live`, unless asked otherwise.
const LIVE_FLOWS: u64 = 1 << 16;

/// Frames of `--method live`, unless asked otherwise.
const LIVE_FRAMES: u64 = 1_000_000;

static WATCH: Watch = Watch::new();

pub(crate) fn run(args: &GenerateArgs) -> anyhow::Result<ExitCode> {
    let to_stdout = |path: &Option<PathBuf>| path.as_ref().is_some_and(|path| path == "-");
    let truth_to_stdout = to_stdout(&args.truth);
    if truth_to_stdout && to_stdout(&args.write) {
        return Err(Usage::of("frames and truth cannot both go to stdout; name a file for one"));
    }
    if truth_to_stdout && args.report == Some(Form::Json) {
        return Err(Usage::of(
            "truth and report cannot both go to stdout; name a file for the truth",
        ));
    }
    let copies = args.method == Some(SendMethod::Live);
    if !args.read.is_empty() && !copies && args.flows.is_some() {
        return Err(Usage::of("--flows is for traffic of a profile; a capture has its own"));
    }
    let takes = "generate sends by one interface";
    let interface = interfaces::only("-i", &args.interface, takes)?;
    let run = || match interface {
        Some(name) => to_interface(args, name),
        None => to_file(args),
    };
    signals::stoppable(&WATCH, run).context("attending to signals")?
}

fn to_file(args: &GenerateArgs) -> anyhow::Result<ExitCode> {
    for (given, flag) in [
        (args.method.is_some(), "--method"),
        (args.queue.is_some(), "--queue"),
        (!args.read.is_empty(), "--read"),
        (args.src_mac.is_some(), "--src-mac"),
        (args.dst_mac.is_some(), "--dst-mac"),
        (args.report.is_some(), "--report"),
    ] {
        if given {
            return Err(Usage::of(format!(
                "{flag} is for sending, by --interface; not for a file"
            )));
        }
    }
    if let Some(rate @ (Rate::Bits(_) | Rate::Recorded(_))) = args.rate {
        return Err(Usage::of(format!(
            "a file is written at once, not {rate}; for a file --rate is packets a second of packet time"
        )));
    }
    let Some(path) = &args.write else { return Ok(ExitCode::SUCCESS) };
    let mut generator = generator(args, &profile::asked(args)?)?;
    let stamps = args.stamp.then(|| Stamps::new(args.seed as u16));
    file::write(&mut generator, stamps, path)?;
    if let Some(path) = &args.truth {
        file::write_truth(&generator.truth(), path)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn generator(args: &GenerateArgs, profile: &Profile) -> anyhow::Result<Generator> {
    let mut generator = Generator::new(profile, args.seed).map_err(Usage::of)?;
    if args.truth.is_some() {
        generator.meter(FlowRules::default());
    }
    Ok(generator)
}

/// What to send.
fn frames(args: &GenerateArgs) -> anyhow::Result<Frames> {
    if args.read.is_empty() {
        let profile = Profile { snaplen: WHOLE, ..profile::asked(args)? };
        return Ok(Frames::Profile(Box::new(generator(args, &profile)?)));
    }
    let (rounds, most) = (args.rounds.unwrap_or(1), args.packets.unwrap_or(u64::MAX));
    Ok(Frames::Capture(Box::new(Replay::new(&args.read, rounds, most, &WATCH)?)))
}

fn to_interface(args: &GenerateArgs, name: &str) -> anyhow::Result<ExitCode> {
    let method = args.method.unwrap_or(SendMethod::AfPacket);
    let mut counts =
        Counts { interface: name.to_owned(), method: method.name(), ..Counts::default() };
    let macs = Macs { source: args.src_mac, destination: args.dst_mac };
    if args.queue.is_some() && method != SendMethod::AfXdp {
        return Err(Usage::of("--queue is for --method af-xdp"));
    }
    let how = match method {
        SendMethod::Live => return copies(args, name, macs, counts),
        SendMethod::AfPacket => Method::Packet,
        SendMethod::AfXdp => Method::Xdp,
    };
    let mut frames = frames(args)?;
    let queue = args.queue.unwrap_or(0);
    let sender = send::open(name, &SendOptions { method: how, queue, ..SendOptions::default() })?;
    let stamps = args.stamp.then(Stamps::random);
    let treatment = Treatment { rate: args.rate, macs, stamps };
    let result = send::send(&mut frames, sender, treatment, &WATCH, &mut counts);
    report(args, &mut counts)?;
    let whole = frames.tell();
    if let (Frames::Profile(generator), Some(path)) = (&frames, &args.truth) {
        file::write_truth(&generator.truth(), path)?;
        if counts.sent < counts.frames {
            complain("warning", "the truth is of all frames, also of those not sent");
        }
    }
    result?;
    Ok(if whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// `--method live`.
fn copies(
    args: &GenerateArgs,
    name: &str,
    macs: Macs,
    mut counts: Counts,
) -> anyhow::Result<ExitCode> {
    for (given, flag) in [
        (args.stamp, "--stamp"),
        (args.truth.is_some(), "--truth"),
        (args.rounds.is_some(), "--loop"),
        (args.zipf.is_some(), "--zipf"),
    ] {
        if given {
            return Err(Usage::of(format!("--method live copies one frame and knows no {flag}")));
        }
    }
    if let Some(rate @ Rate::Recorded(_)) = args.rate {
        return Err(Usage::of(format!(
            "copies of one frame cannot leave {rate}; write a rate of packets or bits"
        )));
    }
    let flows = args.flows.unwrap_or(LIVE_FLOWS);
    let Some(flows) = u32::try_from(flows).ok().filter(|flows| flows.is_power_of_two()) else {
        return Err(Usage::of(format!("{flows} flows: --method live needs a power of two")));
    };
    let original = match (&args.profile, args.size) {
        _ if !args.read.is_empty() => Original::FirstOf(frames(args)?),
        (Some(_), _) => {
            // The number of flows is that of the copies.
            let profile = Profile { flows: LIVE_FLOWS, ..profile::asked(args)? };
            let profile = Profile { snaplen: WHOLE, ..profile };
            Original::FirstOf(Frames::Profile(Box::new(generator(args, &profile)?)))
        }
        (None, Some(Size::Imix)) => {
            return Err(Usage::of("copies of one frame have one size; write --size 64 to 9018"));
        }
        (None, Some(Size::Fixed(wire))) => Original::Frame(live::datagram(wire)),
        (None, None) => Original::Frame(live::datagram(0)),
    };
    let sender = live::open(name, original, macs, flows)?;
    let count = args.packets.unwrap_or(LIVE_FRAMES);
    let result = live::send(sender, count, args.rate, &WATCH, &mut counts);
    report(args, &mut counts)?;
    result.map(|()| ExitCode::SUCCESS)
}

/// Text to stderr, as for a file; JSON to stdout, as reports of other commands.
fn report(args: &GenerateArgs, counts: &mut Counts) -> anyhow::Result<()> {
    counts.interrupted = WATCH.stopped();
    if args.report == Some(Form::Json) {
        console::print(&(serde_json::to_string_pretty(counts)? + "\n"))?;
    } else {
        let _ = console::stderr().write_all(counts.text().as_bytes());
    }
    counts.complaints().iter().for_each(|what| complain("warning", what));
    Ok(())
}
