//! Prints the intervals of a measurement as they end. A closed stdout ends the run.

use std::io::{self, ErrorKind, Write};
use std::sync::{Arc, OnceLock};

use anyhow::Context;
use ringtap_base::text::shown_lines;
use ringtap_engine::{Plan, Watch};
use ringtap_measure::run::{MeasureOutcome, Options};
use ringtap_measure::{Interval, OnInterval, Report};
use ringtap_terminal::console::print_message;
use ringtap_terminal::numbers::count;

use super::{csv, text};
use crate::args::{MeasureArgs, MeasureForm};

/// What threads of the run share.
pub(super) static WATCH: Watch = Watch::new();

/// Prints intervals in one form.
pub(super) struct Printer {
    form: MeasureForm,
    is_live: bool,
    /// Why stdout takes no more.
    failure: Arc<OnceLock<io::Error>>,
}

impl Printer {
    /// Prints what precedes the first interval; `None` without intervals.
    pub(super) fn begin(args: &MeasureArgs, plan: &Plan<Options>) -> anyhow::Result<Option<Self>> {
        if args.interval.is_none() {
            return Ok(None);
        }
        let own = Self {
            form: args.report,
            is_live: !args.interface.is_empty(),
            failure: Arc::default(),
        };
        own.print(&match own.form {
            MeasureForm::Text => text::plan(plan),
            MeasureForm::Json => String::new(),
            MeasureForm::Csv => csv::header(true),
        });
        Ok(Some(own))
    }

    /// Prints each interval at its end.
    pub(super) fn on_interval(&self) -> OnInterval {
        let own = Self { failure: Arc::clone(&self.failure), ..*self };
        let mut has_warned = false;
        Box::new(move |interval| {
            if own.form == MeasureForm::Csv && !has_warned {
                has_warned = warn_lost(&interval.report);
            }
            own.print(&own.text(interval));
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

    fn print(&self, text: &str) {
        if self.failure.get().is_some() {
            return;
        }
        let mut out = io::stdout().lock();
        if let Err(error) = out.write_all(shown_lines(text).as_bytes()).and_then(|()| out.flush()) {
            let _ = self.failure.set(error);
            WATCH.stop();
        }
    }

    /// Whether the reader of stdout has gone.
    pub(super) fn is_closed(&self) -> bool {
        self.failure.get().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
    }

    /// Prints what follows the last interval.
    pub(super) fn end(self, outcome: &MeasureOutcome) -> anyhow::Result<()> {
        match self.form {
            MeasureForm::Text => self.print(&format!("\n{}", text::run(outcome))),
            _ => warn_dropped(outcome),
        }
        let failure = Arc::into_inner(self.failure).and_then(OnceLock::into_inner);
        failure.map_or(Ok(()), Err).context("writing to stdout")
    }
}

/// Prints that packets were dropped, where no report has it.
pub(super) fn warn_dropped(outcome: &MeasureOutcome) {
    let dropped = outcome.run.dropped();
    if dropped > 0 {
        print_message("warning", &format!("packets dropped: {}", count(dropped)));
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
