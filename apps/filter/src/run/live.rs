//! The filter between interfaces: a worker for each queue receives, judges and sends, and shares nothing with the
//! others but the board.
//!
//! ```text
//! queue 0 of IN ─▶ worker 0 ─▶ OUT        queue 0 of OUT ─▶ worker 2 ─▶ IN       (both ways, if asked for)
//! queue 1 of IN ─▶ worker 1 ─▶ OUT
//! ```

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

use crate::Board;
use ringtap_base::Usage;
use ringtap_skeleton::{Node, RunError, Wait, seats};

use super::census::Census;
use super::control::Knock;
use super::drops::DropsWriter;
use super::report::{FilterPlan, FilterReport, Handed};
use super::tally::{Changes, Tally};
use super::worker::{Books, Shared, Way, Worker};
use ringtap_engine::Watch;

/// What a run between interfaces is given.
pub struct FilterLive<'a> {
    /// One for each worker.
    pub ways: Vec<Way>,
    /// The rules; made for as many workers as there are ways.
    pub board: &'a Board,
    /// What workers tell while they run.
    pub census: &'a Census,
    /// Whether control packets are heard.
    pub knock: Option<Knock>,
    /// Where refused frames go, if anywhere.
    pub drops: Option<Box<dyn Write + Send>>,
}

/// Runs until `watch` is asked to stop, or an interface is gone.
///
/// # Errors
/// A thread that failed or could not be started.
pub fn filter_live(
    plan: FilterPlan,
    given: FilterLive<'_>,
    watch: &Watch,
) -> Result<FilterReport, RunError> {
    let before = Usage::now();
    let FilterLive { ways, board, census, knock, drops } = given;
    let (failure, ends) = (Mutex::new(None), Mutex::new(Vec::new()));
    let shared = Shared { board, census, watch, ends: &ends, not_ip: plan.not_ip };
    let mut nodes: Vec<Vec<Box<dyn Node + '_>>> = Vec::new();
    let mut to_drops = Vec::new();
    if let Some(out) = drops {
        let made = DropsWriter::new(ways.len(), out, &failure);
        let (writer, producers) = made.map_err(|error| RunError::Ring(error.to_string()))?;
        nodes.push(vec![Box::new(writer)]);
        to_drops = producers;
    }
    let mut to_drops = to_drops.into_iter();
    for (index, way) in ways.into_iter().enumerate() {
        let worker = Worker::new(index, way, &shared, knock.clone(), to_drops.next());
        nodes.push(vec![Box::new(worker)]);
    }
    seats::run(nodes, &[], Wait::Park)?;
    let ends = ends.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut report = report(plan, ends, board, &before);
    let failure = failure.into_inner().unwrap_or_else(PoisonError::into_inner);
    report.failure = report.failure.or(failure.map(|error| error.to_string()));
    Ok(report)
}

/// What all workers did.
fn report(
    plan: FilterPlan,
    ends: Vec<(Tally, Changes, Books)>,
    board: &Board,
    before: &Usage,
) -> FilterReport {
    let mut tally = Tally::new(board.newest());
    let mut changes = Changes::default();
    let mut handed = Handed { written: 0, lost: BTreeMap::new() };
    let (mut lost, mut missed) = (BTreeMap::new(), BTreeMap::new());
    let mut failure = None;
    for (own, made, books) in ends {
        tally.add(own);
        changes.add(made);
        handed.written += books.sent;
        for (reason, packets) in books.not_sent {
            *handed.lost.entry(reason).or_default() += packets;
        }
        for (reason, packets) in books.lost {
            *lost.entry(reason).or_default() += packets;
        }
        // Of the whole interface, so all its queues tell the same.
        missed.insert(books.interface, books.missed);
        failure = failure.or(books.failure);
    }
    lost.insert("missed", missed.values().sum());
    let mut report = FilterReport::new(plan, &tally, changes, handed, before);
    report.add_stage("interface", lost);
    report.failure = failure;
    report
}
