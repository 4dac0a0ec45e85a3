//! Prints the intervals of a measurement as they end. A closed stdout ends the run.

use std::io::{self, ErrorKind};
use std::sync::Arc;

use anyhow::Context;
use ringtap_base::text::shown_lines;
use ringtap_engine::{Plan, Watch};
use ringtap_measure::run::{MeasureOutcome, Options};
use ringtap_measure::{Interval, OnInterval, Report};
use ringtap_terminal::console::print_message;
use ringtap_terminal::numbers::count;

use super::queue::Queue;
use super::{csv, text};
use crate::args::{MeasureArgs, MeasureForm};

/// What threads of the run share.
pub(super) static WATCH: Watch = Watch::new();

/// Prints intervals in one form.
#[derive(Clone)]
pub(super) struct Printer {
    form: MeasureForm,
    is_live: bool,
    queue: Arc<Queue>,
}

impl Printer {
    /// Prints what precedes the first interval; `None` without intervals.
    ///
    /// # Errors
    /// The thread that writes cannot be started.
    pub(super) fn begin(args: &MeasureArgs, plan: &Plan<Options>) -> anyhow::Result<Option<Self>> {
        if args.interval.is_none() {
            return Ok(None);
        }
        let (form, is_live) = (args.report, plan.options.live);
        let queue = Queue::start(io::stdout(), is_live, &WATCH).context("a thread")?;
        let own = Self { form, is_live, queue };
        own.print(
            match own.form {
                MeasureForm::Text => text::plan(plan),
                MeasureForm::Json => String::new(),
                MeasureForm::Csv => csv::header(true),
            },
            false,
        );
        Ok(Some(own))
    }

    /// Prints each interval at its end.
    pub(super) fn on_interval(&self) -> OnInterval {
        let (own, mut has_warned) = (self.clone(), false);
        Box::new(move |interval| {
            if own.form == MeasureForm::Csv && !has_warned {
                has_warned = warn_lost(&interval.report);
            }
            own.print(own.text(interval), true);
        })
    }

    fn text(&self, interval: &Interval) -> String {
        match self.form {
            MeasureForm::Text => text::interval(interval),
            MeasureForm::Json => {
                let dropped = self.is_live.then(|| WATCH.dropped.get());
                // Strings and numbers only: JSON can hold all of them.
                interval.to_json(dropped).unwrap_or_default() + "\n"
            }
            MeasureForm::Csv => csv::rows(Some(interval), &interval.report),
        }
    }

    fn print(&self, text: String, is_interval: bool) {
        self.queue.put(shown_lines(&text), is_interval);
    }

    /// Prints what follows the last interval. Returns the number of intervals that stdout has not taken, or `None` if its
    /// reader has gone.
    ///
    /// # Errors
    /// Writing to stdout failed.
    pub(super) fn end(self, outcome: &MeasureOutcome) -> anyhow::Result<Option<u64>> {
        if self.form == MeasureForm::Text {
            self.print(format!("\n{}", text::run(outcome)), false);
        }
        match self.queue.end() {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(None),
            result => result.map(Some).context("writing to stdout"),
        }
    }
}

/// Prints that a table was too small, where no report has it; returns whether it was.
pub(super) fn warn_lost(report: &Report) -> bool {
    let lost = report.lost;
    if lost > 0 {
        let lost = count(lost);
        print_message(
            "warning",
            &format!("keys without room in the table, of weight {lost} together: raise --memory"),
        );
    }
    lost > 0
}
