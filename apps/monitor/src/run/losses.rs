//! The table of losses: why packets, messages, records or alerts are missing, or numbers are not exact.
//!
//! ```text
//! an ended run ─┬▶ losses, lacks: errors of --fail-on-drop and their exit code; states, merges
//!               ├▶ warnings:      stderr, notices of the report
//!               └▶ fields:        fields of the JSON report
//! a live run ────▶ losses_so_far: lines of intervals, warnings, terminal view, page, metrics
//! ```
//!
//! A new loss is a row here, and in the table of docs/MONITOR.md; its metric has an alert in packaging/prometheus.

use std::collections::BTreeMap;

use ringtap_engine::{Plan, Watch};
use ringtap_export::{Items, Summary};
use ringtap_extract::Unread;

use super::outcome::Outcome;
use crate::report::{Report, Scans, Sections};
use crate::state::PACKETS_DROPPED;
use crate::{Options, Totals};

/// A reason why something is missing or not exact. Each fails a run with `--fail-on-drop`. Texts that it does not have are empty.
pub struct Loss {
    /// Its name in the errors of `--fail-on-drop`, in states and in merges.
    pub name: &'static str,
    number: Number,
    /// The field of the JSON report with the number, if it is outside the digest and of no other part.
    field: &'static str,
    /// The warning, with the number as `{count}`, unless other messages report the loss.
    warning: &'static str,
    /// The flags that help.
    remedy: &'static str,
    /// Its metric, without the prefix `ringtap_`.
    pub metric: &'static str,
    /// What follows the number during the run.
    pub text: &'static str,
    /// The number during the run, if it is available then.
    pub so_far: Option<SoFar>,
}

/// The number of a loss during the run.
pub type SoFar = fn(&Watch, &Totals) -> u64;

/// The number of a loss in an ended run.
enum Number {
    /// Part of the state of the run.
    Run(fn(&Outcome) -> u64),
    /// Part of a section, and of the state. A merge adds its own.
    Section(fn(&Sections) -> Option<u64>),
    /// Of outputs or alerts; not part of the state.
    Output(fn(&Outcome) -> u64),
}

use Number::{Output, Run, Section};

/// All losses, in the order in which they are listed.
pub static LOSSES: &[Loss] = &[
    loss(PACKETS_DROPPED, Run(|own| own.run.dropped())).metric("dropped_packets_total"),
    loss("flows ended early for lack of memory", Run(|own| flows_ended_early(own.report())))
        .warning("{count} flows ended early, because the flow table has room for {max_flows}")
        .remedy("raise --memory or --max-flows, or shorten --idle-timeout")
        .metric("flows_ended_early_total")
        .live("flows ended early", |_, now| now.flows_ended_early()),
    loss(
        "conversation counts estimated",
        Run(|own| own.report().conversations.is_some_and(|all| !all.exact).into()),
    )
    .warning("the numbers of conversations are estimates for lack of memory")
    .remedy("raise --memory or --max-flows")
    .metric("conversations_estimated")
    .live("", |_, now| now.conversations_estimated.into()),
    loss(FURTHER, Run(|own| own.report().packets_in_further_intervals))
        .warning("{count} packets are in intervals beyond those in the report")
        .remedy("raise --memory or lengthen --interval")
        .metric("further_interval_packets_total")
        .live("packets in further intervals", |_, now| now.packets_in_further_intervals),
    loss(
        "facts from payloads left out for lack of memory",
        Run(|own| own.report().facts.as_ref().map_or(0, |facts| facts.no_room)),
    )
    .warning("flow records lack {count} facts from payloads for lack of memory")
    .remedy("raise --memory"),
    loss("payloads not read for lack of memory", Run(|own| own.run.unread(Unread::NoRoom)))
        .warning("{count} messages in payloads were not read for lack of memory")
        .remedy("raise --memory")
        .metric("unread_payloads_total")
        .live("messages not read", |watch, _| watch.unread_payloads[Unread::NoRoom as usize].get()),
    loss("messages evicted for lack of memory", Run(|own| own.run.unread(Unread::Evicted)))
        .warning(
            "{count} messages that were read were evicted for lack of memory; those that are sent \
             again count again",
        )
        .remedy("raise --memory")
        .metric("unread_payloads_total")
        .live("messages evicted", |watch, _| watch.unread_payloads[Unread::Evicted as usize].get()),
    loss(
        "messages not joined for lack of memory",
        Output(|own| own.report().exchanges_without_room),
    )
    .field("exchanges_without_room")
    .warning(
        "{count} messages are lines of their own in events for lack of memory",
    )
    .remedy("raise --memory"),
    loss("fragments forgotten for lack of memory", Run(|own| own.run.counts.fragments_forgotten))
        .field("fragments_forgotten")
        .warning(
            "{count} first fragments were evicted, because the table for {max_datagrams} \
             fragmented datagrams was full; later fragments may lack their ports",
        )
        .remedy("raise --memory")
        .metric("forgotten_fragments_total")
        .live("fragments forgotten", |watch, _| watch.fragments_forgotten.get()),
    loss(
        "packets whose duplicates may count, for lack of memory",
        Run(|own| own.run.counts.duplicates_evicted),
    )
    .field("duplicates_evicted")
    .warning(
        "duplicates of {count} packets may be counted, because the table for {max_duplicates} \
         packets was full before their window was over",
    )
    .remedy("raise --memory or shorten --dedup")
    .metric("evicted_packets_total")
    .live("packets whose duplicates may count", |watch, _| watch.duplicates_evicted.get()),
    loss(
        "packets with unknown link addresses, tags and tunnel",
        Run(|own| own.packets_without_path),
    )
    .field("packets_without_path"),
    loss("packets in another queue than the rest of their flow", Run(|own| own.run.packets_split))
        .field("packets_split")
        .metric("split_packets_total")
        .live("packets split over queues", |watch, _| watch.split.get()),
    loss("flow records not exported", Output(|own| lost(&own.export, &[Items::Flows])))
        .metric("output_records_lost_total"),
    loss("states not exported", Output(|own| lost(&own.export, &[Items::States])))
        .metric("output_records_lost_total"),
    loss(
        "flow records, events and totals not written",
        Output(|own| lost(&own.write, &[Items::Flows, Items::Events, Items::Totals])),
    )
    .metric("output_records_lost_total"),
    loss("alerts not delivered", Output(|own| lost(&own.write, &[Items::Alerts])))
        .metric("output_records_lost_total"),
    loss("alerts without room", Output(|own| own.report().alerts_without_room))
        .field("alerts_without_room")
        .warning(
            "{count} alerts were not reported, because as many as are followed at a time were open",
        )
        .remedy("raise --scan-threshold, --udp-scan-threshold or the limits of --alert")
        .metric("alerts_without_room_total")
        .live("alerts without room", |_, now| now.alerts_without_room),
    loss(
        "attempts ignored by the analyses of scans",
        Section(|of| {
            let ignored = |own: &Option<Scans>| own.as_ref().map(|own| own.attempts_ignored);
            ignored(&of.scans).into_iter().chain(ignored(&of.udp_scans)).reduce(|a, b| a + b)
        }),
    )
    .warning("the analyses of scans ignored {count} attempts for lack of memory")
    .remedy("raise --memory or --max-flows")
    .metric("scan_attempts_ignored_total")
    .live("scan attempts ignored", |_, now| now.attempts_ignored),
    loss(
        "octets uncertain among the talkers",
        Section(|of| Some(of.talkers.as_ref()?.error_bound)),
    )
    .warning("the talkers' octets may be too low by up to {count} for lack of memory")
    .remedy("raise --memory or --max-flows"),
    loss("names without room in the lists", Section(|of| Some(of.names.as_ref()?.values_ignored)))
        .warning("{count} values had no room in the lists of names")
        .remedy("raise --memory"),
    loss(
        "DNS records without room",
        Section(|of| Some(of.passive_dns.as_ref()?.records_ignored)),
    )
    .warning("{count} DNS records had no room in passive DNS")
    .remedy("raise --memory"),
    loss(
        "TCP records without room in the lists",
        Section(|of| Some(of.tcp.as_ref()?.records_ignored)),
    )
    .warning("{count} TCP records had no room in the lists of servers and pairs")
    .remedy("raise --memory or --max-flows"),
    loss(
        "responses without room in the list",
        Section(|of| Some(of.tcp.as_ref()?.responses_ignored)),
    )
    .warning("{count} responses had no room in the list of servers")
    .remedy("raise --memory or --max-flows"),
    loss(
        "flow records without all first packets, bursts and octets",
        Section(|of| Some(of.statistics.as_ref()?.records_cut)),
    )
    .warning("{count} flow records lack first packets, bursts or octets for lack of memory")
    .remedy("raise --memory, or lower --statistics-packets or --statistics-octets"),
    loss(
        "intervals whose activity is not listed",
        Section(|of| Some(of.activity.as_ref()?.further)),
    )
    .field("activity_in_further_intervals")
    .warning("the report lacks the activity of {count} intervals for lack of room")
    .remedy("raise --memory, lengthen --interval or lower --top"),
    loss(
        "matches of watched entries without room",
        Section(|of| Some(of.watch.as_ref()?.matches_ignored)),
    )
    .warning(
        "{count} matches of watched entries are not in the report, because too many hosts reached \
         too many entries",
    )
    .remedy("remove the most common entries from the list"),
    loss(
        "rows without room in analyses of other crates",
        Section(|of| of.custom.values().map(|own| own.lost).reduce(u64::saturating_add)),
    )
    .warning("{count} rows had no room in the tables of analyses of other crates")
    .remedy("raise --memory or --max-flows, or make tables with more rows"),
    loss("hosts and ports without room", Section(|of| Some(of.changes.as_ref()?.ignored)))
        .warning(
            "{count} times a host or a port had no room among those that are compared with earlier ones; one counts once \
             an interval",
        )
        .remedy("name fewer networks in --networks, or lengthen --interval"),
];

/// The name of packets in intervals without a row.
pub(super) const FURTHER: &str = "packets beyond the intervals listed";

const fn loss(name: &'static str, number: Number) -> Loss {
    let [field, warning, remedy, metric, text] = [""; 5];
    Loss { name, number, field, warning, remedy, metric, text, so_far: None }
}

impl Loss {
    const fn field(self, field: &'static str) -> Self {
        Self { field, ..self }
    }

    const fn warning(self, warning: &'static str) -> Self {
        Self { warning, ..self }
    }

    const fn remedy(self, remedy: &'static str) -> Self {
        Self { remedy, ..self }
    }

    const fn metric(self, metric: &'static str) -> Self {
        Self { metric, ..self }
    }

    const fn live(self, text: &'static str, so_far: SoFar) -> Self {
        Self { text, so_far: Some(so_far), ..self }
    }

    /// Its name as a sentence.
    pub fn meaning(&self) -> String {
        let (first, rest) = self.name.split_at(1);
        format!("{}{rest}.", first.to_uppercase())
    }

    /// The warning about this number, with the remedy.
    pub fn warning_of(&self, count: u64, plan: &Plan<Options>) -> Option<String> {
        let text = self.warning.replace("{count}", &count.to_string());
        let text = text.replace("{max_flows}", &plan.app.max_flows().to_string());
        let text = text.replace("{max_datagrams}", &plan.buffers.max_datagrams.to_string());
        let text = text.replace("{max_duplicates}", &plan.buffers.max_duplicates.to_string());
        (!text.is_empty()).then(|| format!("{text}: {}", self.remedy))
    }
}

fn flows_ended_early(report: &Report) -> u64 {
    let reasons = report.flows.as_ref().map(|flows| &flows.end_reasons);
    reasons.and_then(|reasons| reasons.get("lack_of_resources").copied()).unwrap_or(0)
}

/// Records of these kinds that outputs lost.
fn lost(outputs: &[Summary], items: &[Items]) -> u64 {
    outputs.iter().filter(|one| items.contains(&one.items)).map(Summary::lost).sum()
}

/// The losses of a run that goes on, with their numbers.
pub fn losses_so_far(watch: &Watch, totals: &Totals) -> impl Iterator<Item = (&'static Loss, u64)> {
    let number = |loss: &'static Loss| Some((loss, loss.so_far?(watch, totals)));
    LOSSES.iter().filter_map(number).filter(|(_, count)| *count > 0)
}

/// The losses of these sections.
pub(super) fn of_sections(sections: &Sections) -> impl Iterator<Item = (&'static str, u64)> {
    LOSSES.iter().filter_map(|loss| match loss.number {
        Section(number) => Some((loss.name, number(sections)?)),
        Run(_) | Output(_) => None,
    })
}

impl Outcome {
    fn counted(&self) -> impl Iterator<Item = (&'static Loss, u64)> {
        let count = |loss: &'static Loss| match loss.number {
            Run(number) | Output(number) => (loss, number(self)),
            Section(number) => (loss, number(&self.report().sections).unwrap_or(0)),
        };
        LOSSES.iter().map(count).filter(|(_, count)| *count > 0)
    }

    /// The losses with their numbers; empty if the report is complete and exact.
    pub fn losses(&self) -> Vec<(&'static str, u64)> {
        self.counted().map(|(loss, count)| (loss.name, count)).collect()
    }

    /// The losses that belong to the state.
    pub(super) fn lacks(&self) -> BTreeMap<&'static str, u64> {
        let all = self.counted().filter(|(loss, _)| !matches!(loss.number, Output(_)));
        all.map(|(loss, count)| (loss.name, count)).collect()
    }

    /// The losses with a field of the JSON report.
    pub(super) fn fields(&self) -> BTreeMap<&'static str, u64> {
        let all = self.counted().filter(|(loss, _)| !loss.field.is_empty());
        all.map(|(loss, count)| (loss.field, count)).collect()
    }

    /// Warnings about what the report lacks, with the remedy; they are among the notices of the
    /// JSON report. Drops are in the ledger, records not exported in the summaries of the export.
    pub fn warnings(&self) -> Vec<String> {
        let losses = self.counted().filter_map(|(loss, count)| loss.warning_of(count, &self.plan));
        let links = self.run.undecoded_links().into_iter().map(|(link, packets)| {
            format!("{packets} packets have the link type {link}, which is not decoded: they count as not IP")
        });
        let sections = self.report().sections.custom.values();
        let of_sections = sections.flat_map(|own| {
            let silent =
                own.error.as_ref().map(|error| format!("{} has no JSON: {error}", own.name));
            let lost = format!("{}: {} rows had no room in its tables", own.name, own.lost);
            silent.into_iter().chain((own.lost > 0).then_some(lost))
        });
        let custom = self.plan.app.state.iter().flat_map(|_| self.plan.app.analyses.custom.each());
        let unsaved = custom.filter(|own| own.tables().is_empty()).map(|own| {
            format!(
                "the state has nothing of {}, which has no tables: a merge has no such section",
                own.name()
            )
        });
        losses.chain(links).chain(of_sections).chain(unsaved).collect()
    }
}

#[cfg(test)]
mod tests {
    use ringtap_engine::Machine;

    use super::*;
    use crate::analyses::watch::Watched;

    #[test]
    fn a_loss_of_a_section_has_a_warning_with_its_number() {
        let watched = Watched { matches_ignored: 5, ..Watched::default() };
        let sections = Sections { watch: Some(watched), ..Sections::default() };
        let counted: Vec<_> = of_sections(&sections).filter(|(_, count)| *count > 0).collect();
        assert_eq!(counted, [("matches of watched entries without room", 5)]);
        let machine = Machine { cores: 1, allowed_cores: vec![0], memory_bytes: 1 << 30 };
        let run = ringtap_engine::Options::default();
        let plan = Plan::new(run, Options::default(), &machine).unwrap();
        let loss = LOSSES.iter().find(|loss| loss.name == counted[0].0).unwrap();
        let warning = loss.warning_of(5, &plan).unwrap();
        assert!(
            warning.starts_with("5 matches of watched entries are not in the report"),
            "{warning}"
        );
    }

    /// The page of the monitor has the table of all losses.
    #[test]
    fn the_page_lists_all_losses() {
        let cell = |text: String| if text.is_empty() { "–".to_owned() } else { text };
        let rows = LOSSES.iter().map(|loss| {
            let warning = loss.warning.replace("{count}", "N").replace(['{', '}'], "`");
            let metric = match loss.metric {
                "" => String::new(),
                metric => format!("`ringtap_{metric}`"),
            };
            let [warning, remedy, metric] = [warning, loss.remedy.into(), metric].map(cell);
            format!("| {} | {warning} | {remedy} | {metric} |\n", loss.name)
        });
        let table = rows.collect::<String>();
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/MONITOR.md");
        let page = std::fs::read_to_string(path).unwrap();
        assert!(page.contains(&table), "docs/MONITOR.md needs these rows:\n{table}");
    }
}
