//! Runs a plan.

use std::collections::BTreeMap;
use std::sync::Arc;

use ringtap_base::{Ledger, Stage, Usage};
use ringtap_io::capture::Files;
use ringtap_io::live::MergedReceiver;
use ringtap_skeleton::{Run, RunError};
use ringtap_stage::{Application, Feed};
use ringtap_wire::{PacketRecord, Paths};

use crate::live::LiveFeed;
use crate::outcome::{DUPLICATE, FILTERED, NOT_SAMPLED};
use crate::packet_source::{Closed, PacketSource};
use crate::{AppOptions, Outcome, PacketFeed, Performance, Plan, Watch};

/// Runs an application over `files`. `counted` returns the number of packets in its report; the
/// application looks up `paths`.
pub fn run<P: AppOptions, A: Application<Item = PacketRecord>>(
    plan: &Plan<P>,
    app: &A,
    counted: impl FnOnce(&A::Report) -> u64,
    paths: &Arc<Paths>,
    files: Files,
    watch: &Watch,
) -> Result<Outcome<A::Report>, RunError> {
    run_feeds(plan, app, counted, PacketFeed::all(plan, paths, files, watch))
}

/// Runs an application over open interfaces until `watch` requests a stop. There is a receiver for
/// each of the plan's queues, of one interface or of several merged ones.
pub fn run_live<P: AppOptions, A: Application<Item = PacketRecord>>(
    plan: &Plan<P>,
    app: &A,
    counted: impl FnOnce(&A::Report) -> u64,
    paths: &Arc<Paths>,
    receivers: Vec<impl Into<MergedReceiver>>,
    watch: &Watch,
) -> Result<Outcome<A::Report>, RunError> {
    run_feeds(plan, app, counted, LiveFeed::all(plan, paths, receivers, watch))
}

/// Makes the feeds of a plan over open interfaces, one a queue.
pub fn live_feeds<P: AppOptions>(
    plan: &Plan<P>,
    paths: &Arc<Paths>,
    receivers: Vec<impl Into<MergedReceiver>>,
    watch: &Watch,
) -> Vec<impl PacketSource> {
    LiveFeed::all(plan, paths, receivers, watch)
}

/// Runs an application over any feeds, one for each of the plan's queues.
pub fn run_feeds<P: AppOptions, A: Application<Item = PacketRecord>>(
    plan: &Plan<P>,
    app: &A,
    counted: impl FnOnce(&A::Report) -> u64,
    mut feeds: Vec<impl PacketSource>,
) -> Result<Outcome<A::Report>, RunError> {
    let before = Usage::now();
    // Dynamic dispatch costs one call per burst. One copy of the skeletons for all feed types keeps programs small.
    let each = feeds.iter_mut().map(|feed| feed as &mut (dyn Feed<Item = PacketRecord> + Send));
    let each: Vec<_> = each.collect();
    let run = ringtap_skeleton::run(plan.arrangement.skeleton, app, each, &plan.run_options())?;
    let closed = PacketSource::close(feeds);
    let lost: u64 = closed.lost.iter().flat_map(BTreeMap::values).sum();
    let received = closed.packets + closed.damaged + lost;
    Ok(Outcome {
        ledger: ledger(&run, &closed, counted(&run.report)),
        report: run.report,
        received,
        performance: Performance::since(&before, received),
        counts: closed.counts,
        interfaces: closed.interfaces,
        packets_split: closed.split,
        pairs_checked: closed.pairs_checked,
        clock: closed.clock,
        notices: closed.notices,
        interrupted: closed.interrupted,
        failure: closed.failure,
    })
}

/// The ledger of the run. It ends with the packets that the application counted, not with those it
/// was given. A packet within a tunnel is a separate item.
fn ledger<R>(run: &Run<R>, closed: &Closed, counted: u64) -> Ledger {
    let &Closed { ref counts, packets, damaged, ref lost, .. } = closed;
    let stage = |name, input, output| Stage { name, input, output, dropped: BTreeMap::new() };
    let items = counts.packets + counts.inner;
    let mut source = stage("source", packets + counts.inner + damaged, items);
    let left_out = [
        ("damaged", damaged),
        (FILTERED, counts.filtered),
        ("unfilterable", counts.unfilterable),
        (NOT_SAMPLED, counts.not_sampled),
        (DUPLICATE, counts.duplicates),
        ("shed", counts.shed),
    ];
    source.dropped.extend(left_out.into_iter().filter(|&(_, packets)| packets > 0));
    let given = run.handled.iter().sum();
    let interface = lost.as_ref().map(|lost| {
        let came = source.input;
        let input = came + lost.values().sum::<u64>();
        Stage { dropped: lost.clone(), ..stage("interface", input, came) }
    });
    let rest =
        [source, stage("dispatcher", items, run.dispatched), stage("workers", given, counted)];
    Ledger { stages: interface.into_iter().chain(rest).collect() }
}
