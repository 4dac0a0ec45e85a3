//! `ringtap filter`: reads flags and rules, makes a plan, runs it and prints the report.

mod control;
mod ctl;
mod files;
mod live;
mod message;
mod text;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use ringtap_base::now_ns;
use ringtap_engine::{INTERRUPTED, Machine, Watch};
use ringtap_filter::run::{
    ControlAuth, FilterFiles, FilterPlan, FilterReport, Outputs, filter_files,
};
use ringtap_filter::{Limits, RuleSet};
use ringtap_io::capture::Severity;
use ringtap_skeleton::Skeleton;

use crate::args::{FilterAction, FilterArgs, Form};
use crate::{exit, live as interfaces, signals, source};
use files::{Output, existing, key, read_rules};
use ringtap_base::text::shown_lines;
use ringtap_program::json::json;
use ringtap_program::privileges::CapabilitySet;
use ringtap_program::roles::Roles;
use ringtap_program::{privileges, sandbox};
use ringtap_terminal::Usage;
use ringtap_terminal::console::{self, print_message};

static WATCH: Watch = Watch::new();

pub(crate) fn run(args: &FilterArgs) -> anyhow::Result<ExitCode> {
    match &args.action {
        Some(FilterAction::Ctl(args)) => return ctl::run(args),
        None => {}
    }
    let rules = rules(args)?;
    if let [source, destination] = args.explain[..] {
        return console::print_plain(&format!("{}\n", rules.explain(source, destination)))
            .map(|()| ExitCode::SUCCESS);
    }
    interfaces::only("-i", &args.interface, "filter receives from one interface")?;
    interfaces::only("-o", &args.output, "filter sends to one interface")?;
    if args.inputs.read.is_empty() && args.interface.is_empty() {
        return Err(Usage::of(
            "nothing to filter: use -r trace.pcap -w passed.pcap, or -i eth0 -o eth1",
        ));
    }
    let mut roles = Roles::default();
    roles.reads("--read", &args.inputs.read).reads("--rules", &args.rules);
    roles.reads("--control-key", &args.control_key);
    roles.writes("--write", &args.write).writes("--drops", &args.drops);
    if let Some(socket) = &args.control {
        roles.other(&format!("--control {}", socket.display()), socket);
    }
    roles.check(existing(args))?;
    let plan = plan(args)?;
    if args.dry_run {
        let text = match args.report {
            Form::Text => text::plan(&plan, &rules),
            Form::Json => json(&plan)?,
        };
        return console::print_plain(&text).map(|()| ExitCode::SUCCESS);
    }
    let auth = auth(args)?;
    let outputs = [&args.write, &args.drops, &args.control];
    let outputs = || outputs.into_iter().flatten().map(PathBuf::as_path);
    sandbox::enter(outputs(), !args.interface.is_empty())?;
    privileges::forbid_new();
    if args.interface.is_empty() {
        let inputs = args.inputs.read.iter().map(PathBuf::as_path);
        privileges::drop_capabilities(CapabilitySet::empty(), inputs, outputs())?;
    }
    let duration = args.inputs.duration.map(Duration::from_nanos);
    let report = signals::stoppable_for(&WATCH, duration, || match args.interface.first() {
        Some(interface) => live::run(args, interface, plan, rules, auth, &WATCH),
        None => captures(args, plan, rules, auth),
    });
    let report = report.context("handling signals")??;
    print(args, &report)?;
    Ok(exit_code(args, &report))
}

/// Filters capture files.
fn captures(
    args: &FilterArgs,
    plan: FilterPlan,
    rules: RuleSet,
    auth: Option<ControlAuth>,
) -> anyhow::Result<FilterReport> {
    let files = source::files(&args.inputs.read, &WATCH)?;
    let existing = existing(args);
    let passed = Output::open(args.write.as_ref(), existing)?;
    let drops = Output::open(args.drops.as_ref(), existing)?;
    let ((passed, to_passed), (drops, to_drops)) = (passed, drops);
    let outputs = Outputs { passed: to_passed, drops: to_drops };
    let mut report = filter_files(plan, FilterFiles { files, rules, auth, outputs }, &WATCH)?;
    report.notices.retain(|notice| !source::is_stop(notice));
    passed.finish()?;
    drops.finish()?;
    Ok(report)
}

/// The initial rules.
fn rules(args: &FilterArgs) -> anyhow::Result<RuleSet> {
    let limits = Limits { rules: args.max_rules, memory_bytes: args.memory as usize };
    let rules = RuleSet::new(args.default, limits);
    let Some(path) = &args.rules else { return Ok(rules) };
    let text = read_rules(path)?;
    rules.transact(&text).map_err(|error| Usage::of(format!("{}: {error}", path.display())))
}

/// The authentication of control packets. In a capture all are valid; on an interface, only those
/// sent after the start.
fn auth(args: &FilterArgs) -> anyhow::Result<Option<ControlAuth>> {
    let (Some(port), Some(path)) = (args.control_port, &args.control_key) else { return Ok(None) };
    let floor = if !args.interface.is_empty() { now_ns() } else { 0 };
    Ok(Some(ControlAuth::new(port, key(path)?, floor)))
}

fn plan(args: &FilterArgs) -> anyhow::Result<FilterPlan> {
    let shown = |path: &PathBuf| path.display().to_string();
    let cores = Machine::this().cores;
    let workers = args.workers.unwrap_or(if args.sequential { 1 } else { cores });
    if !(1..=1024).contains(&workers) {
        return Err(Usage::of(format!("invalid number of workers {workers}: use 1 to 1024")));
    }
    let (source, output, skeleton) = match args.interface.first() {
        Some(interface) => (
            vec![args.capture.source(interface)],
            args.output.first().cloned(),
            Skeleton::MultiQueue,
        ),
        None => {
            let alone = args.sequential || args.workers.is_none() && cores == 1;
            let skeleton = if alone { Skeleton::Reference } else { Skeleton::Farm };
            (args.inputs.read.iter().map(shown).collect(), args.write.as_ref().map(shown), skeleton)
        }
    };
    let between = !args.interface.is_empty();
    let paths = usize::from(args.queues.unwrap_or(1)) * if args.both_ways { 2 } else { 1 };
    Ok(FilterPlan {
        source,
        output,
        drops: args.drops.as_ref().map(shown),
        not_ip: args.not_ip,
        skeleton,
        workers: if between { paths } else { workers },
        control_port: args.control_port,
        digest: args.digest,
        buffers: between.then(|| live::buffers(args, paths)),
    })
}

/// Prints the report to stdout, or to stderr if a capture uses stdout.
fn print(args: &FilterArgs, report: &FilterReport) -> anyhow::Result<()> {
    for notice in &report.notices {
        let kind = if notice.severity == Severity::Error { "error" } else { "warning" };
        print_message(kind, &notice.to_string());
    }
    if report.interrupted {
        print_message("warning", INTERRUPTED);
    }
    if let Some(failure) = &report.failure {
        print_message("error", failure);
    }
    let text = match args.report {
        Form::Text => text::report(report),
        Form::Json => report.to_json(env!("CARGO_PKG_VERSION"))? + "\n",
    };
    let taken = [&args.write, &args.drops].into_iter().flatten().any(|to| to.as_os_str() == "-");
    if taken {
        // If stderr is closed, ignore the error.
        let _ = console::stderr().write_all(shown_lines(&text).as_bytes());
        return Ok(());
    }
    console::print_plain(&text)
}

/// Prints losses; returns the exit code.
fn exit_code(args: &FilterArgs, report: &FilterReport) -> ExitCode {
    let losses = report.losses();
    for (reason, packets) in &losses {
        print_message("warning", &format!("packets lost ({reason}): {packets}"));
    }
    let lost = args.fail_on_drop && !losses.is_empty();
    exit::code(report.failed(), report.interrupted, lost)
}
