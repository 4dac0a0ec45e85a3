//! Runs measurements, and merges those of several machines.

use std::sync::Arc;

use ringtap_base::now_ns;
use ringtap_engine::{PacketFeed, PacketSource, Plan, Watch, live_feeds, run_feeds};
use ringtap_io::capture::Files;
use ringtap_io::live::Receiver;
use ringtap_skeleton::RunError;
use ringtap_wire::Paths;

use super::options::Options;
use super::sample::SampleFeed;
use super::stamped::Stamped;
use super::{MeasureOutcome, Merged, Sample};
use crate::{Findings, Image, ImageError, Keys, Measure, OnInterval, with_keys};

/// Measures files at full speed. With intervals `on_interval` receives each.
pub fn run_files(
    plan: &Plan<Options>,
    files: Files,
    watch: &Watch,
    on_interval: Option<OnInterval>,
) -> Result<MeasureOutcome, RunError> {
    let feeds = PacketFeed::all(plan, &Arc::new(Paths::new()), files, watch);
    if plan.app.settings.interval_ns.is_some() {
        return run(plan, feeds, on_interval);
    }
    run(plan, feeds.into_iter().map(Stamped).collect(), None)
}

/// Measures an open interface, until `watch` requests a stop. There is a receiver for each of the
/// plan's queues. With intervals `on_interval` receives each.
pub fn run_interface(
    plan: &Plan<Options>,
    receivers: Vec<Receiver>,
    watch: &Watch,
    on_interval: Option<OnInterval>,
) -> Result<MeasureOutcome, RunError> {
    run(plan, live_feeds(plan, &Arc::new(Paths::new()), receivers, watch), on_interval)
}

/// Measures `packets` packets of a repeated sample, at the plan's rate if it has one.
pub fn run_sample(
    plan: &Plan<Options>,
    sample: &Sample,
    packets: u64,
    watch: &Watch,
) -> Result<MeasureOutcome, RunError> {
    run(plan, SampleFeed::all(sample, &plan.shards(), plan.app.rate, packets, watch), None)
}

/// Merges measurements of the same kind, in this order.
pub fn merge(images: &[Image]) -> Result<Merged, ImageError> {
    let by = images.first().ok_or(ImageError::NotAMeasurement)?.by();
    with_keys!(by, V => {
        let mut all: Option<Findings<V>> = None;
        for image in images {
            // Another key is refused before its structures are read.
            image.check_key(by)?;
            let findings = image.findings::<V>()?;
            match &mut all {
                Some(all) => all.merge(findings)?,
                None => all = Some(findings),
            }
        }
        all.map(Merged::of).ok_or(ImageError::NotAMeasurement)
    })
}

fn run(
    plan: &Plan<Options>,
    feeds: Vec<impl PacketSource>,
    on_interval: Option<OnInterval>,
) -> Result<MeasureOutcome, RunError> {
    with_keys!(plan.app.settings.by, V => run_keyed::<V>(plan, feeds, on_interval))
}

fn run_keyed<V: Keys>(
    plan: &Plan<Options>,
    feeds: Vec<impl PacketSource>,
    on_interval: Option<OnInterval>,
) -> Result<MeasureOutcome, RunError> {
    let settings = plan.app.settings;
    let app = Measure::<V>::new(settings, now_ns).expect("the plan has checked the settings");
    let app = app.reporting(on_interval);
    let mut run = run_feeds(plan, &app, |findings: &Findings<V>| findings.packets.all(), feeds)?;
    let merged = Merged::of(std::mem::replace(&mut run.report, Findings::new(&settings)));
    Ok(MeasureOutcome { plan: plan.clone(), run: run.with_report(()), merged })
}
