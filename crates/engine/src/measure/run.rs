//! Runs a measurement, and merges those of several machines.

use std::sync::Arc;

use ringtap_base::now_ns;
use ringtap_io::capture::Files;
use ringtap_io::live::Receiver;
use ringtap_measure::{Findings, Image, ImageError, Keys, Measure, with_keys};
use ringtap_skeleton::RunError;
use ringtap_wire::Paths;

use super::sample::SampleFeed;
use super::stamped::Stamped;
use super::{MeasureOutcome, MeasurePlan, Merged, Sample};
use crate::live::LiveFeed;
use crate::packet_source::PacketSource;
use crate::run::drive_any;
use crate::{PacketFeed, Watch};

/// Measures files, as fast as it goes.
pub fn run_files(
    plan: &MeasurePlan,
    files: Files,
    watch: &Watch,
) -> Result<MeasureOutcome, RunError> {
    let feeds = PacketFeed::all(&plan.run, &Arc::new(Paths::new()), files, watch);
    run(plan, feeds.into_iter().map(Stamped).collect())
}

/// Measures an open interface, until `watch` is asked to stop. There is a receiver for each of the plan's queues.
pub fn run_interface(
    plan: &MeasurePlan,
    receivers: Vec<Receiver>,
    watch: &Watch,
) -> Result<MeasureOutcome, RunError> {
    run(plan, LiveFeed::all(&plan.run, &Arc::new(Paths::new()), receivers, watch))
}

/// Measures so many packets of a sample, again and again, at the plan's rate if it has one.
pub fn run_sample(
    plan: &MeasurePlan,
    sample: &Sample,
    packets: u64,
    watch: &Watch,
) -> Result<MeasureOutcome, RunError> {
    let shards = plan.run.options().shards;
    run(plan, SampleFeed::all(sample, &shards, plan.rate, packets, watch))
}

/// Merges measurements of the same, in this order.
pub fn merge(images: &[Image]) -> Result<Merged, ImageError> {
    let by = images.first().ok_or(ImageError::NotAMeasurement)?.by();
    with_keys!(by, V => {
        let mut all: Option<Findings<V>> = None;
        for image in images {
            // Of another key: refused before its structures are read as what they are not.
            image.check_key(by)?;
            let findings = image.findings::<V>()?;
            match &mut all {
                Some(all) => all.merge(findings)?,
                None => all = Some(findings),
            }
        }
        all.map(|all| Merged::of(&all)).ok_or(ImageError::NotAMeasurement)
    })
}

fn run(plan: &MeasurePlan, feeds: Vec<impl PacketSource>) -> Result<MeasureOutcome, RunError> {
    with_keys!(plan.settings.by, V => run_keyed::<V>(plan, feeds))
}

fn run_keyed<V: Keys>(
    plan: &MeasurePlan,
    feeds: Vec<impl PacketSource>,
) -> Result<MeasureOutcome, RunError> {
    let app = Measure::<V>::new(plan.settings, now_ns).expect("settings that the plan has checked");
    let driven = drive_any(&plan.run, &app, feeds)?;
    let report = driven.run.report.report();
    let merged = Merged::of(&driven.run.report);
    let not_measured: u64 = report.not_measured.values().sum();
    let ledger = driven.ledger(report.measured + not_measured);
    Ok(MeasureOutcome {
        plan: plan.clone(),
        received: driven.received(),
        ledger,
        performance: driven.performance,
        merged,
        notices: driven.closed.notices,
        failure: driven.closed.failure,
    })
}
