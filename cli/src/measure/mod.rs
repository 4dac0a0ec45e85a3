//! `ringtap measure` and `ringtap merge`: read flags, make a plan, run it and print the report.

mod csv;
mod intervals;
mod merge;
mod queue;
mod text;
mod write;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use ringtap_engine::{INTERRUPTED, Machine, Plan};
use ringtap_io::capture::{Files, Notice, Severity};
use ringtap_io::live::{Receiver, required_queues};
use ringtap_measure::run::{
    self as measuring, Design, Fixed, MeasureOutcome, Options, Sample, SampleBuilder, advise,
    run_files, run_interface, run_sample,
};
use ringtap_measure::{OnInterval, Settings};
use ringtap_traffic::{Generator, Profile};
use serde::Serialize;

use crate::args::{Capture, MeasureArgs, MeasureForm};
use crate::{exit, generate, live, signals, source};
use ringtap_program::atomic_file::Existing;
use ringtap_program::json::json;
use ringtap_program::privileges::CapabilitySet;
use ringtap_program::roles::Roles;
use ringtap_program::{privileges, sandbox};
use ringtap_terminal::Usage;
use ringtap_terminal::console::{self, note, print_message};
use ringtap_terminal::numbers::count;

use intervals::{Printer, WATCH};

pub(crate) use merge::run as merge;

pub(crate) fn run(args: &MeasureArgs) -> anyhow::Result<ExitCode> {
    live::only("-i", &args.interface, "measure reads one interface")?;
    check_form(args)?;
    let (run_options, machine) = (run_options(args)?, Machine::this());
    let options = measure_options(args);
    let plan = measuring::plan(run_options.clone(), options, &machine).map_err(Usage::of)?;
    if args.packets.is_some() && args.profile.is_none() && args.rate.is_none() && !args.advise {
        return Err(Usage::of("--packets with a capture needs --rate"));
    }
    write::check(&args.write, &plan)?;
    let existing = Existing::of(args.force, !args.interface.is_empty());
    let mut roles = Roles::default();
    roles
        .reads("--read", &args.inputs.read)
        .writes("--write", args.write.iter().map(|file| &file.path));
    let profile = args.profile.as_ref().filter(|name| Profile::named(name).is_none());
    roles.reads("--profile", profile).check(existing)?;
    if args.threads.dry_run {
        let plan = match args.report {
            MeasureForm::Json => json(&Planned::of(&plan))?,
            _ => text::plan(&plan),
        };
        return console::print_plain(&plan).map(|()| ExitCode::SUCCESS);
    }
    let outputs = || args.write.iter().map(|file| file.path.as_path());
    if args.capture != Capture::Dpdk {
        sandbox::enter(outputs(), !args.interface.is_empty())?;
    }
    privileges::forbid_new();
    if args.interface.is_empty() {
        let inputs = args.inputs.read.iter().map(PathBuf::as_path);
        privileges::drop_capabilities(CapabilitySet::empty(), inputs, outputs())?;
    }
    let claimed = write::claim(&args.write, existing)?;
    let duration = args.inputs.duration.map(Duration::from_nanos);
    signals::stoppable_for(&WATCH, duration, || {
        if args.advise {
            let advice = advice(args, &run_options, &options, &machine);
            return signals::or_interrupted(WATCH.stopped(), advice);
        }
        let source = open(args, &plan)?;
        // The thread that prints gets the rights that are left.
        let printer = Printer::begin(args, &plan)?;
        let outcome = measure(args, &plan, source, printer.as_ref().map(Printer::on_interval))?;
        let unprinted = match printer {
            // A closed stdout has ended the run: there is nothing to print.
            Some(printer) => match printer.end(&outcome)? {
                Some(unprinted) => unprinted,
                None => return Ok(ExitCode::SUCCESS),
            },
            None => 0,
        };
        print_messages(args, &outcome);
        if args.interval.is_none() {
            console::print_plain(&match args.report {
                MeasureForm::Text => text::report(&outcome),
                MeasureForm::Json => outcome.to_json(env!("CARGO_PKG_VERSION"))? + "\n",
                MeasureForm::Csv => {
                    intervals::warn_lost(&outcome.merged.report);
                    csv::header(false) + &csv::rows(None, &outcome.merged.report)
                }
            })?;
        }
        write::write(&args.write, claimed, &outcome.merged)?;
        Ok(exit_code(args, &outcome, unprinted))
    })
    .context("handling signals")?
}

/// A plan, and the memory that is not the engine's.
#[derive(Serialize)]
struct Planned<'a> {
    #[serde(flatten)]
    plan: &'a Plan<Options>,
    #[serde(skip_serializing_if = "Option::is_none")]
    printing_bytes: Option<u64>,
}

impl<'a> Planned<'a> {
    fn of(plan: &'a Plan<Options>) -> Self {
        Self { plan, printing_bytes: text::printing_bytes(&plan.app) }
    }
}

/// Refuses flags whose results a CSV file does not have.
fn check_form(args: &MeasureArgs) -> anyhow::Result<()> {
    if let Some(kind) = args.structure.filter(|kind| !kind.keeps_keys())
        && args.report == MeasureForm::Csv
    {
        return Err(Usage::of(format!(
            "{kind} stores no keys, and --report csv has keys only: use another --structure"
        )));
    }
    let without = [
        ("--check", args.check),
        ("--distinct", args.distinct),
        ("--advise", args.advise),
        ("--dry-run", args.threads.dry_run),
    ];
    let found = without.into_iter().find(|(_, given)| *given && args.report == MeasureForm::Csv);
    found.map_or(Ok(()), |(flag, _)| {
        Err(Usage::of(format!(
            "{flag} cannot be used with --report csv, which has keys only: use text or json"
        )))
    })
}

/// Prints diagnostics of a finished run.
fn print_messages(args: &MeasureArgs, outcome: &MeasureOutcome) {
    source::print_notices(outcome.run.notices.iter().filter(|notice| !source::is_stop(notice)));
    if outcome.run.interrupted {
        print_message("warning", INTERRUPTED);
    }
    if let Some(failure) = &outcome.run.failure {
        print_message("error", failure);
    }
    let dropped = outcome.run.dropped();
    let has_report = match args.report {
        MeasureForm::Text => true,
        MeasureForm::Json => args.interval.is_none(),
        MeasureForm::Csv => false,
    };
    if dropped > 0 && !has_report {
        print_message("warning", &format!("packets dropped: {}", count(dropped)));
    }
}

/// Where packets come from, opened.
enum Source {
    Interface(Vec<Receiver>),
    Files(Box<Files>),
    Sample(Sample),
}

/// Opens the source, and gives up the rights that only this needs.
fn open(args: &MeasureArgs, plan: &Plan<Options>) -> anyhow::Result<Source> {
    if let Some(interface) = args.interface.first() {
        let options = ringtap_io::live::Options {
            queues: Some(plan.arrangement.queues as u16),
            memory: plan.buffers.buffer_bytes as usize,
            seed: plan.options.seed,
            ..capture_options(args)
        };
        let receivers = live::open_with(0, interface, &options)?;
        if args.capture != Capture::Dpdk {
            let outputs = args.write.iter().map(|file| file.path.as_path());
            privileges::drop_capabilities(CapabilitySet::empty(), [], outputs)?;
        }
        live::announce(&receivers);
        return Ok(Source::Interface(receivers));
    }
    if args.profile.is_none() && args.rate.is_none() {
        let files = source::files(&args.inputs.read, &WATCH)?;
        return Ok(Source::Files(Box::new(files)));
    }
    sample(args, plan.options.seed).map(Source::Sample)
}

fn measure(
    args: &MeasureArgs,
    plan: &Plan<Options>,
    source: Source,
    on_interval: Option<OnInterval>,
) -> anyhow::Result<MeasureOutcome> {
    Ok(match source {
        Source::Interface(receivers) => run_interface(plan, receivers, &WATCH, on_interval)?,
        Source::Files(files) => run_files(plan, *files, &WATCH, on_interval)?,
        Source::Sample(sample) => {
            let packets = args.packets.unwrap_or(sample.len());
            let mut outcome = run_sample(plan, &sample, packets, &WATCH)?;
            outcome.run.notices = sample.notices;
            outcome.run.interrupted |= sample.interrupted;
            outcome
        }
    })
}

/// Measures the designs on a sample of the source, and prints a recommendation.
fn advice(
    args: &MeasureArgs,
    run_options: &ringtap_engine::Options,
    options: &Options,
    machine: &Machine,
) -> anyhow::Result<ExitCode> {
    if !args.interface.is_empty() {
        return Err(Usage::of(
            "--advise needs the same packets for each design: record a capture ('tcpdump -w') and use -r",
        ));
    }
    let sample = sample(args, run_options.seed)?;
    source::print_notices(sample.notices.iter().filter(|notice| !source::is_stop(notice)));
    let fixed = Fixed {
        design: args.design.is_some(),
        state: args.state.is_some(),
        structure: args.structure.is_some(),
    };
    let advice = advise(run_options, options, fixed, machine, &sample, &WATCH)?;
    console::print_plain(&match args.report {
        MeasureForm::Json => json(&advice)?,
        _ => text::advice(&advice, sample.len()),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// A sample of the source in memory.
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
        return Ok(noted(sample.finish()));
    }
    let run_options = ringtap_engine::Options { seed, ..ringtap_engine::Options::default() };
    let settings = Settings::default();
    let options = Options { design: Design::Sequential, rate: None, memory_bytes: None, settings };
    let alone = measuring::plan(run_options, options, &Machine::this()).map_err(Usage::of)?;
    let sample = Sample::read(&alone, source::files(&args.inputs.read, &WATCH)?, &WATCH);
    Ok(noted(sample))
}

/// The sample; prints whether it is cut.
fn noted(sample: Sample) -> Sample {
    if sample.cut {
        note(&format!("the sample is the first {} packets", sample.len()));
    }
    sample
}

/// The exit code; prints losses.
fn exit_code(args: &MeasureArgs, outcome: &MeasureOutcome, unprinted: u64) -> ExitCode {
    let is_error = |notice: &Notice| notice.severity == Severity::Error && !source::is_stop(notice);
    let failed = outcome.run.failure.is_some() || outcome.run.notices.iter().any(is_error);
    let dropped = outcome.run.dropped();
    if unprinted > 0 {
        let text = "intervals not printed, because stdout was not read";
        print_message("warning", &format!("{text}: {}", count(unprinted)));
    }
    let lost = args.fail_on_drop && dropped + unprinted > 0;
    if lost && dropped > 0 && !failed && !outcome.run.interrupted {
        print_message("error", &format!("packets dropped: {dropped}"));
    }
    exit::code(failed, outcome.run.interrupted, lost)
}

/// The capture options of the flags.
fn capture_options(args: &MeasureArgs) -> ringtap_io::live::Options {
    let defaults = ringtap_io::live::Options::default();
    ringtap_io::live::Options { method: args.capture.method(), ..defaults }
}

/// The run options of the flags.
fn run_options(args: &MeasureArgs) -> anyhow::Result<ringtap_engine::Options> {
    let mut queues = args.threads.queues;
    let source = match (args.interface.first(), &args.profile) {
        (Some(interface), _) => {
            let alone = args.design == Some(Design::Sequential);
            let wanted = required_queues(interface, &capture_options(args))?;
            queues = queues.or(wanted.map(|queues| queues as usize).filter(|_| !alone));
            vec![args.capture.source(interface)]
        }
        (None, Some(profile)) => vec![format!("profile {profile}")],
        (None, None) => args.inputs.read.iter().map(|path| path.display().to_string()).collect(),
    };
    Ok(ringtap_engine::Options {
        source,
        live: !args.interface.is_empty(),
        queues,
        workers: args.workers,
        ..args.threads.options(args.seed)
    })
}

/// The measurement options of the flags.
fn measure_options(args: &MeasureArgs) -> Options {
    let defaults = Settings::default();
    Options {
        design: args.design.unwrap_or(Design::Rss),
        rate: args.rate,
        memory_bytes: args.memory,
        settings: Settings {
            structure: args.structure.unwrap_or(defaults.structure),
            state: args.state.unwrap_or(defaults.state),
            by: args.key.unwrap_or(defaults.by),
            weight: args.weight.unwrap_or(defaults.weight),
            threshold: args.threshold,
            top: args.top.or(defaults.top.filter(|_| args.threshold.is_none())),
            interval_ns: args.interval,
            check: args.check,
            distinct: args.distinct || write::needs_distinct(&args.write),
            ..defaults
        },
    }
}
