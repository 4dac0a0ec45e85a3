//! `ringtap generate`: writes frames of a profile or of captures to a file or an interface.
//!
//! ```text
//!  profile, seed ─┐            ┌─▶ file        file.rs
//!                 ├▶ frames ───┼─▶ Sender      send.rs: when due, batch by batch
//!  captures ──────┘ (replay)   └─▶ LiveSender  live.rs: copies of the first
//! ```

mod counts;
mod file;
mod frames;
mod live;
mod mac;
mod profile;
mod rate;
mod replay;
mod send;
mod source_frame;
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
use live::Template;
use mac::Macs;
use replay::Replay;
use ringtap_program::atomic_file::Existing;
use ringtap_program::json::json;
use ringtap_program::privileges::CapabilitySet;
use ringtap_program::roles::Roles;
use ringtap_program::{privileges, sandbox};
use ringtap_terminal::Usage;
use ringtap_terminal::console::{self, print_message};
use send::Treatment;
use stamps::Stamps;

/// The snapshot length of frames to send: larger than any frame.
const SNAPLEN: u32 = 262_144;

/// Default number of flows of `--method live`.
const LIVE_FLOWS: u64 = 1 << 16;

/// Default number of frames of `--method live`.
const LIVE_FRAMES: u64 = 1_000_000;

static WATCH: Watch = Watch::new();

pub(crate) fn run(args: &GenerateArgs) -> anyhow::Result<ExitCode> {
    let to_stdout = |path: &Option<PathBuf>| path.as_ref().is_some_and(|path| path == "-");
    let truth_to_stdout = to_stdout(&args.truth);
    if truth_to_stdout && to_stdout(&args.write) {
        return Err(Usage::of("frames and truth cannot both use stdout: write one to a file"));
    }
    if truth_to_stdout && args.report == Some(Form::Json) {
        return Err(Usage::of(
            "truth and report cannot both use stdout: write the truth to a file",
        ));
    }
    let copies = args.method == Some(SendMethod::Live);
    if !args.read.is_empty() && !copies && args.flows.is_some() {
        return Err(Usage::of("--flows applies to profiles, not to captures: omit it"));
    }
    let reason = "generate sends on one interface";
    let interface = interfaces::only("-i", &args.interface, reason)?;
    let existing = Existing::of(args.force, false);
    let mut roles = Roles::default();
    roles.reads("--read", &args.read).writes("--write", &args.write).writes("--truth", &args.truth);
    let file = args.profile.as_ref().filter(|name| Profile::named(name).is_none());
    roles.reads("--profile", file).check(existing)?;
    let outputs = || [&args.write, &args.truth].into_iter().flatten().map(PathBuf::as_path);
    sandbox::enter(outputs(), interface.is_some())?;
    privileges::forbid_new();
    if interface.is_none() {
        privileges::drop_capabilities(CapabilitySet::empty(), [], outputs())?;
    }
    let run = || match interface {
        Some(name) => to_interface(args, name),
        None => to_file(args),
    };
    let result = signals::stoppable(&WATCH, run).context("handling signals")?;
    if interface.is_some() { result } else { signals::or_interrupted(WATCH.stopped(), result) }
}

/// Writes the frames of a profile to a file.
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
            return Err(Usage::of(format!("{flag} needs --interface")));
        }
    }
    if let Some(rate @ (Rate::Bits(_) | Rate::Recorded(_))) = args.rate {
        return Err(Usage::of(format!(
            "invalid --rate for a file ({rate}): use packets per second (of packet time)"
        )));
    }
    let Some(path) = &args.write else { return Ok(ExitCode::SUCCESS) };
    let mut generator = generator(args, &profile::of_flags(args)?)?;
    let existing = Existing::of(args.force, false);
    let frames = file::claim(path, existing)?;
    let truth = args.truth.as_deref().map(|path| file::claim(path, existing)).transpose()?;
    let stamps = args.stamp.then(|| Stamps::new(args.seed as u16));
    file::write(&mut generator, stamps, frames, &WATCH)?;
    if let Some(file) = truth {
        file::write_truth(&generator.truth(), file)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A generator of the profile; it meters flows if `--truth` is given.
fn generator(args: &GenerateArgs, profile: &Profile) -> anyhow::Result<Generator> {
    if args.stamp && profile.applications.is_some() {
        return Err(Usage::of(
            "--stamp overwrites the messages of a profile with applications: use another profile",
        ));
    }
    let mut generator = Generator::new(profile, args.seed).map_err(Usage::of)?;
    if args.truth.is_some() {
        generator.meter(FlowRules::default());
    }
    Ok(generator)
}

/// The frames to send.
fn frames(args: &GenerateArgs) -> anyhow::Result<Frames> {
    if args.read.is_empty() {
        let profile = Profile { snaplen: SNAPLEN, ..profile::of_flags(args)? };
        return Ok(Frames::Profile(Box::new(generator(args, &profile)?)));
    }
    let (rounds, most) = (args.rounds.unwrap_or(1), args.packets.unwrap_or(u64::MAX));
    Ok(Frames::Capture(Box::new(Replay::new(&args.read, rounds, most, &WATCH)?)))
}

/// Sends frames on an interface.
fn to_interface(args: &GenerateArgs, name: &str) -> anyhow::Result<ExitCode> {
    let method = args.method.unwrap_or(SendMethod::AfPacket);
    let mut counts =
        Counts { interface: name.to_owned(), method: method.name(), ..Counts::default() };
    let macs = Macs { source: args.src_mac, destination: args.dst_mac };
    if args.queue.is_some() && method != SendMethod::AfXdp {
        return Err(Usage::of("--queue needs --method af-xdp"));
    }
    let how = match method {
        SendMethod::Live => return copies(args, name, macs, counts),
        SendMethod::AfPacket => Method::Packet,
        SendMethod::AfXdp => Method::Xdp,
    };
    let existing = Existing::of(args.force, false);
    let truth = args.truth.as_deref().map(|path| file::claim(path, existing)).transpose()?;
    let mut frames = frames(args)?;
    let queue = args.queue.unwrap_or(0);
    let sender = send::open(name, &SendOptions { method: how, queue, ..SendOptions::default() })?;
    opened(args)?;
    let stamps = args.stamp.then(Stamps::random);
    let treatment = Treatment { rate: args.rate, macs, stamps };
    let result = send::send(&mut frames, sender, treatment, &WATCH, &mut counts);
    report(args, &mut counts)?;
    let complete = frames.print_notices();
    if let (Frames::Profile(generator), Some(file)) = (&frames, truth) {
        file::write_truth(&generator.truth(), file)?;
        if counts.sent < counts.frames {
            print_message("warning", "the truth includes frames that were not sent");
        }
    }
    result?;
    if !complete {
        return Ok(ExitCode::FAILURE);
    }
    // Frames of a profile have no end that a run must reach, nor does a replay without end.
    if counts.interrupted && matches!(frames, Frames::Capture(_)) && args.rounds != Some(0) {
        print_message("warning", "interrupted: the captures were not sent to their end");
        return Ok(ExitCode::from(signals::INTERRUPTED));
    }
    Ok(ExitCode::SUCCESS)
}

/// Drops rights once the interface is open.
fn opened(args: &GenerateArgs) -> anyhow::Result<()> {
    let inputs = args.read.iter().map(PathBuf::as_path);
    let kept = match args.method {
        // A socket is opened again when its link has changed.
        Some(SendMethod::AfXdp) => privileges::XDP,
        _ => CapabilitySet::empty(),
    };
    privileges::drop_capabilities(kept, inputs, args.truth.as_deref())
}

/// Sends copies of one frame with `--method live`.
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
            return Err(Usage::of(format!("--method live copies one frame: omit {flag}")));
        }
    }
    if let Some(rate @ Rate::Recorded(_)) = args.rate {
        return Err(Usage::of(format!(
            "--method live cannot send {rate}: use a rate in packets or bits"
        )));
    }
    let flows = args.flows.unwrap_or(LIVE_FLOWS);
    let Some(flows) = u32::try_from(flows).ok().filter(|flows| flows.is_power_of_two()) else {
        return Err(Usage::of(format!(
            "invalid number of flows {flows}: use a power of two with --method live"
        )));
    };
    let template = match (&args.profile, args.size) {
        _ if !args.read.is_empty() => Template::FirstOf(frames(args)?),
        (Some(_), _) => {
            // `--flows` is the number of flows of the copies, not of the profile.
            let profile = Profile { flows: LIVE_FLOWS, ..profile::of_flags(args)? };
            let profile = Profile { snaplen: SNAPLEN, ..profile };
            Template::FirstOf(Frames::Profile(Box::new(generator(args, &profile)?)))
        }
        (None, Some(Size::Imix)) => {
            return Err(Usage::of("--method live has one frame size: use --size 64 to 9018"));
        }
        (None, Some(Size::Fixed(wire))) => Template::Frame(live::datagram(wire)),
        (None, None) => Template::Frame(live::datagram(0)),
    };
    let sender = live::open(name, template, macs, flows)?;
    opened(args)?;
    let count = args.packets.unwrap_or(LIVE_FRAMES);
    let result = live::send(sender, count, args.rate, &WATCH, &mut counts);
    report(args, &mut counts)?;
    result.map(|()| ExitCode::SUCCESS)
}

/// Prints the report: text to stderr, as for a file; JSON to stdout, as other commands do.
fn report(args: &GenerateArgs, counts: &mut Counts) -> anyhow::Result<()> {
    counts.interrupted = WATCH.stopped();
    if args.report == Some(Form::Json) {
        console::print(&json(counts)?)?;
    } else {
        let _ = console::stderr().write_all(counts.text().as_bytes());
    }
    counts.warnings().iter().for_each(|text| print_message("warning", text));
    Ok(())
}
