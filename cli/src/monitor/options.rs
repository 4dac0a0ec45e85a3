//! Flags as options: of the run, of the monitor, of the outputs.

use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use ringtap_base::without_secrets;
use ringtap_engine::{Machine, Options, Plan, RecentBytes};
use ringtap_enrich::{
    Anonymiser, Enrichment, Geo, Networks, Vendors, Vlans, WatchList, read_key, read_list,
};
use ringtap_export::formats::{Interface, Interfaces, Origins};
use ringtap_export::{Items, Meter, Metered, Output, Sampling, Settings, Tls};
use ringtap_extract::{Extractors, InvalidNames, Names};
use ringtap_flow::{Metering, Timeouts};
use ringtap_io::bpf::{Expression, ExpressionError};
use ringtap_monitor::report::Time;
use ringtap_monitor::state::{Identity, MOST_PROBE, is_probe};
use ringtap_monitor::{AllowList, Analyses, ChangeLimits, Limits, Observers};
use ringtap_program::atomic_file::Existing;
use ringtap_program::retention::Retention;
use ringtap_query::moment::{self, Zone};
use ringtap_skeleton::Skeleton;
use ringtap_terminal::Usage;

use super::store;
use crate::args::{MonitorArgs, ReportForm};
use crate::source::Shared;
use crate::units::TimeoutList;
use crate::{live, outputs, source, states};
use ringtap_store::FileRules;

/// The default interval with `--tui`.
const TUI_INTERVAL_NS: u64 = 5_000_000_000;

/// The plan of a run with these `outputs`; `keep_state`: with a state in memory.
pub(crate) fn plan(
    args: &MonitorArgs,
    interfaces: &[String],
    outputs: &[Output],
    keep_state: bool,
) -> anyhow::Result<Plan<ringtap_monitor::Options>> {
    let run_options = options(args, interfaces, outputs)?;
    let monitor_options = app(args, interfaces, outputs, keep_state, anonymiser(args)?)?;
    Plan::new(run_options, monitor_options, &Machine::this()).map_err(Usage::of)
}

/// The plan of a run that goes on, with the flags that it takes up.
pub(super) fn next_plan(
    args: &MonitorArgs,
    plan: &Plan<ringtap_monitor::Options>,
    outputs: &[Output],
) -> anyhow::Result<Plan<ringtap_monitor::Options>> {
    let (filter, sample) = (filter(args)?, args.sample.unwrap_or(1));
    let run_options = Options { filter, sample, ..plan.options.clone() };
    // Records of a run have one key.
    let anonymiser = plan.app.enrichment.anonymiser.clone();
    // The room for a further reload is that of the run.
    let monitor_options =
        ringtap_monitor::Options { reloads: false, ..app(args, &[], outputs, false, anonymiser)? };
    let next = Plan::new(run_options, monitor_options, &Machine::this()).map_err(Usage::of)?;
    Ok(Plan { buffers: plan.buffers.clone(), recent: plan.recent.clone(), ..next })
}

/// The monitor options of the flags, with the lists that they name.
fn app(
    args: &MonitorArgs,
    interfaces: &[String],
    outputs: &[Output],
    keep_state: bool,
    anonymiser: Option<Arc<Anonymiser>>,
) -> anyhow::Result<ringtap_monitor::Options> {
    if args.anonymise.is_some()
        && let Some(own) = args.analyses.unwrap_or_else(Analyses::all).custom.each().next()
    {
        let name = own.name();
        return Err(Usage::of(format!(
            "--anonymise cannot be used with the analysis {name}, whose addresses have forms of their own: name others with \
             --analyses"
        )));
    }
    if args.anonymise.is_some() && !args.observers.all.is_empty() {
        return Err(Usage::of(
            "functions get addresses as they are: they cannot be used with --anonymise",
        ));
    }
    let all = monitor_options(args, names(args.names.as_deref(), args.port_labels.as_deref())?);
    // Outputs get all flows.
    let wants = all.observers.wants.filter(|_| outputs.is_empty());
    Ok(ringtap_monitor::Options {
        observers: Observers { wants, ..all.observers },
        watch: watch(args)?,
        allow: allow(args)?,
        enrichment: enrichment(args, interfaces, anonymiser)?,
        state: identity(args, keep_state)?,
        events: outputs.iter().any(|output| output.items() == Items::Events),
        ..all
    })
}

/// Memory besides blocks for outputs that begin while a run goes on, at least: one for alerts.
const LEAST_FURTHER_BYTES: u64 = 8 << 20;

/// Settings of all outputs.
pub(crate) fn settings(
    args: &MonitorArgs,
    plan: &Plan<ringtap_monitor::Options>,
    interfaces: &[Interface],
    watch: impl Shared,
) -> Settings {
    let origins = Origins {
        networks: args.networks.is_some(),
        geo: !args.geo.is_empty(),
        vendors: args.oui.is_some(),
        vlans: args.vlans.is_some(),
    };
    let interfaces = Interfaces::new(interfaces).with(origins).with_parts(args.cut.is_some());
    let interfaces = interfaces.with_statistics(plan.app.analyses.statistics);
    let interfaces = interfaces.with_entropy(plan.app.statistics_octets > 0);
    let identity = args.tls_cert.clone().zip(args.tls_key.clone());
    Settings {
        observation_domain: args.observation_domain,
        domain_name: args.probe.clone(),
        refresh: args.template_refresh,
        tls: Tls { authorities: args.tls_ca.clone(), identity },
        vlan_in_key: args.vlan_in_key,
        probe: Some(args.probe_name()),
        settings_id: Some(ringtap_monitor::state::Settings::of(plan).id()),
        live: !interfaces.is_empty(),
        prompt: args.inputs.read.is_empty() || !args.inputs.read.iter().all(|path| path.is_file()),
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
        rotate_ns: args.rotate,
        statistics_ns: args.rotate,
    }
}

/// What the files of a run have in common.
pub(crate) fn file_rules(args: &MonitorArgs, existing: Existing) -> FileRules {
    let keep = Retention { age: args.keep.map(Duration::from_nanos), bytes: args.keep_size };
    FileRules { existing, rotate_ns: args.rotate, keep, keep_free: args.keep_free }
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
        Ok(expression) => Ok(Some(Arc::new(expression.shown_as(&without_secrets(&text))))),
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
    let (mut source, mut queues) = (Vec::new(), args.threads.queues);
    if interfaces.is_empty() {
        source.extend(args.inputs.read.iter().map(|path| path.display().to_string()));
    } else {
        source.extend(interfaces.iter().map(|interface| args.capture.source(interface)));
        queues = queues.or(live::queues(interfaces, args)?.filter(|_| !args.sequential));
        // Cards choose the queue of a flow, so the worker of an open flow would be unknown.
        queues = queues.or(args.resume.as_ref().filter(|_| !args.sequential).map(|_| 1));
    }
    let skeleton = args.skeleton.or_else(|| live::skeleton(interfaces, args));
    Ok(Options {
        source,
        live: !interfaces.is_empty(),
        tunnels: args.tunnels,
        tunnel_ports: args.tunnel_port.clone().unwrap_or_default(),
        filter: filter(args)?,
        sample: args.sample.unwrap_or(1),
        dedup_ns: args.dedup.filter(|&window_ns| window_ns > 0),
        shed: args.shed,
        skeleton: if args.sequential { Some(Skeleton::Reference) } else { skeleton },
        queues,
        workers: args.workers,
        outputs: {
            let outputs = outputs.iter().filter(|one| !is_of_merger(one)).count();
            // While one ends, its successor runs.
            if reloads(args) { 2 * outputs } else { outputs }
        },
        output_fixed_bytes: {
            let packets = outputs::packet_bytes(outputs);
            let outputs = outputs.iter().map(Output::fixed_bytes).sum::<u64>();
            let further = if reloads(args) { outputs.max(LEAST_FURTHER_BYTES) } else { 0 };
            outputs + further + store::fixed_bytes(args) + packets
        },
        input_bytes: if args.memory.is_some()
            && args.inputs.read.iter().any(|path| source::may_be_zstd(path))
        {
            source::window_bytes(args.memory)
        } else {
            0
        },
        memory_bytes: args.memory,
        recent: {
            let is_wanted = outputs.iter().any(|one| outputs::packets_path(one).is_some());
            is_wanted.then(|| args.recent.map_or(RecentBytes::Default, RecentBytes::Given))
        },
        ..args.threads.options(args.seed)
    })
}

/// Whether a run reads its configuration again.
pub(super) fn reloads(args: &MonitorArgs) -> bool {
    args.config.is_some() && !args.interface.is_empty()
}

/// Whether an output gets few items, from the merger.
fn is_of_merger(output: &Output) -> bool {
    matches!(output.items(), Items::Alerts | Items::Totals)
}

/// The monitor options of the flags.
fn monitor_options(args: &MonitorArgs, names: Arc<Names>) -> ringtap_monitor::Options {
    let (limits, change_limits) = limits(args);
    let defaults = ringtap_monitor::Options::default();
    ringtap_monitor::Options {
        // The views of a run also show activity.
        analyses: args
            .analyses
            .unwrap_or_else(|| Analyses { activity: is_viewed(args), ..Analyses::all() }),
        extract: args.extract.unwrap_or(defaults.extract),
        names,
        metering: Metering {
            timeouts: timeouts(args),
            uniflow: args.uniflow,
            vlan_in_key: args.vlan_in_key,
            cut_ns: args.cut,
        },
        interval_ns: args.interval.or(args.tui.then_some(TUI_INTERVAL_NS)),
        marks_ns: if is_followed(args) || is_viewed(args) && !args.interface.is_empty() {
            Some(Timeouts::SECOND)
        } else {
            args.rotate
        },
        charts: args.report == ReportForm::Html,
        observers: args.observers.clone(),
        keeps_open: args.resume.is_some(),
        reloads: reloads(args),
        page: is_viewed(args),
        max_flows: args.max_flows,
        scan_threshold: args.scan_threshold.unwrap_or(defaults.scan_threshold),
        udp_scan_threshold: args.udp_scan_threshold.unwrap_or(defaults.udp_scan_threshold),
        limits,
        change_limits,
        statistics_packets: args.statistics_packets,
        statistics_octets: args.statistics_octets.unwrap_or(0),
        top: args.top.unwrap_or(defaults.top),
        digest: args.digest,
        ..defaults
    }
}

/// Whether files of a live run are followed by other programs, so that they get records each second.
fn is_followed(args: &MonitorArgs) -> bool {
    let is_open = args.write.iter().any(|file| file.open)
        || args.events.iter().flatten().any(|file| file.open);
    is_open && !args.interface.is_empty()
}

/// Whether the run is viewed while it goes on.
fn is_viewed(args: &MonitorArgs) -> bool {
    args.tui || args.web.is_some()
}

/// The run whose state is saved: to files or a topic, or in memory (`keep`) if the flags allow it.
fn identity(args: &MonitorArgs, keep: bool) -> anyhow::Result<Option<Identity>> {
    let on = args.analyses.unwrap_or_else(Analyses::all);
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
            Some(_) if args.store.is_none() && !outputs::has_probe(&args.export) => Err(Usage::of(
                "--probe names states, stores, messages of Kafka and domains of IPFIX: use it with --state, --store, or \
                 --export kafka://… or ipfix://…",
            )),
            _ => Ok(None),
        };
    }
    Ok(Some(Identity {
        // The standard library's random keys.
        run: RandomState::new().hash_one(std::process::id()),
        probe: args.probe_name(),
        in_parts: match &args.state {
            Some(path) => states::is_folder(path),
            None => is_exported && has_intervals,
        },
    }))
}

/// The list of names: of the file, or the built-in one; with the ports of the other file.
pub(crate) fn names(path: Option<&Path>, ports: Option<&Path>) -> anyhow::Result<Arc<Names>> {
    let names = path.map_or_else(
        || Ok(Names::built_in()),
        |path| labels("names", path, Names::parse).map(Arc::new),
    )?;
    let Some(path) = ports else { return Ok(names) };
    labels("port labels", path, |list| Names::clone(&names).with_ports(list)).map(Arc::new)
}

/// Names with the labels of a file.
fn labels(
    what: &str,
    path: &Path,
    parse: impl FnOnce(&[u8]) -> Result<Names, InvalidNames>,
) -> anyhow::Result<Names> {
    let named = || format!("reading the {what} in {}", path.display());
    let list = std::fs::read(path).map_err(Usage::of).with_context(named)?;
    parse(&list).map_err(|error| Usage::of(format!("{}: {error}", named())))
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

/// The rules that suppress alerts.
fn allow(args: &MonitorArgs) -> anyhow::Result<Option<Arc<AllowList>>> {
    let Some(path) = &args.allow else { return Ok(None) };
    let named = || format!("reading the rules in {}", path.display());
    let time = |text: &str| {
        let ms = moment::parse(text, moment::now(), Zone::Utc).ok()?;
        Some(Time(u64::try_from(ms).ok()?.checked_mul(1_000_000)?))
    };
    let list = read_list(path).and_then(|list| AllowList::parse(&list, time));
    let list = list.map_err(|error| Usage::of(format!("{}: {error}", named())))?;
    Ok(Some(Arc::new(list)))
}

/// What replaces addresses and names.
fn anonymiser(args: &MonitorArgs) -> anyhow::Result<Option<Arc<Anonymiser>>> {
    let Some(path) = &args.anonymise else { return Ok(None) };
    let named = || format!("reading the key in {}", path.display());
    let key = read_key(path).map_err(|error| Usage::of(format!("{}: {error}", named())))?;
    Ok(Some(Arc::new(Anonymiser::new(&key))))
}

/// What is added to records and the report, and replaced in them.
fn enrichment(
    args: &MonitorArgs,
    interfaces: &[String],
    anonymiser: Option<Arc<Anonymiser>>,
) -> anyhow::Result<Enrichment> {
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
    let vendors = args.oui.as_ref().map(|path| -> anyhow::Result<_> {
        let named = || format!("reading the vendors in {}", path.display());
        let list =
            Vendors::read(path).map_err(|error| Usage::of(format!("{}: {error}", named())))?;
        Ok(Arc::new(list))
    });
    let vlans = args.vlans.as_ref().map(|path| -> anyhow::Result<_> {
        let named = || format!("reading the VLANs in {}", path.display());
        let list = Vlans::read(path).map_err(|error| Usage::of(format!("{}: {error}", named())))?;
        Ok(Arc::new(list))
    });
    Ok(Enrichment {
        vendors: vendors.transpose()?,
        vlans: vlans.transpose()?,
        interfaces: interfaces.iter().map(|name| (0, name.clone())).collect(),
        networks: networks.transpose()?,
        geo: (!args.geo.is_empty()).then(|| Arc::new(geo)),
        anonymiser,
    })
}

/// The alert limits of the flags.
pub(super) fn limits(args: &MonitorArgs) -> (Limits, ChangeLimits) {
    let mut limits = <(Limits, ChangeLimits)>::default();
    for (name, limit) in &args.alert {
        // The parser of the flags has checked the names, each of which one of them has.
        let _ = limits.0.set(name, *limit);
        let _ = limits.1.set(name, *limit);
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
        timeouts.active_ns = if active_ns == 0 { u64::MAX } else { active_ns };
    }
    for (name, time_ns) in &list.set {
        timeouts.set(name, *time_ns);
    }
    timeouts
}
