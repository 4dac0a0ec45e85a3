//! Metrics of a program: rows of a table, written in the text format of Prometheus or as OpenMetrics.

use std::fmt::{Display, Write as _};

use ringtap_base::text::shown;

use crate::Reply;

/// A metric, with a function that returns its samples.
pub struct Metric<F> {
    /// Without the prefix of the program. That of a counter ends in `_total`; the others are gauges.
    pub name: &'static str,
    /// What it is, in a sentence.
    pub help: &'static str,
    /// Its samples now; none if the run does not have the metric.
    pub samples: F,
}

/// A row of a table of metrics.
pub const fn metric<F>(name: &'static str, help: &'static str, samples: F) -> Metric<F> {
    Metric { name, help, samples }
}

/// The type of the metric of this name.
pub fn kind(name: &str) -> &'static str {
    if name.ends_with(TOTAL) { "counter" } else { "gauge" }
}

/// The end of a counter's name.
const TOTAL: &str = "_total";

/// A value with its labels.
pub struct Sample {
    labels: String,
    value: String,
}

/// A sample with these labels, such as `queue="0",reason="full"`.
pub fn sample(labels: impl Into<String>, value: impl Display) -> Sample {
    Sample { labels: labels.into(), value: value.to_string() }
}

/// The only sample of a metric without labels.
pub fn one(value: impl Display) -> Vec<Sample> {
    vec![sample("", value)]
}

/// The value of a label, as people may see it, with backslashes and quotes escaped.
pub fn label_value(text: &str) -> String {
    shown(text).replace('\\', "\\\\").replace('"', "\\\"")
}

/// A text format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Prometheus' text format, version 0.0.4.
    Prometheus,
    /// OpenMetrics 1.0: the name of a counter's family has no `_total`, and the text has an end.
    OpenMetrics,
}

/// A text of metrics. Those without samples are left out.
pub struct Exposition {
    format: Format,
    /// Before all names.
    prefix: &'static str,
    text: String,
}

impl Exposition {
    /// A text without metrics.
    pub fn new(format: Format, prefix: &'static str) -> Self {
        Self { format, prefix, text: String::new() }
    }

    /// Adds a metric with its samples.
    pub fn add(&mut self, name: &str, help: &str, samples: &[Sample]) {
        let (prefix, kind) = (self.prefix, kind(name));
        if samples.is_empty() {
            return;
        }
        let family = match self.format {
            Format::Prometheus => name,
            Format::OpenMetrics => name.strip_suffix(TOTAL).unwrap_or(name),
        };
        // Writing to a String cannot fail.
        let _ =
            write!(self.text, "# HELP {prefix}{family} {help}\n# TYPE {prefix}{family} {kind}\n");
        for Sample { labels, value } in samples {
            let _ = match labels.as_str() {
                "" => writeln!(self.text, "{prefix}{name} {value}"),
                labels => writeln!(self.text, "{prefix}{name}{{{labels}}} {value}"),
            };
        }
    }

    /// The whole text.
    pub fn text(self) -> String {
        match self.format {
            Format::Prometheus => self.text,
            Format::OpenMetrics => self.text + "# EOF\n",
        }
    }

    /// The text as a reply, with its media type.
    pub fn reply(self) -> Reply {
        let kind = match self.format {
            Format::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        };
        Reply::Resource { kind, body: self.text().into_bytes() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_formats_have_the_same_samples() {
        let text = |format| {
            let mut page = Exposition::new(format, "a_");
            page.add("lost_total", "Lost.", &[sample("to=\"b\"", 3), sample("", 0.5)]);
            page.add("room", "Room.", &one(7));
            page.add("absent", "Absent.", &[]);
            page.text()
        };
        let samples = "a_lost_total{to=\"b\"} 3\na_lost_total 0.5\n";
        let room = "# HELP a_room Room.\n# TYPE a_room gauge\na_room 7\n";
        let head = "# HELP a_lost_total Lost.\n# TYPE a_lost_total counter\n";
        assert_eq!(text(Format::Prometheus), format!("{head}{samples}{room}"));
        let head = head.replace(TOTAL, "");
        assert_eq!(text(Format::OpenMetrics), format!("{head}{samples}{room}# EOF\n"));
        assert_eq!(label_value("a\"b\\"), "a\\\"b\\\\");
    }
}
