//! The plan and report of `ringtap filter` as text.

use std::fmt::Write as _;

use ringtap_engine::INTERRUPTED;
use ringtap_filter::Policy;
use ringtap_filter::RuleSet;
use ringtap_filter::run::{Buffers, FilterPlan, FilterReport};

use ringtap_terminal::numbers::{bytes, count, of, rate};
use ringtap_terminal::table::{Lean, Table};

/// Most rules listed with their counters.
const ROWS: usize = 20;

/// The plan as text.
pub(super) fn plan(plan: &FilterPlan, rules: &RuleSet) -> String {
    let default = if rules.policy() == Policy::Allow { "allow" } else { "deny" };
    let mut text = format!("filter: {}", plan.source.join(", "));
    for (what, to) in [(" to ", &plan.output), ("; drops to ", &plan.drops)] {
        if let Some(to) = to {
            text += what;
            text += to;
        }
    }
    let _ = write!(
        text,
        "\nrules: {}, {}, default {default}, {} for look-ups\nnot IP: {}\n{}, {}\n",
        of(rules.rule_count() as u64, "rule"),
        of(rules.ban_count() as u64, "ban"),
        bytes(rules.memory_bytes() as u64),
        plan.not_ip,
        plan.skeleton,
        of(plan.workers as u64, "worker"),
    );
    if let Some(Buffers { received, passed, sent }) = plan.buffers {
        let _ = writeln!(
            text,
            "buffers: {} for received frames, {} for passed ones, {} to send",
            bytes(received),
            bytes(passed),
            bytes(sent)
        );
    }
    text
}

/// The report as text.
pub(super) fn report(report: &FilterReport) -> String {
    let (packets, rules) = (&report.stats.packets, &report.stats.rules);
    let dropped: u64 = packets.dropped.values().sum();
    let mut text = format!(
        "{}, {}: {} passed, {} dropped\n",
        of(packets.received, "packet"),
        bytes(packets.octets),
        count(packets.passed),
        count(dropped),
    );
    for (reason, number) in &packets.dropped {
        let _ = writeln!(text, "  dropped, {reason}: {}", count(*number));
    }
    if packets.not_ip > 0 {
        let _ = writeln!(text, "  passed, not IP: {}", count(packets.not_ip));
    }
    if packets.drops_not_written > 0 {
        let number = count(packets.drops_not_written);
        let _ = writeln!(text, "  not in the capture of the drops: {number}");
    }
    let control = &report.stats.control;
    if control.made + control.refused + control.forged > 0 {
        let _ = writeln!(
            text,
            "control packets: {} changed rules, {} refused, {} forged{}",
            count(control.made),
            count(control.refused),
            count(control.forged),
            control.why.iter().map(|why| format!(" (the last: {why})")).collect::<String>(),
        );
    }
    let _ = writeln!(
        text,
        "rules at revision {}: {}, {}, default {}",
        rules.revision,
        of(rules.rules as u64, "rule"),
        of(rules.bans as u64, "ban"),
        rules.default,
    );
    text += &counters(report);
    if report.interrupted {
        let _ = writeln!(text, "{INTERRUPTED}");
    }
    let performance = &report.performance;
    let _ = writeln!(
        text,
        "{:.2} s ({} packets/s), {} unaccounted for",
        performance.seconds,
        rate(performance.packets_per_second as f64),
        count(report.ledger.residual()),
    );
    if let Some(digest) = &report.verdicts_sha256 {
        let _ = writeln!(text, "verdicts sha256:{digest}");
    }
    text
}

/// The rules with the highest counters.
fn counters(report: &FilterReport) -> String {
    let mut rows: Vec<_> = report.stats.rules.counters.iter().collect();
    rows.sort_by_key(|row| (std::cmp::Reverse(row.packets), row.rule));
    let mut table = Table::new(&[Lean::Right, Lean::Right, Lean::Left]);
    for row in rows.iter().take(ROWS) {
        let words = row.words.as_deref().unwrap_or("(removed)");
        table.row([format!("rule {}", row.rule), count(row.packets), words.to_owned()]);
    }
    let mut text: String = table.lines().map(|line| line + "\n").collect();
    if rows.len() > ROWS {
        let _ = writeln!(text, "  and {}", of((rows.len() - ROWS) as u64, "rule"));
    }
    text
}
