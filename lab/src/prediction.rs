//! What settings with several threads would reach if each thread had a core of its own, from trials on one core.
//!
//! ```text
//!  busiest thread    rate(setting) = items ÷ processor time of the thread that used most
//!  work and span     seconds(p workers) = work ÷ p + span · (1 − 1 ÷ p)      the bound of Brent
//!  queues            dropped(n queues) = 1 − n · counted by one queue
//! ```
//!
//! All threads of such a trial share one core, so it measures what each thread needs, not what they reach together. A run makes
//! its predictions before it measures anything, and notes their hashes. Where the machine has the cores, the points are
//! measured, too; one that is further off than [`ERROR_MAX`] withdraws the model of its experiment. No prediction
//! is judged: a claim without a measurement stays not possible here, with the prediction beside it.
//!
//! The models ignore what several cores do to each other: lines that move between their caches, shared caches and memory, and
//! a lower clock rate when all are busy.

use crate::LabError;
use crate::experiment::Experiment;
use crate::rows::{Row, State};
use crate::settings::{self, Setting};
use crate::statistics;

/// The largest error of a model that is not withdrawn.
pub const ERROR_MAX: f64 = 0.15;

/// A point that was both predicted and measured.
#[derive(Clone, Debug)]
pub struct Point {
    /// Candidate and the parameters that differ from point to point.
    pub setting: Setting,
    /// Median of the predictions.
    pub predicted: f64,
    /// Median of the measurements; `None` where the machine has too few cores.
    pub measured: Option<f64>,
}

/// The settings of the trials that predictions are made from; none of a quick run.
pub(crate) fn settings(experiment: &Experiment, quick: bool) -> Result<Vec<Setting>, LabError> {
    let Some(prediction) = experiment.prediction.as_ref().filter(|_| !quick) else {
        return Ok(Vec::new());
    };
    let failed = |reason| LabError::Experiment { file: experiment.id.clone(), reason };
    let mut found = settings::settings(experiment, quick)?;
    found.retain(|Setting { candidate, parameters, .. }| {
        prediction.of.is_empty() || prediction.of.iter().any(|of| of.fits(candidate, parameters))
    });
    for setting in &mut found {
        // A plain program, without a thread of its own, is its own prediction.
        if setting.threads == 0 {
            setting.values.retain(|quantity, _| *quantity == prediction.quantity);
            continue;
        }
        setting.values = [(prediction.quantity.clone(), prediction.reading.clone())].into();
        if let Some(command) = &prediction.command {
            (setting.command, setting.equal) = (command.clone(), Vec::new());
            setting.sane.clear();
        }
        if let Some(name) = &prediction.queues {
            let queues = setting.parameters.get(name).and_then(|queues| queues.parse().ok());
            setting.queues = Some(queues.ok_or_else(|| failed(format!("no number of {name}")))?);
        }
        setting.check().map_err(failed)?;
    }
    Ok(found)
}

/// The predictions, as rows that can be judged.
pub(crate) fn as_measured(predicted: &[Row]) -> Vec<Row> {
    let rows = predicted.iter().filter(|row| row.state == State::Predicted);
    rows.map(|row| Row { state: State::Ok, ..row.clone() }).collect()
}

/// Every setting that a model predicts, in the order of the experiment.
pub fn points(
    experiment: &Experiment,
    quick: bool,
    predicted: &[Row],
    measured: &[Row],
) -> Result<Vec<Point>, LabError> {
    let mut points = Vec::new();
    for setting in settings(experiment, quick)?.into_iter().filter(|setting| setting.threads > 0) {
        let median = |rows: &[Row], state| {
            let of = |row: &&Row| {
                row.state == state
                    && setting.values.contains_key(&row.quantity)
                    && row.candidate == setting.candidate
                    && row.parameters == setting.parameters
            };
            let values: Vec<f64> = rows.iter().filter(of).filter_map(|row| row.value).collect();
            statistics::median(&values)
        };
        if let Some(predicted) = median(predicted, State::Predicted) {
            let measured = median(measured, State::Ok);
            points.push(Point { setting, predicted, measured });
        }
    }
    Ok(points)
}

impl Point {
    /// How far the prediction is off, as a share of what was measured; `None` if nothing was. Of queues the packets that are
    /// counted are compared: where few are dropped, their share says little.
    pub fn error(&self) -> Option<f64> {
        let counted = |share: f64| if self.setting.queues.is_some() { 1.0 - share } else { share };
        let [predicted, measured] = [Some(self.predicted), self.measured].map(|v| v.map(counted));
        let (predicted, measured) = (predicted?, measured?);
        Some(if predicted == measured { 0.0 } else { predicted / measured - 1.0 })
    }
}

/// The largest error, with its sign; `None` if nothing was measured.
pub fn worst(points: &[Point]) -> Option<f64> {
    points.iter().filter_map(Point::error).max_by(|a, b| a.abs().total_cmp(&b.abs()))
}

/// The error that a prediction is read with: the largest that was seen, or [`ERROR_MAX`] if nothing was measured.
pub(crate) fn tolerance(points: &[Point]) -> f64 {
    worst(points).map_or(ERROR_MAX, f64::abs)
}

/// Whether the model of these points is withdrawn.
pub fn is_withdrawn(points: &[Point]) -> bool {
    worst(points).is_some_and(|error| error.abs() > ERROR_MAX)
}
