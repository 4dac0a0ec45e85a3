//! `--metrics`: the counters of a run in Prometheus' text format. `table.rs` lists them.

mod numbers;
mod table;

use ringtap_engine::Watch;
use ringtap_monitor::{Totals, losses_so_far};
use ringtap_serve::{Exposition, Format, Metric, Reply, label_value, one};
use ringtap_terminal::numbers::count;

use numbers::Numbers;
pub(crate) use numbers::RunStats;

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
        page(self.watch, self.queues, &self.interfaces, &self.stats()).reply()
    }
}

/// All metrics.
fn page(watch: &Watch, queues: usize, interfaces: &[String], stats: &RunStats) -> Exposition {
    let numbers = Numbers { watch, queues, interfaces, stats };
    let mut page = Exposition::new(Format::Prometheus, "ringtap_");
    for Metric { name, help, samples } in table::METRICS {
        page.add(name, help, &samples(&numbers));
    }
    for (loss, so_far) in table::losses() {
        page.add(loss.metric, &loss.meaning(), &one(so_far(watch, &stats.totals)));
    }
    page
}

/// The losses so far that are shown, with their numbers.
pub(crate) fn losses(watch: &Watch, totals: &Totals) -> Vec<String> {
    let shown = losses_so_far(watch, totals).filter(|(loss, _)| !loss.text.is_empty());
    shown.map(|(loss, number)| format!("{} {}", count(number), loss.text)).collect()
}

#[cfg(test)]
mod packaging;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ringtap_extract::Unread;
    use ringtap_monitor::report::TcpTotals;
    use ringtap_monitor::{Responses, Totals};
    use ringtap_serve::kind;

    use super::*;

    #[test]
    fn each_metric_has_a_description() {
        let watch = Watch::new();
        watch.packets.add(1, 7);
        watch.fragments_forgotten.set(1, 5);
        watch.messages.set(0, 6);
        watch.unread_payloads[Unread::Truncated as usize].set(0, 4);
        let stats = RunStats {
            elapsed: Duration::from_millis(1500),
            alerts: 2,
            totals: Totals {
                flows_ended: [0, 0, 0, 0, 3],
                tcp: Some(TcpTotals { zero_windows: 9, ..Default::default() }),
                responses: Some([2, 3, 4, 5].map(|count| Responses { count, sum_us: 100 * count })),
                ..Totals::default()
            },
            ..RunStats::default()
        };
        let text = page(&watch, 2, &[], &stats).text();
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
            "ringtap_responses_total{exchange=\"http\"} 2\n",
            "ringtap_response_microseconds_total{exchange=\"tcp\"} 500\n",
        ] {
            assert!(text.contains(wanted), "{wanted:?} is not in {text}");
        }
        assert!(!text.contains("\nringtap_flows "), "no flows before the first interval ends");
        assert!(!text.contains("interface"), "files have no interfaces: {text}");
    }

    #[test]
    fn metrics_of_interfaces_have_an_interface_label() {
        let watch = Watch::new();
        let names = ["eth0", "a\"b\\"].map(label_value);
        let text = page(&watch, 2, &names, &RunStats::default()).text();
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
        let metrics = table::METRICS.iter().map(|metric| (metric.name, metric.help.to_owned()));
        let losses = table::losses().map(|(loss, _)| (loss.metric, loss.meaning()));
        let row = |(name, help)| format!("| `ringtap_{name}` | {} | {help} |\n", kind(name));
        let table = metrics.chain(losses).map(row).collect::<String>();
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/LIVE.md");
        let page = std::fs::read_to_string(path).unwrap();
        assert!(page.contains(&table), "docs/LIVE.md needs these rows:\n{table}");
    }
}
