//! Plan, report and recommendation of `ringtap measure` as text.

use ringtap_engine::{INTERRUPTED, Plan};
use ringtap_measure::report::KeysFrom;
use ringtap_measure::run::{Advice, MeasureOutcome, Merged, Options, Tried};
use ringtap_measure::{Interval, Report as MeasureReport};

use ringtap_terminal::numbers::{bytes, count, of, rate};
use ringtap_terminal::table::{Lean, Table};

use super::queue::MEMORY_BYTES;

use Lean::{Left, Right};

/// Most heavy keys in the text without a number of them.
const ROWS: usize = 20;

/// Memory of the intervals that wait to be printed, and of the thread that prints them; `None` without intervals.
pub(super) fn printing_bytes(app: &Options) -> Option<u64> {
    app.settings.interval_ns.map(|_| MEMORY_BYTES)
}

/// The plan.
pub(super) fn plan(plan: &Plan<Options>) -> String {
    let Plan { options, arrangement, app, .. } = plan;
    let Options { design, settings, rate, .. } = app;
    let (structures, each) = (app.structures(arrangement.workers), settings.memory_bytes);
    let mut text = format!("measure {}\n", options.source.join(", "));
    text += &format!(
        "  {} by {}, {}{}\n",
        settings.weight,
        settings.by,
        listed(settings.threshold, settings.top),
        settings
            .interval_ns
            .map_or_else(String::new, |ns| format!(", every {} s", ns as f64 / 1e9))
    );
    text += &format!(
        "  {design}, {}, {} of {}, up to {structures} ({})",
        settings.state,
        settings.structure,
        bytes(each),
        bytes(structures * each)
    );
    if let Some(printing) = printing_bytes(app) {
        text += &format!(", and {} to print intervals", bytes(printing));
    }
    text.push('\n');
    text += &format!("  {}: {}\n", arrangement.skeleton, crate::text::seats(plan));
    text += &format!("  ring {} {}/{}", options.ring, options.ring_capacity, options.ring_batch);
    if let Some(rate) = rate {
        text += &format!("; {} packets/s offered", count(*rate));
    }
    text + &format!("; seed {}\n", options.seed)
}

/// The keys that are listed.
fn listed(threshold: Option<f64>, top: Option<usize>) -> String {
    let top = top.map(|top| format!("top {}", count(top as u64)));
    let share = threshold.map(|share| format!("from {share} of all"));
    [top, share].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// The report.
pub(super) fn report(outcome: &MeasureOutcome) -> String {
    let answer = answer(&outcome.merged.report);
    format!("{}\n{}{answer}", plan(&outcome.plan), run(outcome))
}

/// A finished interval.
pub(super) fn interval(interval: &Interval) -> String {
    format!("\n{} to {}\n{}", interval.start, interval.end, answer(&interval.report))
}

/// The packets of a run, and its speed.
pub(super) fn run(outcome: &MeasureOutcome) -> String {
    let report = &outcome.merged.report;
    let performance = &outcome.run.performance;
    let mut text = format!(
        "{} received, {} dropped ({:.2} %), {} packets/s\n",
        of(outcome.run.received, "packet"),
        count(outcome.run.ledger.dropped().values().sum()),
        100.0 * outcome.packet_drop_rate(),
        rate(performance.packets_per_second as f64)
    );
    if outcome.run.interrupted {
        text += &format!("{INTERRUPTED}\n");
    }
    if outcome.run.ledger.residual() > 0 {
        text += &format!("unaccounted for: {}\n", count(outcome.run.ledger.residual()));
    }
    if let (Some(processing), Some(delay)) = (report.processing_ns_mean, report.delay_ns) {
        text += &format!(
            "processing {processing:.1} ns per packet\n\
             delay p50 {} ns, p99 {} ns, p999 {} ns\n",
            count(delay.p50),
            count(delay.p99),
            count(delay.p999)
        );
    }
    text
}

/// A merged measurement.
pub(super) fn merged(merged: &Merged, machines: usize) -> String {
    format!("{} merged\n", of(machines as u64, "measurement")) + &answer(&merged.report)
}

/// The result of a measurement.
fn answer(report: &MeasureReport) -> String {
    let mut text = format!(
        "{} measured, total {}, {} of memory\n",
        of(report.measured, "packet"),
        count(report.total),
        bytes(report.memory_bytes)
    );
    for (reason, packets) in &report.not_measured {
        text += &format!("not measured: {} ({reason})\n", count(*packets));
    }
    if report.strays > 0 {
        text += &format!("of another interval: {}\n", of(report.strays, "packet"));
    }
    if report.lost > 0 {
        text += &format!("without room in the table: weight {}\n", count(report.lost));
    }
    if let Some(distinct) = report.distinct {
        let [value, lower, upper] = [distinct.value, distinct.lower, distinct.upper].map(count);
        text += &format!("about {value} distinct keys ({lower} to {upper})\n");
    }
    if let Some(accuracy) = report.accuracy {
        text += &format!(
            "against the exact answer: precision {:.4}, recall {:.4}, F1 {:.4}\n\
             average error: relative (ARE) {:.6}, absolute (AAE) {:.2}\n",
            accuracy.precision, accuracy.recall, accuracy.f1, accuracy.are, accuracy.aae
        );
        if accuracy.unchecked > 0 {
            text += &format!(
                "not in the exact answer, which is full: weight {}\n",
                count(accuracy.unchecked)
            );
        }
    }
    text + &heavy(report)
}

/// The heavy keys.
fn heavy(report: &MeasureReport) -> String {
    let mut text = match report.keys {
        KeysFrom::Nowhere => {
            return "No keys: this structure does not store them; use another one, or --check.\n"
                .into();
        }
        KeysFrom::Structure => String::new(),
        KeysFrom::Check => "Keys from the exact answer:\n".into(),
    };
    if let Some(search) = &report.search {
        text += &format!("Some keys are missing: {search}.\n");
    }
    let (keys, from) = (count(report.heavy.len() as u64), count(report.heavy_from));
    let listed = listed(report.threshold, report.top);
    text += &format!("\nHeavy keys: {keys}, each {from} or more ({listed})\n");
    let mut table = Table::new(&[Left, Right, Right, Right]);
    table.row(["key", "estimate", "at least", "at most"]);
    let shown = report.top.unwrap_or(ROWS);
    for row in report.heavy.iter().take(shown) {
        table.row([row.key.clone(), count(row.estimate), count(row.lower), count(row.upper)]);
    }
    table.lines().for_each(|line| text += &(line + "\n"));
    if report.heavy.len() > shown {
        let more = report.heavy.len() - shown;
        text += &format!("  … and {more} more (--top {} shows all)\n", report.heavy.len());
    }
    text
}

/// The recommendation.
pub(super) fn advice(advice: &Advice, packets: u64) -> String {
    let mut text = format!("Sample of {}, medians of interleaved runs\n", of(packets, "packet"));
    let mut table = Table::new(&[Left, Right, Right, Right, Right]);
    table.row(["design", "M packets/s", "ns/packet", "memory", "F1"]);
    for one in &advice.tried {
        let Tried { design, state, structure, .. } = one;
        table.row([
            format!("{design}-{state}-{structure}"),
            format!("{:.2}", one.packets_per_second as f64 / 1e6),
            format!("{:.1}", one.processing_ns_mean),
            bytes(one.memory_bytes),
            format!("{:.3}", one.f1),
        ]);
    }
    table.lines().for_each(|line| text += &(line + "\n"));
    if let Some(Tried { design, state, structure, .. }) = advice.tried.get(advice.recommended) {
        text +=
            &format!("\nRecommended: --design {design} --state {state} --structure {structure}:\n");
    }
    advice.reasons.iter().for_each(|reason| text += &format!("- {reason}\n"));
    text
}
