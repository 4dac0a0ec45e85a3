//! Runs a plan.

use std::collections::BTreeMap;
use std::sync::Arc;

use ringtap_capture::Files;
use ringtap_metrics::{Ledger, Stage, Usage};
use ringtap_monitor::{Config, Monitor, Outputs, Report};
use ringtap_skeleton::{Run, RunError};
use ringtap_stage::Application;
use ringtap_wire::{Decoder, PacketRecord, Paths};

use crate::feed::FeedCounts;
use crate::{Outcome, PacketFeed, Performance, Plan, Watch};

/// The application of a plan, for tests that run it under a skeleton of their own.
pub fn app(plan: &Plan, paths: &Arc<Paths>, outputs: Outputs) -> Monitor {
    let config = Config {
        analyses: plan.analyses,
        tunnels: plan.tunnels,
        metering: plan.metering,
        interval_ns: plan.interval_ns,
        max_flows: plan.max_flows as usize,
        scan_threshold: plan.scan_threshold,
        top: plan.top,
        digest: plan.digest,
        hash_key: plan.hash_key(),
        paths: Arc::clone(paths),
        shares: plan.shares.clone(),
    };
    Monitor::new(config, outputs)
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
    let before = Usage::now();
    let decoder = Decoder::new(plan.hash_key(), Arc::clone(paths)).with_tunnels(plan.tunnels);
    let mut feed = PacketFeed::new(files, decoder, plan.metering.timeouts.tick_ns(), watch);
    let run = ringtap_skeleton::run(plan.skeleton, app, &mut feed, &plan.options())?;
    let counts = feed.counts().clone();
    let damaged = feed.files().damaged();
    let notices = feed.files().take_notices();
    let ledger = ledger(&run, &counts, damaged);
    let used = Usage::now();
    let seconds = used.wall_s - before.wall_s;
    let received = counts.packets + damaged;
    let performance = Performance {
        seconds,
        packets_per_second: if seconds > 0.0 { (received as f64 / seconds) as u64 } else { 0 },
        cpu_seconds: used.cpu_s - before.cpu_s,
        peak_rss_bytes: used.peak_rss_bytes,
    };
    let plan = plan.clone();
    let mut outcome =
        Outcome::new(plan, received, counts, run.report, ledger, performance, notices);
    outcome.packets_without_path = paths.lost();
    Ok(outcome)
}

/// The books of a run. What the analyses say they handled closes them, not what they were given. A packet within a
/// tunnel is an item like the one that carries it.
fn ledger(run: &Run<Report>, counts: &FeedCounts, damaged: u64) -> Ledger {
    let stage = |name, input, output| Stage { name, input, output, dropped: BTreeMap::new() };
    let items = counts.packets + counts.inner;
    let mut source = stage("source", items + damaged, items);
    if damaged > 0 {
        source.dropped.insert("damaged", damaged);
    }
    let given = run.handled.iter().sum();
    Ledger {
        stages: vec![
            source,
            stage("dispatcher", items, run.dispatched),
            stage("workers", given, run.report.packets.handled + run.report.packets.inner),
        ],
    }
}
