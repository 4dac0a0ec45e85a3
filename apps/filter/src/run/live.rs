//! The filter between interfaces: a worker for each queue receives, judges and sends, and shares
//! only the rule publisher with the others.
//!
//! ```text
//! queue 0 of IN ─▶ worker 0 ─▶ OUT        queue 0 of OUT ─▶ worker 2 ─▶ IN       (with --both-ways)
//! queue 1 of IN ─▶ worker 1 ─▶ OUT
//! ```

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

use crate::RulePublisher;
use ringtap_base::Usage;
use ringtap_skeleton::{Node, RunError, Wait, seats};

use super::batch::SuperFrames;
use super::control::ControlAuth;
use super::counters::{Changes, PacketCounters};
use super::drops::DropsWriter;
use super::report::{FilterPlan, FilterReport, Handed};
use super::snapshot::StatsSnapshot;
use super::worker::{LinkCounters, Path, Shared, Worker};
use ringtap_engine::Watch;

/// Inputs of a run between interfaces.
pub struct FilterLive<'a> {
    /// One for each worker.
    pub paths: Vec<Path>,
    /// The rules, published for as many workers as there are paths.
    pub publisher: &'a RulePublisher,
    /// Collects the workers' counters during the run.
    pub snapshot: &'a StatsSnapshot,
    /// The authentication of control packets, if they are used.
    pub auth: Option<ControlAuth>,
    /// The destination of refused frames, if any.
    pub drops: Option<Box<dyn Write + Send>>,
}

/// Runs until `watch` requests a stop, or an interface is gone.
///
/// # Errors
/// A thread failed or could not be started.
pub fn filter_live(
    plan: FilterPlan,
    given: FilterLive<'_>,
    watch: &Watch,
) -> Result<FilterReport, RunError> {
    let before = Usage::now();
    let FilterLive { paths, publisher, snapshot, auth, drops } = given;
    let (failure, ends) = (Mutex::new(None), Mutex::new(Vec::new()));
    let shared = Shared { publisher, snapshot, watch, ends: &ends, not_ip: plan.not_ip };
    let mut nodes: Vec<Vec<Box<dyn Node + '_>>> = Vec::new();
    let mut to_drops = Vec::new();
    if let Some(out) = drops {
        let made = DropsWriter::new(paths.len(), out, &failure);
        let (writer, producers) = made.map_err(|error| RunError::Ring(error.to_string()))?;
        nodes.push(vec![Box::new(writer)]);
        to_drops = producers;
    }
    let mut to_drops = to_drops.into_iter();
    for (index, path) in paths.into_iter().enumerate() {
        let worker = Worker::new(index, path, &shared, auth.clone(), to_drops.next());
        nodes.push(vec![Box::new(worker)]);
    }
    seats::run(nodes, &[], Wait::Park)?;
    let ends = ends.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut report = report(plan, ends, publisher, &before);
    let failure = failure.into_inner().unwrap_or_else(PoisonError::into_inner);
    report.failure = report.failure.or(failure.map(|error| error.to_string()));
    Ok(report)
}

/// The report over all workers.
fn report(
    plan: FilterPlan,
    ends: Vec<(PacketCounters, Changes, LinkCounters)>,
    publisher: &RulePublisher,
    before: &Usage,
) -> FilterReport {
    let mut counters = PacketCounters::new(publisher.newest());
    let mut changes = Changes::default();
    let mut handed = Handed { written: 0, lost: BTreeMap::new() };
    let (mut lost, mut missed) = (BTreeMap::new(), BTreeMap::new());
    let (mut failure, mut super_frames) = (None, SuperFrames::default());
    for (own, made, link) in ends {
        counters.add(own);
        changes.add(made);
        handed.written += link.sent;
        super_frames.add(link.super_frames);
        for (reason, packets) in link.not_sent {
            *handed.lost.entry(reason).or_default() += packets;
        }
        for (reason, packets) in link.lost {
            *lost.entry(reason).or_default() += packets;
        }
        // Counted for the whole interface, so all its queues report the same number.
        missed.insert(link.interface, link.missed);
        failure = failure.or(link.failure);
    }
    lost.insert("missed", missed.values().sum());
    let mut report = FilterReport::new(plan, &counters, changes, handed, before);
    report.add_stage("interface", lost);
    report.super_frames = Some(super_frames);
    report.failure = failure;
    report
}
