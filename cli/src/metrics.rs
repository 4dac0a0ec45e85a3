//! `--metrics`: the counters of a run in Prometheus' text format. `metrics/table.rs` lists them.

mod numbers;
mod table;

use std::fmt::Write as _;

use ringtap_engine::Watch;
use ringtap_serve::{Get, Reply, Site, label_value};

pub(crate) use numbers::RunStats;
use numbers::{Metric, Numbers};

/// The type of the format.
const KIND: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What the numbers come from.
pub(crate) struct Metrics {
    watch: &'static Watch,
    queues: usize,
    interfaces: Vec<String>,
    stats: Box<dyn Fn() -> RunStats + Send>,
}

impl Metrics {
    /// The metrics of a run with this number of queues. `interfaces` is empty for files. `stats` returns the values that
    /// `watch` does not hold.
    pub(crate) fn new(
        watch: &'static Watch,
        queues: usize,
        interfaces: &[String],
        stats: impl Fn() -> RunStats + Send + 'static,
    ) -> Self {
        let interfaces = interfaces.iter().map(|name| label_value(name)).collect();
        Self { watch, queues, interfaces, stats: Box::new(stats) }
    }

    /// The values that the watch does not hold.
    pub(crate) fn stats(&self) -> RunStats {
        (self.stats)()
    }

    /// The current values.
    pub(crate) fn reply(&self) -> Reply {
        let text = text(self.watch, self.queues, &self.interfaces, &self.stats());
        Reply::Resource { kind: KIND, body: text.into_bytes() }
    }
}

impl Site for Metrics {
    fn get(&mut self, request: &Get<'_>) -> Reply {
        if request.path == "/metrics" {
            self.reply()
        } else {
            Reply::missing("the metrics are at /metrics")
        }
    }
}

/// All metrics in Prometheus' text format. Those without samples are left out.
fn text(watch: &Watch, queues: usize, interfaces: &[String], stats: &RunStats) -> String {
    let numbers = Numbers { watch, queues, interfaces, stats };
    let mut text = String::new();
    for Metric { name, kind, help, samples } in table::METRICS {
        let samples = samples(&numbers);
        if samples.is_empty() {
            continue;
        }
        // Writing to a String cannot fail.
        let _ = write!(text, "# HELP ringtap_{name} {help}\n# TYPE ringtap_{name} {kind}\n");
        for (labels, value) in samples {
            let _ = writeln!(text, "ringtap_{name}{labels} {value}");
        }
    }
    text
}

#[cfg(test)]
mod packaging;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ringtap_extract::Unread;
    use ringtap_monitor::report::TcpTotals;
    use ringtap_monitor::{Shortage, Totals};

    use super::*;

    #[test]
    fn each_metric_has_a_description() {
        let watch = Watch::new();
        watch.packets.add(1, 7);
        watch.fragments_forgotten.set(1, 5);
        watch.messages.set(0, 6);
        watch.unread_payloads[Unread::Truncated as usize].set(0, 4);
        let shortage = Shortage { flows_ended_early: 3, ..Shortage::default() };
        let stats = RunStats {
            elapsed: Duration::from_millis(1500),
            alerts: 2,
            flows: None,
            totals: Totals {
                shortage,
                tcp: Some(TcpTotals { zero_windows: 9, ..Default::default() }),
                live_flows: 0,
            },
            outputs: Vec::new(),
        };
        let text = text(&watch, 2, &[], &stats);
        for wanted in [
            "# TYPE ringtap_packets_total counter\nringtap_packets_total{queue=\"0\"} 0\n",
            "ringtap_packets_total{queue=\"1\"} 7\n",
            "ringtap_run_seconds 1.500\n",
            "ringtap_alerts_total 2\n",
            "ringtap_forgotten_fragments_total 5\n",
            "ringtap_flows_ended_early_total 3\n",
            "ringtap_conversations_estimated 0\n",
            "ringtap_payload_messages_total 6\n",
            "ringtap_unread_payloads_total{reason=\"truncated\"} 4\n",
            "ringtap_tcp_zero_windows_total 9\n",
        ] {
            assert!(text.contains(wanted), "{wanted:?} is not in {text}");
        }
        assert!(!text.contains("\nringtap_flows "), "no flows before the first interval ends");
        assert!(!text.contains("interface"), "files have no interfaces: {text}");
    }

    #[test]
    fn metrics_of_interfaces_have_an_interface_label() {
        let watch = Watch::new();
        let stats = RunStats {
            elapsed: Duration::ZERO,
            alerts: 0,
            flows: None,
            totals: Totals::default(),
            outputs: Vec::new(),
        };
        let names = ["eth0", "a\"b\\"].map(label_value);
        let text = text(&watch, 2, &names, &stats);
        for wanted in [
            "ringtap_packets_total{interface=\"eth0\",queue=\"1\"} 0\n",
            "ringtap_packets_total{interface=\"a\\\"b\\\\\",queue=\"0\"} 0\n",
            "ringtap_bytes_total{interface=\"eth0\"} 0\n",
            "ringtap_dropped_packets_total{interface=\"eth0\"} 0\n",
            "ringtap_interface_gone{interface=\"eth0\"} 0\n",
            "ringtap_interface_up{interface=\"eth0\"} 1\n",
            "ringtap_interface_changes_total{interface=\"eth0\",change=\"mtu\"} 0\n",
        ] {
            assert!(text.contains(wanted), "{wanted:?} is not in {text}");
        }
        assert!(!text.contains("ringtap_packets_total{queue"), "{text}");
    }

    /// The page of live runs has the table of all metrics.
    #[test]
    fn the_page_lists_all_metrics() {
        let rows = table::METRICS.iter().map(|metric| {
            format!("| `ringtap_{}` | {} | {} |\n", metric.name, metric.kind, metric.help)
        });
        let table = rows.collect::<String>();
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/LIVE.md");
        let page = std::fs::read_to_string(path).unwrap();
        assert!(page.contains(&table), "docs/LIVE.md needs these rows:\n{table}");
    }
}
