//! Where records, events, alerts, intervals, totals and parts of the state go during a run.

use std::sync::Arc;

use ringtap_flow::Sinks;

use crate::alerts::Alert;
use crate::analyses::activity::rows::Activity;
use crate::reload::Reloads;
use crate::resume::Resumed;
use crate::state::OnPart;
use crate::totals::Totals;
use crate::volume::Interval;

/// Receives alerts.
pub type OnAlert = Box<dyn FnMut(&Alert) + Send>;

/// Receives a finished interval. Late packets of it are in the report only.
pub type OnInterval = Box<dyn FnMut(&EndedInterval<'_>) + Send>;

/// A finished interval.
pub struct EndedInterval<'a> {
    /// Its volumes.
    pub interval: &'a Interval,
    /// Number of live flows.
    pub live: u64,
    /// The activity, if it is measured.
    pub activity: Option<&'a Activity>,
}

/// Receives totals, whenever they change.
pub type OnTotals = Box<dyn FnMut(&Totals) + Send>;

/// Destinations of records, alerts and intervals during the run: records from the workers, the rest
/// from the merger.
#[derive(Default)]
pub struct Outputs {
    /// Sinks for each worker's flow records and events; without sinks, they are only counted.
    pub sinks: Vec<Sinks>,
    /// What the merger hands over.
    pub receivers: Receivers,
    /// The open flows of the run before, which this one continues.
    pub resumed: Option<Resumed>,
    /// Settings that change while the run goes on.
    pub reloads: Arc<Reloads>,
}

/// Destinations of what the merger hands over during the run.
#[derive(Default)]
pub struct Receivers {
    /// Called for each change of an alert.
    pub alert: Option<OnAlert>,
    /// Called for an interval once all workers have passed it.
    pub interval: Option<OnInterval>,
    /// Called at marks with new totals, before the intervals that end there.
    pub totals: Option<OnTotals>,
    /// Called with each part of the state but the last, if it is saved in parts.
    pub part: Option<OnPart>,
}
