//! `ringtap measure` and `ringtap merge`: flags → request → plan → run → report.

mod merge;
mod text;
mod write;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use ringtap_engine::measure::{
    Design, MeasureOutcome, MeasurePlan, MeasureRequest, Sample, SampleBuilder, advise, run_files,
    run_interface, run_sample,
};
use ringtap_engine::{Machine, Notice, Plan, Request, Severity, Skeleton, Watch};
use ringtap_io::live::{Options, required_queues};
use ringtap_traffic::{Generator, Profile};

use crate::args::{Form, MeasureArgs};
use crate::{generate, live, monitor, sandbox, signals, source};
use ringtap_terminal::Usage;
use ringtap_terminal::console::{self, complain, note};

pub(crate) use merge::run as merge;

const LOST: u8 = 3;

static WATCH: Watch = Watch::new();

pub(crate) fn run(args: &MeasureArgs) -> anyhow::Result<ExitCode> {
    live::only("-i", &args.interface, "measure listens to one interface")?;
    let request = request(args)?;
    let machine = Machine::this();
    let plan = MeasurePlan::new(request.clone(), &machine).map_err(Usage::of)?;
    if args.packets.is_some() && args.profile.is_none() && args.rate.is_none() && !args.advise {
        return Err(Usage::of(
            "--packets of a capture needs --rate: else it is read once, as it is",
        ));
    }
    write::check(&args.write, &plan)?;
    if args.dry_run {
        let plan = match args.report {
            Form::Text => text::plan(&plan),
            Form::Json => serde_json::to_string_pretty(&plan)? + "\n",
        };
        return console::print(&plan).map(|()| ExitCode::SUCCESS);
    }
    if args.interface.is_empty() {
        sandbox::enter(args.write.iter().map(|file| file.path.as_path()))?;
    }
    let duration = args.duration.map(Duration::from_nanos);
    signals::stoppable_for(&WATCH, duration, || {
        if args.advise {
            return advice(args, &request, &machine, &plan);
        }
        let outcome = measure(args, &plan)?;
        tell(&outcome.notices);
        if let Some(failure) = &outcome.failure {
            complain("error", failure);
        }
        console::print(&match args.report {
            Form::Text => text::report(&outcome),
            Form::Json => outcome.to_json(env!("CARGO_PKG_VERSION"))? + "\n",
        })?;
        write::write(&args.write, &outcome.merged)?;
        Ok(verdict(args, &outcome))
    })
    .context("attending to signals")?
}

fn measure(args: &MeasureArgs, plan: &MeasurePlan) -> anyhow::Result<MeasureOutcome> {
    if let Some(interface) = args.interface.first() {
        let options = Options {
            queues: Some(plan.run.queues as u16),
            memory: plan.run.buffer_bytes as usize,
            seed: plan.run.seed,
            ..options(args)
        };
        let receivers = live::open_with(interface, &options)?;
        live::announce(&receivers);
        return Ok(run_interface(plan, receivers, &WATCH)?);
    }
    if args.profile.is_none() && args.rate.is_none() {
        return Ok(run_files(plan, source::files(&args.read, &WATCH), &WATCH)?);
    }
    let mut sample = sample(args, plan.run.seed)?;
    let packets = args.packets.unwrap_or(sample.len());
    let mut outcome = run_sample(plan, &sample, packets, &WATCH)?;
    outcome.notices = std::mem::take(&mut sample.notices);
    Ok(outcome)
}

/// Tries the designs on what the source has.
fn advice(
    args: &MeasureArgs,
    request: &MeasureRequest,
    machine: &Machine,
    plan: &MeasurePlan,
) -> anyhow::Result<ExitCode> {
    if !args.interface.is_empty() {
        return Err(Usage::of(
            "--advise wants a sample that every design gets alike: record one, as in 'tcpdump -w', and read it with -r",
        ));
    }
    let sample = sample(args, plan.run.seed)?;
    tell(&sample.notices);
    let advice = advise(request, machine, &sample, &WATCH)?;
    console::print(&match args.report {
        Form::Text => text::advice(&advice, sample.len()),
        Form::Json => serde_json::to_string_pretty(&advice)? + "\n",
    })?;
    Ok(ExitCode::SUCCESS)
}

/// The source's packets in memory.
fn sample(args: &MeasureArgs, seed: u64) -> anyhow::Result<Sample> {
    if let Some(name) = &args.profile {
        let mut profile: Profile = generate::profile(name)?;
        if args.rate.is_none() {
            profile.packets = args.packets.unwrap_or(profile.packets);
        }
        let mut generator = Generator::new(&profile, seed).map_err(Usage::of)?;
        let mut sample = SampleBuilder::new(seed);
        while let Some(frame) = generator.next() {
            if !sample.push(frame.ts_ns, frame.data, frame.original_len) {
                break;
            }
        }
        return Ok(sample.finish());
    }
    let alone = Request { skeleton: Some(Skeleton::Reference), seed, ..Request::default() };
    let alone = Plan::new(alone, &Machine::this()).map_err(Usage::of)?;
    let sample = Sample::read(&alone, source::files(&args.read, &WATCH), &WATCH);
    if sample.cut {
        note(&format!("the first {} packets are the sample", sample.len()));
    }
    Ok(sample)
}

fn tell(notices: &[Notice]) {
    for notice in notices.iter().filter(|notice| !source::is_stop(notice)) {
        let kind = if notice.severity == Severity::Error { "error" } else { "warning" };
        complain(kind, &notice.to_string());
    }
}

fn verdict(args: &MeasureArgs, outcome: &MeasureOutcome) -> ExitCode {
    let told = |notice: &Notice| notice.severity == Severity::Error && !source::is_stop(notice);
    if outcome.failure.is_some() || outcome.notices.iter().any(told) {
        return ExitCode::FAILURE;
    }
    let dropped: u64 = outcome.ledger.dropped().values().sum();
    if args.fail_on_drop && dropped > 0 {
        complain("error", &format!("packets dropped: {dropped}"));
        return ExitCode::from(LOST);
    }
    ExitCode::SUCCESS
}

/// What the flags say of the interface.
fn options(args: &MeasureArgs) -> Options {
    Options { method: args.capture.method(), ..Options::default() }
}

fn request(args: &MeasureArgs) -> anyhow::Result<MeasureRequest> {
    let mut queues = args.queues;
    let source = match (args.interface.first(), &args.profile) {
        (Some(interface), _) => {
            let alone = args.design == Some(Design::Sequential);
            let wanted = required_queues(interface, &options(args))?.map(|queues| queues as usize);
            queues = queues.or(wanted.filter(|_| !alone));
            vec![args.capture.source(interface)]
        }
        (None, Some(profile)) => vec![format!("profile {profile}")],
        (None, None) => args.read.iter().map(|path| path.display().to_string()).collect(),
    };
    Ok(MeasureRequest {
        run: Request {
            source,
            live: !args.interface.is_empty(),
            queues,
            workers: args.workers,
            cores: args.threads.cores(),
            ring: args.threads.ring,
            ring_capacity: args.threads.ring_capacity,
            ring_batch: args.threads.ring_batch,
            seed: args.seed.unwrap_or_else(monitor::random_seed),
            ..Request::default()
        },
        design: args.design,
        structure: args.structure,
        state: args.state,
        by: args.key,
        weight: args.weight,
        threshold: args.threshold,
        memory_bytes: args.memory,
        check: args.check,
        distinct: args.distinct || write::needs_distinct(&args.write),
        rate: args.rate,
    })
}
