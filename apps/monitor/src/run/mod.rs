//! The monitor on the engine.

mod canonical;
mod losses;
mod merged;
mod outcome;

use std::sync::Arc;

use ringtap_engine::{Plan, Selection, Watch};
use ringtap_io::capture::Files;
use ringtap_io::live::MergedReceiver;
use ringtap_skeleton::RunError;
use ringtap_stage::Application;
use ringtap_wire::{PacketRecord, Paths};

pub use losses::{LOSSES, Loss, SoFar, losses_so_far};
pub use outcome::Outcome;

use crate::{Monitor, Options, Outputs, Report, Setup};

/// Number of packets in a report.
fn counted(report: &Report) -> u64 {
    report.packets.handled + report.packets.inner
}

/// Runs `plan` over `files`.
///
/// # Errors
/// If a thread of the run failed.
pub fn run(
    plan: &Plan<Options>,
    files: Files,
    outputs: Outputs,
    watch: &Watch,
) -> Result<Outcome, RunError> {
    let paths = Arc::new(Paths::new());
    let app = Monitor::new(Setup::of(plan, &paths), outputs);
    run_app(plan, &app, &paths, files, watch)
}

/// Runs `plan` with any application that has the monitor's report, for tests. The application looks up
/// `paths`.
///
/// # Errors
/// If a thread of the run failed.
pub fn run_app<A>(
    plan: &Plan<Options>,
    app: &A,
    paths: &Arc<Paths>,
    files: Files,
    watch: &Watch,
) -> Result<Outcome, RunError>
where
    A: Application<Item = PacketRecord, Report = Report>,
{
    let run = ringtap_engine::run(plan, app, counted, paths, files, watch)?;
    Ok(Outcome::new(plan.clone(), run, paths.lost()))
}

/// Runs `plan` over open interfaces, until `watch` requests a stop. There is a receiver for each of
/// the plan's queues, of one interface or of several merged ones.
///
/// # Errors
/// If a thread of the run failed.
pub fn run_live(
    plan: &Plan<Options>,
    receivers: Vec<impl Into<MergedReceiver>>,
    outputs: Outputs,
    watch: &Watch,
) -> Result<Outcome, RunError> {
    let paths = Arc::new(Paths::new());
    let reloads = Arc::clone(&outputs.reloads);
    let app = Monitor::new(Setup::of(plan, &paths), outputs);
    let run = ringtap_engine::run_live(plan, &app, counted, &paths, receivers, watch)?;
    // The report shows the settings of the end.
    let mut plan = plan.clone();
    if let Some(Selection { filter, sample }) = watch.selection() {
        (plan.options.filter, plan.options.sample) = (filter, sample);
    }
    if let Some(options) = reloads.options() {
        plan.app = options;
    }
    Ok(Outcome { reloads: reloads.count(), ..Outcome::new(plan, run, paths.lost()) })
}
