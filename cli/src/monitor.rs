//! `ringtap monitor`: flags → request → plan → run → report.

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::Context;
use ringtap_plan::{
    Files, Input, Machine, Outcome, Outputs, Plan, Request, Severity, Skeleton, Timeouts, Watch,
};

use crate::args::{Form, MonitorArgs, Usage, complain};
use crate::text;

pub(crate) fn run(args: MonitorArgs) -> anyhow::Result<ExitCode> {
    if args.read.is_empty() {
        return Err(Usage::of("nothing to read; name capture files with -r FILE, or -r - for stdin"));
    }
    let plan = Plan::new(request(&args), &Machine::this()).map_err(Usage::of)?;
    if args.dry_run {
        let text = match args.report {
            Form::Text => text::plan(&plan),
            Form::Json => serde_json::to_string_pretty(&plan)? + "\n",
        };
        return print(&text).map(|()| ExitCode::SUCCESS);
    }
    let watch = Watch::new();
    let files = Files::new(args.read.iter().cloned().map(Input::from).collect());
    let outcome = ringtap_plan::run(&plan, files, Outputs::default(), &watch)?;
    for notice in &outcome.notices {
        let kind = if notice.severity == Severity::Error { "error" } else { "warning" };
        complain(kind, &notice.to_string());
    }
    print(&report(&outcome, args.report)?)?;
    let failed = outcome.notices.iter().any(|notice| notice.severity == Severity::Error);
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn request(args: &MonitorArgs) -> Request {
    let defaults = Timeouts::default();
    Request {
        source: args.read.iter().map(|path| path.display().to_string()).collect(),
        analyses: args.analyses,
        skeleton: if args.sequential { Some(Skeleton::Reference) } else { args.skeleton },
        workers: args.workers,
        ring: args.ring,
        ring_capacity: args.ring_capacity,
        ring_batch: args.ring_batch,
        cores: args.cores.as_ref().map(|cores| cores.0.clone()),
        timeouts: Timeouts {
            idle_ns: args.idle_timeout.unwrap_or(defaults.idle_ns),
            active_ns: args.active_timeout.unwrap_or(defaults.active_ns),
            ..defaults
        },
        interval_ns: args.interval,
        max_flows: args.max_flows,
        memory_bytes: args.memory,
        scan_threshold: args.scan_threshold,
        top: args.top,
        digest: args.digest,
        seed: args.seed.unwrap_or_else(random_seed),
    }
}

/// From the system's source of randomness, which the standard library's hash maps draw from.
fn random_seed() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}

fn report(outcome: &Outcome, form: Form) -> anyhow::Result<String> {
    Ok(match form {
        Form::Text => text::report(outcome),
        Form::Json => outcome.to_json(env!("CARGO_PKG_VERSION"))? + "\n",
    })
}

/// To stdout. A reader that has seen enough is no error.
fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(error).context("writing the report to stdout")
        }
        _ => Ok(()),
    }
}
