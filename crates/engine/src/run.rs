//! Runs a plan.

use std::collections::BTreeMap;
use std::sync::Arc;

use ringtap_base::{Ledger, Stage, Usage};
use ringtap_io::capture::Files;
use ringtap_io::live::MergedReceiver;
use ringtap_monitor::{Config, Monitor, Outputs, Report};
use ringtap_skeleton::{Run, RunError};
use ringtap_stage::Application;
use ringtap_wire::{PacketRecord, Paths};

use crate::live::LiveFeed;
use crate::packet_source::{Closed, PacketSource};
use crate::{Outcome, PacketFeed, Performance, Plan, Watch};

/// Why a packet that the filter expression does not select is not handled: it was asked for, so it is no loss.
pub(crate) const FILTERED: &str = "filtered";
/// The same of one that is no part of the sample.
pub(crate) const NOT_SAMPLED: &str = "not_sampled";

/// The application of a plan, for tests that run it under a skeleton of their own.
pub fn app(plan: &Plan, paths: &Arc<Paths>, outputs: Outputs) -> Monitor {
    let config = Config {
        analyses: plan.analyses,
        tunnels: plan.tunnels,
        metering: plan.metering,
        interval_ns: plan.interval_ns,
        max_flows: plan.max_flows as usize,
        interval_room: plan.interval_units as usize,
        fact_bytes: plan.fact_bytes as usize,
        activity_room: plan.max_activities as usize,
        scan_threshold: plan.scan_threshold,
        limits: plan.limits,
        top: plan.top,
        digest: plan.digest,
        hash_key: plan.hash_key(),
        paths: Arc::clone(paths),
        shares: plan.shares.clone(),
    };
    Monitor::new(config, outputs)
}

/// Runs `plan` over open interfaces, until `watch` is asked to stop. There is a receiver for each of the plan's queues, of
/// one interface or, merged, of several.
pub fn run_live(
    plan: &Plan,
    receivers: Vec<impl Into<MergedReceiver>>,
    outputs: Outputs,
    watch: &Watch,
) -> Result<Outcome, RunError> {
    let paths = Arc::new(Paths::new());
    let feeds = LiveFeed::all(plan, &paths, receivers, watch);
    drive(plan, &app(plan, &paths, outputs), &paths, feeds)
}

/// Runs `plan` over `files`.
pub fn run(
    plan: &Plan,
    files: Files,
    outputs: Outputs,
    watch: &Watch,
) -> Result<Outcome, RunError> {
    let paths = Arc::new(Paths::new());
    run_app(plan, &app(plan, &paths, outputs), &paths, files, watch)
}

/// Runs any application that reports as the monitor does, the monitor itself or a test's
/// variation of it, as `plan` says. The application looks up `paths`.
pub fn run_app<A>(
    plan: &Plan,
    app: &A,
    paths: &Arc<Paths>,
    files: Files,
    watch: &Watch,
) -> Result<Outcome, RunError>
where
    A: Application<Item = PacketRecord, Report = Report>,
{
    drive(plan, app, paths, PacketFeed::all(plan, paths, files, watch))
}

fn drive<A>(
    plan: &Plan,
    app: &A,
    paths: &Paths,
    feeds: Vec<impl PacketSource>,
) -> Result<Outcome, RunError>
where
    A: Application<Item = PacketRecord, Report = Report>,
{
    let driven = drive_any(plan, app, feeds)?;
    let handled = &driven.run.report.packets;
    let (ledger, received) = (driven.ledger(handled.handled + handled.inner), driven.received());
    let Driven { run, closed, performance } = driven;
    let Closed { counts, notices, interfaces, failure, split, clock, .. } = closed;
    let plan = plan.clone();
    let mut outcome =
        Outcome::new(plan, received, counts, run.report, ledger, performance, notices);
    outcome.packets_without_path = paths.lost();
    outcome.interfaces = interfaces;
    outcome.failure = failure;
    outcome.packets_split = split;
    outcome.clock = clock;
    Ok(outcome)
}

/// A run of any application over packets, and what its source counted.
pub(crate) struct Driven<R> {
    pub(crate) run: Run<R>,
    pub(crate) closed: Closed,
    pub(crate) performance: Performance,
}

/// Runs an application as `plan` says.
pub(crate) fn drive_any<A>(
    plan: &Plan,
    app: &A,
    mut feeds: Vec<impl PacketSource>,
) -> Result<Driven<A::Report>, RunError>
where
    A: Application<Item = PacketRecord>,
{
    let before = Usage::now();
    let each = feeds.iter_mut().collect();
    let run = ringtap_skeleton::run(plan.skeleton, app, each, &plan.options())?;
    let closed = PacketSource::close(feeds);
    let used = Usage::now();
    let seconds = used.wall_s - before.wall_s;
    let mut driven = Driven { run, closed, performance: Performance::default() };
    driven.performance = Performance {
        seconds,
        packets_per_second: if seconds > 0.0 {
            (driven.received() as f64 / seconds) as u64
        } else {
            0
        },
        cpu_seconds: used.cpu_s - before.cpu_s,
        peak_rss_bytes: used.peak_rss_bytes,
    };
    Ok(driven)
}

impl<R> Driven<R> {
    /// Packets that came, damaged and lost ones included.
    pub(crate) fn received(&self) -> u64 {
        let Closed { packets, damaged, lost, .. } = &self.closed;
        packets + damaged + lost.iter().flat_map(BTreeMap::values).sum::<u64>()
    }

    /// The books of the run. What the application says it counted closes them, not what it was given. A packet within a
    /// tunnel is an item like the one that carries it.
    pub(crate) fn ledger(&self, counted: u64) -> Ledger {
        let &Closed { ref counts, packets, damaged, ref lost, .. } = &self.closed;
        let stage = |name, input, output| Stage { name, input, output, dropped: BTreeMap::new() };
        let items = counts.packets + counts.inner;
        let mut source = stage("source", packets + counts.inner + damaged, items);
        let left_out = [
            ("damaged", damaged),
            (FILTERED, counts.filtered),
            ("unfilterable", counts.unfilterable),
            (NOT_SAMPLED, counts.not_sampled),
            ("shed", counts.shed),
        ];
        source.dropped.extend(left_out.into_iter().filter(|&(_, packets)| packets > 0));
        let given = self.run.handled.iter().sum();
        let interface = lost.as_ref().map(|lost| {
            let came = source.input;
            let input = came + lost.values().sum::<u64>();
            Stage { dropped: lost.clone(), ..stage("interface", input, came) }
        });
        let rest = [
            source,
            stage("dispatcher", items, self.run.dispatched),
            stage("workers", given, counted),
        ];
        Ledger { stages: interface.into_iter().chain(rest).collect() }
    }
}
