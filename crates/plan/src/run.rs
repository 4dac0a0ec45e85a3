//! Runs a plan.

use std::collections::BTreeMap;

use ringtap_capture::Files;
use ringtap_metrics::{Ledger, Stage, Usage};
use ringtap_monitor::{Config, Monitor, Outputs};
use ringtap_skeleton::{RunError, farm, reference};

use crate::{Outcome, PacketFeed, Performance, Plan, Skeleton, Watch};

/// The application of a plan, for tests that run it under a skeleton of their own.
pub fn app(plan: &Plan, outputs: Outputs) -> Monitor {
    let config = Config {
        analyses: plan.analyses,
        timeouts: plan.timeouts,
        interval_ns: plan.interval_ns,
        max_flows: plan.max_flows as usize,
        scan_threshold: plan.scan_threshold,
        top: plan.top,
        digest: plan.digest,
        hash_key: plan.hash_key(),
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
    let before = Usage::now();
    let monitor = app(plan, outputs);
    let mut feed = PacketFeed::new(files, plan.hash_key(), plan.timeouts.tick_ns(), watch);
    let run = match plan.skeleton {
        Skeleton::Reference => reference::run(&monitor, &mut feed),
        Skeleton::Farm => farm::run(&monitor, &mut feed, &plan.farm())?,
    };
    let counts = feed.counts().clone();
    let damaged = feed.files().damaged();
    let received = counts.packets + damaged;
    let stage = |name, input, output, dropped: &[(&'static str, u64)]| Stage {
        name,
        input,
        output,
        dropped: dropped.iter().copied().filter(|&(_, n)| n > 0).collect::<BTreeMap<_, _>>(),
    };
    // What the analyses say they handled closes the books, not what they were given.
    let given = run.handled.iter().sum();
    let ledger = Ledger {
        stages: vec![
            stage("source", received, counts.packets, &[("damaged", damaged)]),
            stage("dispatcher", counts.packets, run.dispatched, &[]),
            stage("workers", given, run.report.packets.handled, &[]),
        ],
    };
    let after = Usage::now();
    let seconds = after.wall_s - before.wall_s;
    let performance = Performance {
        seconds,
        packets_per_second: if seconds > 0.0 { (received as f64 / seconds) as u64 } else { 0 },
        cpu_seconds: after.cpu_s - before.cpu_s,
        peak_rss_bytes: after.peak_rss_bytes,
    };
    let notices = feed.files().take_notices();
    Ok(Outcome::new(plan.clone(), received, counts, run.report, ledger, performance, notices))
}
