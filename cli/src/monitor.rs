//! `ringtap monitor`: flags → request → plan → run → report.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use ringtap_export::{Collector, Feed, Meter, Metered, Sampling, Settings, Tls};
use ringtap_live::Receiver;
use ringtap_plan::{
    Analyses, Expression, ExpressionError, Files, Limits, Machine, Metering, OnInterval, OnRecord,
    Outcome, Outputs, Plan, Request, Severity, Skeleton, Timeouts, Watch,
};

use crate::args::{Capture, Form, MonitorArgs};
use crate::console::{self, Console, Extent, complain};
use crate::exports::{self, Exporting};
use crate::metrics::Metrics;
use crate::outputs::{Destination, Records};
use crate::screen::Screen;
use crate::usage::Usage;
use crate::{live, privileges, sandbox, signals, source, text};

const LOST: u8 = 3;

/// The interval of a run that somebody looks at.
const WATCHED_INTERVAL_NS: u64 = 5_000_000_000;

static WATCH: Watch = Watch::new();

pub(crate) fn run(args: &MonitorArgs) -> anyhow::Result<ExitCode> {
    if args.read.is_empty() && args.interface.is_none() {
        return Err(Usage::of(
            "nothing to read; name capture files, as in -r trace.pcap, or - for stdin, or an interface, as in -i eth0",
        ));
    }
    let plan = Plan::new(request(args)?, &Machine::this()).map_err(Usage::of)?;
    if args.dry_run {
        let plan = match args.report {
            Form::Text => text::plan(&plan),
            Form::Json => serde_json::to_string_pretty(&plan)? + "\n",
        };
        return console::print(&plan).map(|()| ExitCode::SUCCESS);
    }

    let clash = |one: &&_| args.write.iter().any(|to| exports::path(one) == Some(to.path()));
    if let Some(one) = args.export.iter().find(clash) {
        return Err(Usage::of(format!("--write and --export {one} go to the same place")));
    }
    if args.tui && stdout_is_taken(args) && io::stdout().is_terminal() {
        return Err(Usage::of("--tui and records cannot both go to the terminal"));
    }
    // Drivers of DPDK open devices for writing.
    if args.interface.is_none() || args.capture != Capture::Dpdk {
        let exported = args.export.iter().filter_map(exports::path);
        sandbox::enter(args.write.iter().map(Destination::path).chain(exported))?;
    }
    let user = args.user.as_deref().map(privileges::user).transpose()?;
    let metrics = args.metrics.map(|address| Metrics::listen(address, plan.queues)).transpose()?;
    if let (Some(address), false) = (metrics.as_ref().and_then(Metrics::address), args.quiet) {
        console::note(&format!("metrics: http://{address}/metrics"));
    }
    let records = Arc::new(Records::open(&args.write)?);
    let (exporting, feed) = Exporting::start(&args.export, &settings(args))?;
    let source = match &args.interface {
        Some(interface) => {
            let receivers = live::open(interface, args, &plan)?;
            Source::Live { interface: interface.clone(), capture: args.capture, receivers }
        }
        None => Source::Files(Box::new(source::files(&args.read, &WATCH))),
    };
    if let Some(user) = &user {
        privileges::become_user(user)?;
    }
    let every = args.stats.map(Duration::from_nanos);
    let title = || format!("{}, {}", plan.source.join(", "), text::seats(&plan));
    let screen = args.tui.then(|| Screen::open(title(), plan.queues)).transpose()?;
    let console =
        Arc::new(Console::new(&WATCH, source.extent(), every, args.quiet, screen, metrics));
    let duration = args.duration.map(Duration::from_nanos);
    signals::attended(&WATCH, &console, &records, &exporting, duration, || {
        if let (Source::Live { receivers, .. }, false) = (&source, args.quiet || args.tui) {
            live::announce(receivers);
        }
        let mut outcome = observe(&plan, source, &console, &records, feed)?;
        let written = records.finish();
        outcome.export = exporting.finish();
        for (kind, what) in exports::complaints(&outcome.export) {
            complain(kind, &what);
        }
        print(args, &outcome)?;
        written?;
        Ok(verdict(args, &outcome))
    })
    .context("attending to signals")?
}

/// Where packets come from.
enum Source {
    Files(Box<Files>),
    Live { interface: String, capture: Capture, receivers: Vec<Receiver> },
}

impl Source {
    fn extent(&self) -> Extent {
        match self {
            Self::Files(files) => Extent::Bytes(files.position().bytes_total),
            Self::Live { interface, capture, .. } => Extent::Live(interface.clone(), *capture),
        }
    }
}

/// What holds for all collectors.
fn settings(args: &MonitorArgs) -> Settings {
    let identity = args.tls_cert.clone().zip(args.tls_key.clone());
    Settings {
        observation_domain: args.observation_domain,
        refresh: args.template_refresh,
        tls: Tls { authorities: args.tls_ca.clone(), identity },
        vlan_in_key: args.vlan_in_key,
        sampling: args.sample.filter(|&of| of > 1).map(Sampling::Random),
        meter: Some(Meter::new(|| {
            let (dropped, shed) = (WATCH.dropped.get(), WATCH.shed.get());
            Metered {
                packets: WATCH.packets.get() + dropped,
                ignored_packets: dropped + shed,
                ..Metered::default()
            }
        })),
    }
}

/// Runs the plan and tells what the inputs had to say.
fn observe(
    plan: &Plan,
    source: Source,
    console: &Arc<Console>,
    records: &Arc<Records>,
    feed: Option<Feed>,
) -> anyhow::Result<Outcome> {
    let outputs = Outputs {
        record: listener(records, feed),
        alert: Some({
            let console = Arc::clone(console);
            Box::new(move |alert| console.alert(alert))
        }),
        interval: matches!(source, Source::Live { .. }).then(|| {
            let console = Arc::clone(console);
            let hear: OnInterval = Box::new(move |ended| console.interval(ended));
            hear
        }),
    };
    let outcome = match source {
        Source::Files(files) => ringtap_plan::run(plan, *files, outputs, &WATCH),
        Source::Live { receivers, .. } => ringtap_plan::run_live(plan, receivers, outputs, &WATCH),
    };
    console.close();
    let mut outcome = outcome?;
    outcome.notices.retain(|notice| !source::is_stop(notice));
    for notice in &outcome.notices {
        let kind = if notice.severity == Severity::Error { "error" } else { "warning" };
        complain(kind, &notice.to_string());
    }
    if let Some(failure) = &outcome.failure {
        complain("error", failure);
    }
    Ok(outcome)
}

/// Who hears of flow records: files, collectors, both or nobody.
fn listener(records: &Arc<Records>, feed: Option<Feed>) -> Option<OnRecord> {
    let records = (!records.is_empty()).then(|| Arc::clone(records));
    match (records, feed) {
        (None, None) => None,
        (None, Some(mut feed)) => Some(Box::new(move |record| feed.take(record))),
        (Some(records), None) => Some(Box::new(move |record| records.write(record))),
        (Some(records), Some(mut feed)) => Some(Box::new(move |record| {
            records.write(record);
            feed.take(record);
        })),
    }
}

/// The report to stdout, or to stderr where records have taken stdout.
fn print(args: &MonitorArgs, outcome: &Outcome) -> anyhow::Result<()> {
    let report = match args.report {
        Form::Text => text::report(outcome),
        Form::Json => outcome.to_json(env!("CARGO_PKG_VERSION"))? + "\n",
    };
    if stdout_is_taken(args) {
        // Nobody is left to hear of a failure.
        let _ = anstream::stderr().write_all(report.as_bytes());
        return Ok(());
    }
    console::print(&report)
}

/// Whether records go to stdout.
fn stdout_is_taken(args: &MonitorArgs) -> bool {
    args.write.iter().any(Destination::is_stdout) || args.export.iter().any(Collector::is_stdout)
}

fn verdict(args: &MonitorArgs, outcome: &Outcome) -> ExitCode {
    if outcome.notices.iter().any(|notice| notice.severity == Severity::Error) {
        return ExitCode::FAILURE;
    }
    if outcome.failure.is_some() || outcome.export.iter().any(|one| one.failure.is_some()) {
        return ExitCode::FAILURE;
    }
    let losses = outcome.losses();
    if !args.fail_on_drop || losses.is_empty() {
        return ExitCode::SUCCESS;
    }
    for (what, count) in losses {
        complain("error", &format!("{what}: {count}"));
    }
    ExitCode::from(LOST)
}

/// What packets must be like, if that was said.
fn filter(args: &MonitorArgs) -> anyhow::Result<Option<Arc<Expression>>> {
    let text = match (&args.filter, &args.words[..]) {
        (Some(text), _) => text.clone(),
        (None, []) => return Ok(None),
        (None, words) => words.join(" "),
    };
    match Expression::new(&text) {
        Ok(expression) => Ok(Some(Arc::new(expression))),
        Err(error @ ExpressionError::NoLibrary(_)) => Err(error.into()),
        Err(error) => Err(Usage::of(error)),
    }
}

fn request(args: &MonitorArgs) -> anyhow::Result<Request> {
    let (mut source, mut queues) = (Vec::new(), args.queues);
    match &args.interface {
        Some(interface) => {
            source.push(args.capture.source(interface));
            queues = queues.or(live::queues(interface, args)?.filter(|_| !args.sequential));
        }
        None => source.extend(args.read.iter().map(|path| path.display().to_string())),
    }
    Ok(Request {
        source,
        live: args.interface.is_some(),
        analyses: analyses(args),
        tunnels: args.tunnels,
        skeleton: if args.sequential { Some(Skeleton::Reference) } else { args.skeleton },
        queues,
        workers: args.workers,
        ring: args.threads.ring,
        ring_capacity: args.threads.ring_capacity,
        ring_batch: args.threads.ring_batch,
        cores: args.threads.cores(),
        metering: Metering {
            timeouts: timeouts(args),
            uniflow: args.uniflow,
            vlan_in_key: args.vlan_in_key,
        },
        interval_ns: args.interval.or(args.tui.then_some(WATCHED_INTERVAL_NS)),
        max_flows: args.max_flows,
        memory_bytes: args.memory,
        scan_threshold: args.scan_threshold,
        limits: limits(args),
        top: args.top,
        filter: filter(args)?,
        sample: args.sample,
        shed: args.shed,
        digest: args.digest,
        seed: args.seed.unwrap_or_else(random_seed),
    })
}

/// The view has a place for activity.
fn analyses(args: &MonitorArgs) -> Option<Analyses> {
    let asked = args.analyses;
    if args.tui && asked.is_none() {
        return Some(Analyses { activity: true, ..Analyses::ALL });
    }
    asked
}

fn limits(args: &MonitorArgs) -> Limits {
    let mut limits = Limits::default();
    for (name, limit) in &args.alert {
        // The parser knows the names.
        let _ = limits.set(name, *limit);
    }
    limits
}

/// The preset first, then what is said of all protocols, then what is said of one.
fn timeouts(args: &MonitorArgs) -> Timeouts {
    let list = args.timeouts.clone().unwrap_or_default();
    let mut timeouts = list.preset;
    if let Some(idle_ns) = args.idle_timeout {
        timeouts = timeouts.idle(idle_ns);
    }
    if let Some(active_ns) = args.active_timeout {
        timeouts.active_ns = active_ns;
    }
    for (name, time_ns) in &list.set {
        timeouts.set(name, *time_ns);
    }
    timeouts
}

/// From the system's source of randomness, from which the standard library draws, too.
pub(crate) fn random_seed() -> u64 {
    RandomState::new().build_hasher().finish()
}
