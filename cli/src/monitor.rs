//! `ringtap monitor`: flags → request → plan → run → report.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use ringtap_engine::{
    Analyses, ClockChanges, Expression, ExpressionError, Files, Limits, Machine, Metering,
    OnInterval, Outcome, Plan, RecordSink, Request, Severity, Skeleton, Timeouts, Watch,
};
use ringtap_export::records::Interfaces;
use ringtap_export::{Meter, Metered, Output, Prepared, Sampling, Settings, Tls};
use ringtap_io::live::MergedReceiver;

use crate::args::{Capture, Form, MonitorArgs};
use crate::console::{Console, Extent};
use crate::metrics::Metrics;
use crate::outputs::{self, Outputs};
use crate::screen::Screen;
use crate::{live, notify, privileges, sandbox, signals, source, text};
use ringtap_terminal::Usage;
use ringtap_terminal::console::{self, complain};

const LOST: u8 = 3;

/// The interval of a run that somebody looks at.
const WATCHED_INTERVAL_NS: u64 = 5_000_000_000;

static WATCH: Watch = Watch::new();

pub(crate) fn run(args: &MonitorArgs) -> anyhow::Result<ExitCode> {
    let interfaces = live::interfaces(args)?;
    if args.read.is_empty() && interfaces.is_empty() {
        return Err(Usage::of(
            "nothing to read; name capture files, as in -r trace.pcap, or - for stdin, or an interface, as in -i eth0",
        ));
    }
    let named = outputs::named(&args.export, &args.write)?;
    let plan = request(args, &interfaces, &named)?;
    let plan = Plan::new(plan, &Machine::this()).map_err(Usage::of)?;
    if args.dry_run {
        let plan = match args.report {
            Form::Text => text::plan(&plan),
            Form::Json => serde_json::to_string_pretty(&plan)? + "\n",
        };
        return console::print(&plan).map(|()| ExitCode::SUCCESS);
    }

    let stdout_is_taken = named.iter().any(Output::is_stdout);
    if args.tui && stdout_is_taken && io::stdout().is_terminal() {
        return Err(Usage::of("--tui and records cannot both go to the terminal"));
    }
    // Drivers of DPDK open devices for writing.
    if interfaces.is_empty() || args.capture != Capture::Dpdk {
        sandbox::enter(named.iter().filter_map(Output::path))?;
    }
    let user = args.user.as_deref().map(privileges::user).transpose()?;
    let numbered = live::numbered(&interfaces, args)?;
    let names = interfaces.clone();
    let metrics = args.metrics.map(Metrics::listen).transpose()?;
    if let (Some(address), false) = (metrics.as_ref().and_then(Metrics::address), args.quiet) {
        console::note(&format!("metrics: http://{address}/metrics"));
    }
    let settings = settings(args, &plan, Interfaces::new(&numbered));
    let prepared = Prepared::new(&named, settings)?;
    let start = |prepared| Outputs::start(prepared, plan.workers, args.export.len());
    // With a user to become, files are opened, renamed and begun anew as that user.
    let (early, late) =
        if user.is_none() { (Some(prepared), None) } else { (None, Some(prepared)) };
    let early = early.map(start).transpose()?;
    let source = if interfaces.is_empty() {
        Source::Files(Box::new(source::files(&args.read, &WATCH)))
    } else {
        let receivers = live::open(&interfaces, args, &plan)?;
        Source::Live { interfaces, capture: args.capture, receivers }
    };
    if let Some(user) = &user {
        privileges::become_user(user)?;
    }
    let as_user =
        || user.as_ref().map_or(String::new(), |user| format!("as the user {}", user.name));
    let late = late.map(start).transpose().with_context(as_user)?;
    let Some((outputs, sinks)) = early.or(late) else { unreachable!("started before or after") };
    let control = outputs.control();
    let every = args.stats.map(Duration::from_nanos);
    let title = || format!("{}, {}", plan.source.join(", "), text::seats(&plan));
    let screen = args.tui.then(|| Screen::open(title(), plan.queues)).transpose()?;
    let console = Arc::new(Console::new(
        &WATCH,
        source.extent(),
        every,
        args.quiet,
        screen,
        control.handle().clone(),
    ));
    let serve = |metrics: Metrics| {
        let console = Arc::clone(&console);
        metrics.serve(&WATCH, plan.queues, &names, move || console.standing())
    };
    let _metrics = metrics.map(serve).transpose()?;
    let duration = args.duration.map(Duration::from_nanos);
    signals::attended(&WATCH, &console, &control, duration, || {
        if let (Source::Live { receivers, .. }, false) = (&source, args.quiet || args.tui) {
            live::announce_merged(receivers);
        }
        notify::ready(&format!("monitoring {}", plan.source.join(", ")));
        let mut outcome = observe(&plan, source, &console, sinks)?;
        (outcome.export, outcome.write) = outputs.finish();
        for all in [&outcome.export, &outcome.write] {
            for (kind, what) in outputs::complaints(all) {
                complain(kind, &what);
            }
        }
        print(args, &outcome, stdout_is_taken)?;
        Ok(verdict(args, &outcome))
    })
    .context("attending to signals")?
}

/// Where packets come from.
enum Source {
    Files(Box<Files>),
    Live { interfaces: Vec<String>, capture: Capture, receivers: Vec<MergedReceiver> },
}

impl Source {
    fn extent(&self) -> Extent {
        match self {
            Self::Files(files) => Extent::Bytes(files.position().bytes_total),
            Self::Live { interfaces, capture, .. } => Extent::Live(interfaces.clone(), *capture),
        }
    }
}

/// What holds for all outputs.
fn settings(args: &MonitorArgs, plan: &Plan, interfaces: Interfaces) -> Settings {
    let identity = args.tls_cert.clone().zip(args.tls_key.clone());
    Settings {
        observation_domain: args.observation_domain,
        refresh: args.template_refresh,
        tls: Tls { authorities: args.tls_ca.clone(), identity },
        vlan_in_key: args.vlan_in_key,
        live: !interfaces.is_empty(),
        prompt: args.read.is_empty() || !args.read.iter().all(|path| path.is_file()),
        interfaces,
        sampling: args.sample.filter(|&of| of > 1).map(Sampling::Random),
        meter: Some(Meter::new(|| {
            let (dropped, shed) = (WATCH.dropped.get(), WATCH.shed.get());
            Metered {
                packets: WATCH.packets.get() + dropped,
                ignored_packets: dropped + shed,
                ..Metered::default()
            }
        })),
        buffer_bytes: plan.output_bytes as usize,
    }
}

/// Runs the plan and tells what the inputs had to say.
fn observe(
    plan: &Plan,
    source: Source,
    console: &Arc<Console>,
    records: Vec<Box<dyn RecordSink>>,
) -> anyhow::Result<Outcome> {
    let live = matches!(source, Source::Live { .. });
    let outputs = ringtap_engine::Outputs {
        records,
        alert: Some({
            let console = Arc::clone(console);
            Box::new(move |alert| console.alert(alert))
        }),
        interval: live.then(|| {
            let console = Arc::clone(console);
            let hear: OnInterval = Box::new(move |ended| console.interval(ended));
            hear
        }),
        shortage: Some({
            let console = Arc::clone(console);
            Box::new(move |shortage| console.shortage(shortage))
        }),
    };
    let outcome = match source {
        Source::Files(files) => ringtap_engine::run(plan, *files, outputs, &WATCH),
        Source::Live { receivers, .. } => {
            ringtap_engine::run_live(plan, receivers, outputs, &WATCH)
        }
    };
    console.close();
    let mut outcome = outcome?;
    outcome.notices.retain(|notice| !source::is_stop(notice));
    for notice in &outcome.notices {
        let kind = if notice.severity == Severity::Error { "error" } else { "warning" };
        complain(kind, &notice.to_string());
    }
    // Of an interface, that its clock was set was said at once.
    let clock = match live {
        true => ClockChanges { set: 0, ..outcome.clock },
        false => outcome.clock,
    };
    clock.notices().iter().for_each(|notice| complain("warning", notice));
    if let Some(failure) = &outcome.failure {
        complain("error", failure);
    }
    for warning in outcome.warnings() {
        complain("warning", &warning);
    }
    Ok(outcome)
}

/// The report to stdout, or to stderr where records have taken stdout.
fn print(args: &MonitorArgs, outcome: &Outcome, stdout_is_taken: bool) -> anyhow::Result<()> {
    let report = match args.report {
        Form::Text => text::report(outcome),
        Form::Json => outcome.to_json(env!("CARGO_PKG_VERSION"))? + "\n",
    };
    if stdout_is_taken {
        // If stderr is closed, too, nothing more can be done.
        let _ = anstream::stderr().write_all(report.as_bytes());
        return Ok(());
    }
    console::print(&report)
}

fn verdict(args: &MonitorArgs, outcome: &Outcome) -> ExitCode {
    if outcome.notices.iter().any(|notice| notice.severity == Severity::Error) {
        return ExitCode::FAILURE;
    }
    let mut outputs = outcome.export.iter().chain(&outcome.write);
    if outcome.failure.is_some() || outputs.any(|one| one.failure.is_some()) {
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

fn request(
    args: &MonitorArgs,
    interfaces: &[String],
    outputs: &[Output],
) -> anyhow::Result<Request> {
    let (mut source, mut queues) = (Vec::new(), args.queues);
    if interfaces.is_empty() {
        source.extend(args.read.iter().map(|path| path.display().to_string()));
    } else {
        source.extend(interfaces.iter().map(|interface| args.capture.source(interface)));
        queues = queues.or(live::queues(interfaces, args)?.filter(|_| !args.sequential));
    }
    let skeleton = args.skeleton.or_else(|| live::skeleton(interfaces, args));
    Ok(Request {
        source,
        live: !interfaces.is_empty(),
        analyses: analyses(args),
        extract: args.extract,
        tunnels: args.tunnels,
        skeleton: if args.sequential { Some(Skeleton::Reference) } else { skeleton },
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
        outputs: outputs.len(),
        output_fixed_bytes: outputs.iter().map(Output::fixed_bytes).sum(),
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
