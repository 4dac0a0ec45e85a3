//! `ringtap monitor`: flags → options → plan → run → report.

use std::hash::{BuildHasher, RandomState};
use std::io::{self, IsTerminal, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use ringtap_engine::{ClockChanges, INTERRUPTED, Machine, Options, Plan, Watch};
use ringtap_enrich::{Anonymiser, Enrichment, Geo, Networks, WatchList, read_key};
use ringtap_export::formats::{Interface, Interfaces, Origins};
use ringtap_export::{Alerts, Meter, Metered, Output, Prepared, Sampling, Settings, Tls};
use ringtap_extract::{Extractors, Names};
use ringtap_flow::{Metering, Sinks, Timeouts};
use ringtap_io::bpf::{Expression, ExpressionError};
use ringtap_io::capture::{Files, Notice, Severity};
use ringtap_io::live::MergedReceiver;
use ringtap_monitor::state::{Identity, MOST_PROBE, OnPart, is_probe};
use ringtap_monitor::{Analyses, Limits, OnInterval, Outcome, Receivers};
use ringtap_skeleton::Skeleton;

use crate::alerts::{self, notice};
use crate::args::{Capture, MonitorArgs, ReportForm};
use crate::console::{Console, Extent};
use crate::metrics::Metrics;
use crate::outputs::{self, Outputs};
use crate::screen::Screen;
use crate::source::{Shared, Unopened};
use crate::states::{self, States};
use crate::units::TimeoutList;
use crate::web::{self, Web};
use crate::{live, signals, source, text};
use ringtap_program::atomic_file::Existing;
use ringtap_program::json::json;
use ringtap_program::privileges::CapabilitySet;
use ringtap_program::roles::Roles;
use ringtap_program::{notify, privileges, sandbox};
use ringtap_serve::Listening;
use ringtap_terminal::Usage;
use ringtap_terminal::console::{self, print_message};
use ringtap_terminal::html::html;
use ringtap_terminal::numbers::{bytes, count};

/// The exit code for losses with `--fail-on-drop`.
const LOST: u8 = 3;

/// The default interval with `--tui`.
const TUI_INTERVAL_NS: u64 = 5_000_000_000;

/// Fewer flows than a small network has.
const FEW_FLOWS: u64 = 10_000;

/// Most sources in the title of a page.
const TITLED: usize = 3;

static WATCH: Watch = Watch::new();

pub(crate) fn run(args: &MonitorArgs) -> anyhow::Result<ExitCode> {
    let interfaces = live::interfaces(args)?;
    let named = outputs(args)?;
    let existing = Existing::of(args.force, !interfaces.is_empty());
    roles(args, &named)?.check(existing)?;
    let plan = plan(args, &interfaces, &named, false)?;
    if let (Some(warning), false) = (little_room(args, &plan), args.quiet) {
        print_message("warning", &warning);
    }
    if args.dry_run {
        let plan = match args.report {
            ReportForm::Text | ReportForm::Html => text::plan(&plan),
            ReportForm::Json => json(&plan)?,
        };
        return console::print(&plan).map(|()| ExitCode::SUCCESS);
    }

    let stdout_is_taken = named.iter().any(Output::is_stdout);
    if args.tui && stdout_is_taken && io::stdout().is_terminal() {
        return Err(Usage::of(
            "--tui and records cannot both use the terminal: write the records to a file",
        ));
    }
    // Before an output is opened.
    source::check(&args.read).map_err(|unopened| explained(args, unopened))?;
    // Before the sandbox, which forbids to run programs.
    let helpers = alerts::start_helpers(&named, args.user.as_deref())?;
    // No sandbox for DPDK: its drivers open devices for writing.
    if interfaces.is_empty() || args.capture != Capture::Dpdk {
        let state = args.state.as_deref().map(states::written_path);
        let outputs = named.iter().filter_map(Output::path).chain(state.as_deref());
        sandbox::enter(outputs, !interfaces.is_empty())?;
    } else {
        console::note("files: not restricted, because DPDK's drivers write to devices");
    }
    privileges::forbid_new();
    let user = args.user.as_deref().map(privileges::user).transpose()?;
    let numbered = live::numbered(&interfaces, args)?;
    let names = interfaces.clone();
    let page = args.web.map(|address| Page::open(address, args)).transpose()?;
    let metrics = args.metrics.map(|address| Listening::at("--metrics", address)).transpose()?;
    if let (Some(url), false) = (metrics.as_ref().and_then(Listening::url), args.quiet) {
        console::note(&format!("metrics: {url}metrics"));
    }
    let settings = settings(args, &plan, &numbered, &WATCH);
    let prepared = Prepared::new(&named, settings)?.with_programs(helpers);
    let start = |prepared| {
        let (workers, collectors) = (plan.arrangement.workers, args.export.len());
        Outputs::start(&named, prepared, workers, collectors, existing)
    };
    let source = if interfaces.is_empty() {
        let window_bytes = source::window_bytes(args.memory);
        Source::Files(Box::new(source::reader(&args.read, &WATCH).with_window_max(window_bytes)))
    } else {
        let receivers = live::open(&interfaces, args, &plan)?;
        Source::Live { interfaces, capture: args.capture, receivers }
    };
    let state = args.state.as_deref().map(states::written_path);
    let outputs = named.iter().filter_map(Output::path).chain(state.as_deref());
    match &user {
        Some(user) => privileges::become_user(user)?,
        None if args.capture == Capture::Dpdk && plan.options.live => {
            console::note("capabilities: keeps all, because DPDK's drivers need them");
        }
        None => {
            let inputs = args.read.iter().map(PathBuf::as_path);
            privileges::drop_capabilities(CapabilitySet::empty(), inputs, outputs)?;
        }
    }
    // Record files are opened, renamed and rotated with the rights that remain.
    let (mut outputs, mut sinks) = match &user {
        Some(user) => start(prepared)
            .with_context(|| format!("as the user {}", user.name.to_string_lossy()))?,
        None => start(prepared)?,
    };
    let control = outputs.control();
    let every = args.stats.map(Duration::from_nanos);
    let title = || format!("{}, {}", plan.options.source.join(", "), text::seats(&plan));
    let screen = args
        .tui
        .then(|| {
            Screen::open(
                title(),
                plan.arrangement.queues,
                plan.app.max_flows(),
                text::threads(&plan),
            )
        })
        .transpose()?;
    let parts = page.is_some().then(|| web::parts(&mut sinks));
    let console = Console::new(
        &WATCH,
        source.extent(),
        every,
        args.quiet,
        screen,
        control.handle().clone(),
        alerts::are_printed(&args.alert_to),
    );
    let reporter = parts.as_ref().map(|parts| parts.reporter.clone());
    let console = Arc::new(console.with_page(reporter));
    let numbers = || {
        let console = Arc::clone(&console);
        Metrics::new(&WATCH, plan.arrangement.queues, &names, move || console.run_stats())
    };
    let _metrics = metrics.map(|listening| listening.serve_metrics(numbers())).transpose()?;
    let about = || web::About {
        title: plan.options.source.join(", "),
        is_live: plan.options.live,
        measures_tcp: plan.app.analyses.tcp,
        max_flows: plan.app.max_flows(),
        threads: text::threads(&plan),
    };
    let serve = |(page, parts): (Page, web::Parts)| {
        page.listening.serve("web", Web::new(about(), page.access, numbers(), &WATCH, parts))
    };
    let _page = page.zip(parts).map(serve).transpose()?;
    let duration = args.duration.map(Duration::from_nanos);
    signals::attended(&WATCH, &console, &control, duration, || {
        if let (Source::Live { receivers, .. }, false) = (&source, args.quiet || args.tui) {
            live::announce_merged(receivers);
        }
        notify::ready(&format!("monitoring {}", plan.options.source.join(", ")));
        let topics = outputs.take_states();
        let (states, on_part) =
            States::start(args.state.as_deref(), existing, topics, &plan, &WATCH)?;
        let alerts = outputs.take_alerts();
        let mut outcome = run_plan(&plan, source, &console, sinks, on_part, alerts)?;
        let saved = states.finish(&outcome);
        (outcome.export, outcome.write) = outputs.finish();
        // An output may have recovered since the last turn of the attendant.
        console.tick();
        for all in [&outcome.export, &outcome.write] {
            for (kind, text) in outputs::messages(all) {
                print_message(kind, &text);
            }
        }
        print(args, &outcome, stdout_is_taken)?;
        saved?;
        Ok(exit_code(args, &outcome))
    })
    .context("handling signals")?
}

/// The error about inputs that cannot be opened. If they are the words of a filter expression, it
/// says how to give one.
fn explained(args: &MonitorArgs, unopened: Unopened) -> anyhow::Error {
    let words: Vec<_> = args.read.iter().map(|path| path.to_string_lossy()).collect();
    let is_missing = |path: &PathBuf| unopened.0.iter().any(|notice| notice.path == *path);
    let begins = |&at: &usize| is_missing(&args.read[at]) && begins_expression(&words[at]);
    let start = (1..words.len()).find(begins);
    let expression = start.map(|at| words[at..].join(" "));
    let expression = expression.filter(|text| Expression::new(text).is_ok());
    match (start, expression) {
        (Some(at), Some(expression)) => anyhow::anyhow!(
            "{unopened}; put a filter expression after --: ringtap monitor -r {} -- {expression}",
            words[..at].join(" ")
        ),
        _ => unopened.into(),
    }
}

/// Whether a word can only begin a filter expression. Other words could be names of hosts, which
/// are not looked up for a file that is missing.
fn begins_expression(word: &str) -> bool {
    const WORDS: [&str; 33] = [
        "arp",
        "broadcast",
        "dst",
        "ether",
        "gateway",
        "geneve",
        "greater",
        "host",
        "icmp",
        "icmp6",
        "igmp",
        "inbound",
        "ip",
        "ip6",
        "less",
        "mpls",
        "multicast",
        "net",
        "not",
        "outbound",
        "port",
        "portrange",
        "pppoes",
        "proto",
        "rarp",
        "sctp",
        "src",
        "stp",
        "tcp",
        "udp",
        "vlan",
        "vxlan",
        "wlan",
    ];
    let first = word.split(|letter: char| !letter.is_ascii_alphanumeric()).next();
    word.starts_with(['!', '(']) || first.is_some_and(|first| WORDS.contains(&first))
}

/// The warning that `--memory` leaves room for few flows.
fn little_room(args: &MonitorArgs, plan: &Plan<ringtap_monitor::Options>) -> Option<String> {
    let flows = plan.app.max_flows();
    let is_chosen = args.max_flows.is_some_and(|most| most <= flows);
    let limit = args.memory.filter(|_| flows < FEW_FLOWS && !is_chosen)?;
    Some(format!(
        "--memory {} leaves room for {} flows at a time, so flows may end early: raise it, or use fewer outputs or workers",
        bytes(limit),
        count(flows)
    ))
}

/// The outputs of the flags.
pub(crate) fn outputs(args: &MonitorArgs) -> anyhow::Result<Vec<Output>> {
    if args.read.is_empty() && args.interface.is_empty() {
        return Err(Usage::of("nothing to read: use -r trace.pcap, -r - for stdin, or -i eth0"));
    }
    if !args.events.is_empty() && args.extract == Some(Extractors::NONE) {
        return Err(Usage::of("--events needs payloads: omit --extract none"));
    }
    let alerts = alerts::outputs(&args.alert_to);
    let all = outputs::named(&args.export, &args.write, &args.events.concat(), &alerts)?;
    check_use(args, &all)?;
    Ok(all)
}

/// Checks that flags have an effect, as far as their definition does not.
fn check_use(args: &MonitorArgs, outputs: &[Output]) -> anyhow::Result<()> {
    let analyses = args.analyses.unwrap_or(Analyses::ALL);
    let encrypts = outputs.iter().any(Output::is_encrypted);
    let page_is_encrypted = args.web.is_some() && args.tls_cert.is_some();
    for (given, has_effect, flag, needed) in [
        (
            args.tls_ca.is_some(),
            encrypts,
            "--tls-ca",
            "an output with TLS, as in --export ipfix+tls://HOST",
        ),
        (
            args.tls_cert.is_some(),
            encrypts || page_is_encrypted,
            "--tls-cert",
            "an output with TLS, as in --export ipfix+tls://HOST, or --web",
        ),
        (args.dpdk_args.is_some(), args.capture == Capture::Dpdk, "--dpdk-args", "--capture dpdk"),
        (
            args.names.is_some(),
            args.extract != Some(Extractors::NONE),
            "--names",
            "payloads: omit --extract none",
        ),
        (args.scan_threshold.is_some(), analyses.scans, "--scan-threshold", "the analysis scans"),
    ] {
        if given && !has_effect {
            return Err(Usage::of(format!("{flag} has no effect: it needs {needed}")));
        }
    }
    TimeoutList::join(&args.timeouts).map_err(Usage::of)?;
    Ok(())
}

/// The files of the flags.
pub(crate) fn roles(args: &MonitorArgs, outputs: &[Output]) -> anyhow::Result<Roles> {
    let mut roles = Roles::default();
    roles.reads("--read", &args.read);
    roles.reads("--config", &args.config).reads("--names", &args.names);
    roles.reads("--watch", &args.watch).reads("--networks", &args.networks);
    roles.reads("--geo", &args.geo).reads("--anonymise", &args.anonymise);
    roles.reads("--tls-ca", &args.tls_ca).reads("--tls-cert", &args.tls_cert);
    roles.reads("--tls-key", &args.tls_key).reads("--web-token", &args.web_token);
    for output in outputs {
        match (output, output.path()) {
            (Output::Alerts(alerts), Some(path)) => {
                roles.other(&format!("--alert-to {alerts}"), path);
            }
            (Output::Alerts(alerts), None) => {
                let program = alerts.program().map(alerts::find_program).transpose()?;
                roles.reads("--alert-to exec", program);
            }
            (_, Some(path)) => {
                roles.output(output, path);
            }
            (_, None) => {}
        }
    }
    let state = args.state.as_deref().filter(|path| !states::is_folder(path));
    roles.writes("--state", state);
    Ok(roles)
}

/// The plan of a run with these `outputs`; `keep_state`: with a state in memory.
pub(crate) fn plan(
    args: &MonitorArgs,
    interfaces: &[String],
    outputs: &[Output],
    keep_state: bool,
) -> anyhow::Result<Plan<ringtap_monitor::Options>> {
    let run_options = options(args, interfaces, outputs)?;
    let monitor_options = ringtap_monitor::Options {
        watch: watch(args)?,
        enrichment: enrichment(args)?,
        state: identity(args, keep_state)?,
        ..monitor_options(args, names(args.names.as_deref())?)
    };
    Plan::new(run_options, monitor_options, &Machine::this()).map_err(Usage::of)
}

/// The live page, before the run.
struct Page {
    listening: Listening,
    access: web::Access,
}

impl Page {
    fn open(address: SocketAddr, args: &MonitorArgs) -> anyhow::Result<Self> {
        let access = web::Access::new(address, args.web_token.as_deref())?;
        let mut listening = Listening::at("--web", address)?;
        if let (Some(certificate), Some(key)) = (&args.tls_cert, &args.tls_key) {
            let files = [("--tls-cert", &**certificate), ("--tls-key", &**key)];
            listening = listening.with_tls(files[0], files[1]).map_err(Usage::of)?;
        }
        if let (Some(url), false) = (listening.url(), args.quiet) {
            console::note(&format!("page: {url}"));
        }
        Ok(Self { listening, access })
    }
}

/// The source of packets.
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

/// Settings of all outputs.
pub(crate) fn settings(
    args: &MonitorArgs,
    plan: &Plan<ringtap_monitor::Options>,
    interfaces: &[Interface],
    watch: impl Shared,
) -> Settings {
    let origins = Origins { networks: args.networks.is_some(), geo: !args.geo.is_empty() };
    let interfaces = Interfaces::new(interfaces).with(origins);
    let identity = args.tls_cert.clone().zip(args.tls_key.clone());
    Settings {
        observation_domain: args.observation_domain,
        refresh: args.template_refresh,
        tls: Tls { authorities: args.tls_ca.clone(), identity },
        vlan_in_key: args.vlan_in_key,
        probe: Some(probe(args)),
        live: !interfaces.is_empty(),
        prompt: args.read.is_empty() || !args.read.iter().all(|path| path.is_file()),
        interfaces,
        sampling: args.sample.filter(|&of| of > 1).map(Sampling::Random),
        meter: Some(Meter::new(move || {
            let (dropped, shed) = (watch.dropped.get(), watch.shed.get());
            Metered {
                packets: watch.packets.get() + dropped,
                ignored_packets: dropped + shed,
                ..Metered::default()
            }
        })),
        buffer_bytes: plan.buffers.output_bytes as usize,
    }
}

/// Runs the plan and prints the notices of the inputs.
fn run_plan(
    plan: &Plan<ringtap_monitor::Options>,
    source: Source,
    console: &Arc<Console>,
    sinks: Vec<Sinks>,
    part: Option<OnPart>,
    mut alerts: Alerts,
) -> anyhow::Result<Outcome> {
    let live = plan.options.live;
    let receivers = Receivers {
        part,
        alert: Some({
            let console = Arc::clone(console);
            Box::new(move |alert| {
                console.alert(alert);
                if !alerts.is_empty() {
                    alerts.send(&notice(alert));
                }
            })
        }),
        interval: live.then(|| {
            let console = Arc::clone(console);
            let on_interval: OnInterval = Box::new(move |ended| console.interval(ended));
            on_interval
        }),
        totals: Some({
            let console = Arc::clone(console);
            Box::new(move |totals| console.totals(totals))
        }),
    };
    let outputs = ringtap_monitor::Outputs { sinks, receivers };
    let outcome = match source {
        Source::Files(files) => ringtap_monitor::run(plan, *files, outputs, &WATCH),
        Source::Live { receivers, .. } => {
            ringtap_monitor::run_live(plan, receivers, outputs, &WATCH)
        }
    };
    console.close();
    let mut outcome = outcome?;
    for (kind, text) in messages(&mut outcome) {
        print_message(kind, &text);
    }
    Ok(outcome)
}

/// The errors and warnings of a finished run, as kind and text. Removes notices of a requested stop.
pub(crate) fn messages(outcome: &mut Outcome) -> Vec<(&'static str, String)> {
    outcome.run.notices.retain(|notice| !source::is_stop(notice));
    let kind = |notice: &Notice| match notice.severity {
        Severity::Error => "error",
        _ => "warning",
    };
    let mut all: Vec<_> =
        outcome.run.notices.iter().map(|notice| (kind(notice), notice.to_string())).collect();
    // On interfaces, clock changes were reported during the run.
    let clock = match outcome.plan.options.live {
        true => ClockChanges { set: 0, ..outcome.run.clock },
        false => outcome.run.clock,
    };
    let warning = |text| ("warning", text);
    all.extend(outcome.run.interrupted.then(|| warning(INTERRUPTED.to_owned())));
    all.extend(clock.notices().into_iter().map(warning));
    all.extend(outcome.run.failure.iter().map(|failure| ("error", failure.to_string())));
    all.extend(outcome.warnings().into_iter().map(warning));
    all
}

/// The title of a page.
fn page_title(args: &MonitorArgs) -> String {
    let file = |path: &PathBuf| {
        path.file_name().map_or_else(|| "-".into(), |name| name.to_string_lossy().into_owned())
    };
    let mut names: Vec<_> = args.read.iter().map(file).chain(args.interface.clone()).collect();
    let further = names.len().saturating_sub(TITLED);
    names.truncate(TITLED);
    let further = if further > 0 { format!(" and {further} more") } else { String::new() };
    format!("ringtap: {}{further}", names.join(", "))
}

/// Prints the report to stdout, or to stderr if records use stdout.
fn print(args: &MonitorArgs, outcome: &Outcome, stdout_is_taken: bool) -> anyhow::Result<()> {
    let report = match args.report {
        ReportForm::Text => text::report(outcome).text(),
        ReportForm::Json => outcome.to_json(env!("CARGO_PKG_VERSION"))? + "\n",
        ReportForm::Html => html(&text::report(outcome), &page_title(args), &text::about()),
    };
    if stdout_is_taken {
        // If stderr is closed, ignore the error.
        let _ = console::stderr().write_all(report.as_bytes());
        return Ok(());
    }
    console::print(&report)
}

/// The exit code; prints losses with `--fail-on-drop`.
fn exit_code(args: &MonitorArgs, outcome: &Outcome) -> ExitCode {
    if has_failed(outcome) {
        return ExitCode::FAILURE;
    }
    if outcome.run.interrupted {
        return ExitCode::from(signals::INTERRUPTED);
    }
    let losses = losses(args, outcome);
    losses.iter().for_each(|loss| print_message("error", loss));
    if losses.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(LOST) }
}

/// Returns true if reading, writing or exporting failed.
pub(crate) fn has_failed(outcome: &Outcome) -> bool {
    let mut outputs = outcome.export.iter().chain(&outcome.write);
    outcome.run.notices.iter().any(|notice| notice.severity == Severity::Error)
        || outcome.run.failure.is_some()
        || outputs.any(|one| one.failure.is_some())
}

/// The losses that fail the run with `--fail-on-drop`.
pub(crate) fn losses(args: &MonitorArgs, outcome: &Outcome) -> Vec<String> {
    let losses = if args.fail_on_drop { outcome.losses() } else { Vec::new() };
    losses.into_iter().map(|(what, count)| format!("{what}: {count}")).collect()
}

/// The filter expression, if any.
fn filter(args: &MonitorArgs) -> anyhow::Result<Option<Arc<Expression>>> {
    let text = match (&args.filter, &args.words[..]) {
        (Some(text), _) => text.clone(),
        (None, []) => return Ok(None),
        (None, words) => words.join(" "),
    };
    match Expression::new(&text) {
        // Its addresses may be those of packets.
        Ok(expression) if args.anonymise.is_some() => {
            Ok(Some(Arc::new(expression.shown_as("(not shown with --anonymise)"))))
        }
        Ok(expression) => Ok(Some(Arc::new(expression))),
        Err(error @ ExpressionError::NoLibrary(_)) => Err(error.into()),
        Err(error) => Err(Usage::of(error)),
    }
}

/// The run options of the flags.
fn options(
    args: &MonitorArgs,
    interfaces: &[String],
    outputs: &[Output],
) -> anyhow::Result<Options> {
    let (mut source, mut queues) = (Vec::new(), args.queues);
    if interfaces.is_empty() {
        source.extend(args.read.iter().map(|path| path.display().to_string()));
    } else {
        source.extend(interfaces.iter().map(|interface| args.capture.source(interface)));
        queues = queues.or(live::queues(interfaces, args)?.filter(|_| !args.sequential));
    }
    let skeleton = args.skeleton.or_else(|| live::skeleton(interfaces, args));
    Ok(Options {
        source,
        live: !interfaces.is_empty(),
        tunnels: args.tunnels,
        filter: filter(args)?,
        sample: args.sample.unwrap_or(1),
        dedup_ns: args.dedup.filter(|&window_ns| window_ns > 0),
        shed: args.shed,
        skeleton: if args.sequential { Some(Skeleton::Reference) } else { skeleton },
        queues,
        workers: args.workers,
        outputs: outputs.iter().filter(|one| !matches!(one, Output::Alerts(_))).count(),
        output_fixed_bytes: outputs.iter().map(Output::fixed_bytes).sum(),
        input_bytes: if args.memory.is_some()
            && args.read.iter().any(|path| source::may_be_zstd(path))
        {
            source::window_bytes(args.memory)
        } else {
            0
        },
        memory_bytes: args.memory,
        ..args.threads.options(args.seed)
    })
}

/// The monitor options of the flags.
fn monitor_options(args: &MonitorArgs, names: Arc<Names>) -> ringtap_monitor::Options {
    let defaults = ringtap_monitor::Options::default();
    ringtap_monitor::Options {
        // The views of a run also show activity.
        analyses: args.analyses.unwrap_or(Analyses { activity: is_viewed(args), ..Analyses::ALL }),
        extract: args.extract.unwrap_or(defaults.extract),
        events: !args.events.is_empty(),
        names,
        metering: Metering {
            timeouts: timeouts(args),
            uniflow: args.uniflow,
            vlan_in_key: args.vlan_in_key,
        },
        interval_ns: args.interval.or(args.tui.then_some(TUI_INTERVAL_NS)),
        charts: args.report == ReportForm::Html,
        max_flows: args.max_flows,
        scan_threshold: args.scan_threshold.unwrap_or(defaults.scan_threshold),
        limits: limits(args),
        top: args.top.unwrap_or(defaults.top),
        digest: args.digest,
        ..defaults
    }
}

/// Whether the run is viewed while it goes on.
fn is_viewed(args: &MonitorArgs) -> bool {
    args.tui || args.web.is_some()
}

/// The run whose state is saved: to files or a topic, or in memory (`keep`) if the flags allow it.
fn identity(args: &MonitorArgs, keep: bool) -> anyhow::Result<Option<Identity>> {
    let on = args.analyses.unwrap_or(Analyses::ALL);
    let is_complete = on.flows && on.volumes && on.talkers && args.anonymise.is_none();
    let has_intervals = args.interval.is_some() || !args.interface.is_empty();
    args.state.as_deref().map(|path| states::check(path, has_intervals)).transpose()?;
    let is_exported = outputs::takes_states(&args.export);
    if is_exported && args.anonymise.is_some() {
        return Err(Usage::of(
            "a state has addresses: --anonymise cannot be used with --export …?format=state",
        ));
    }
    let is_wanted = is_exported || args.state.is_some();
    if is_wanted && !is_complete {
        let flag = if is_exported { "--export …?format=state" } else { "--state" };
        return Err(Usage::of(format!("{flag} needs the analyses flows, volumes and talkers")));
    }
    if let Some(name) = args.probe.as_ref().filter(|name| !is_probe(name)) {
        return Err(Usage::of(format!(
            "--probe {name:?}: use at most {MOST_PROBE} bytes without control characters"
        )));
    }
    if !is_complete || !(keep || is_wanted) {
        return match args.probe {
            Some(_) if !outputs::has_topic(&args.export) => Err(Usage::of(
                "--probe names states and messages of Kafka: use it with --state, or --export kafka://…",
            )),
            _ => Ok(None),
        };
    }
    Ok(Some(Identity {
        // The standard library's random keys.
        run: RandomState::new().hash_one(std::process::id()),
        probe: probe(args),
        in_parts: match &args.state {
            Some(path) => states::is_folder(path),
            None => is_exported && has_intervals,
        },
    }))
}

/// The name of this machine or link.
fn probe(args: &MonitorArgs) -> String {
    let host = || std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    args.probe.clone().unwrap_or_else(|| host().trim_end().to_owned())
}

/// The list of names: of the file, or the built-in one.
pub(crate) fn names(path: Option<&Path>) -> anyhow::Result<Arc<Names>> {
    let Some(path) = path else { return Ok(Names::built_in()) };
    let named = || format!("reading the names in {}", path.display());
    let list = std::fs::read(path).map_err(Usage::of).with_context(named)?;
    let names = Names::parse(&list).map_err(|error| Usage::of(format!("{}: {error}", named())))?;
    Ok(Arc::new(names))
}

/// The watched entries.
fn watch(args: &MonitorArgs) -> anyhow::Result<Option<Arc<WatchList>>> {
    let Some(path) = &args.watch else {
        if args.analyses.is_some_and(|analyses| analyses.watch) {
            return Err(Usage::of("the analysis watch needs a list: use --watch FILE"));
        }
        return Ok(None);
    };
    let named = || format!("reading the watched entries in {}", path.display());
    let list = WatchList::read(path).map_err(|error| Usage::of(format!("{}: {error}", named())))?;
    if list.needs_payloads() && args.extract == Some(Extractors::NONE) {
        return Err(Usage::of(
            "--watch has names or fingerprints, which need payloads: omit --extract none",
        ));
    }
    Ok(Some(Arc::new(list)))
}

/// What is added to records and the report, and replaced in them.
fn enrichment(args: &MonitorArgs) -> anyhow::Result<Enrichment> {
    let anonymiser = args.anonymise.as_ref().map(|path| -> anyhow::Result<_> {
        let named = || format!("reading the key in {}", path.display());
        let key = read_key(path).map_err(|error| Usage::of(format!("{}: {error}", named())))?;
        Ok(Arc::new(Anonymiser::new(&key)))
    });
    let networks = args.networks.as_ref().map(|path| -> anyhow::Result<_> {
        let named = || format!("reading the networks in {}", path.display());
        let list =
            Networks::read(path).map_err(|error| Usage::of(format!("{}: {error}", named())))?;
        Ok(Arc::new(list))
    });
    let mut geo = Geo::default();
    for path in &args.geo {
        let named = || format!("reading the database {}", path.display());
        geo.add(path).map_err(|error| Usage::of(format!("{}: {error}", named())))?;
    }
    Ok(Enrichment {
        networks: networks.transpose()?,
        geo: (!args.geo.is_empty()).then(|| Arc::new(geo)),
        anonymiser: anonymiser.transpose()?,
    })
}

/// The alert limits of the flags.
fn limits(args: &MonitorArgs) -> Limits {
    let mut limits = Limits::default();
    for (name, limit) in &args.alert {
        // The parser of the flags has checked the names.
        let _ = limits.set(name, *limit);
    }
    limits
}

/// The timeouts of the flags: the preset, then those for all protocols, then single ones.
fn timeouts(args: &MonitorArgs) -> Timeouts {
    // Checked before.
    let list = TimeoutList::join(&args.timeouts).unwrap_or_default();
    let mut timeouts = list.preset.unwrap_or_default();
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
