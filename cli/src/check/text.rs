//! The report of `ringtap check` as text.

use std::fmt::Write as _;

use super::findings::{Findings, Spread, Stream};
use ringtap_terminal::numbers::{count, rate};
use ringtap_terminal::table::{Lean, Table};

/// The report.
pub(super) fn report(findings: &Findings) -> String {
    let mut table = Table::new(&[Lean::Left, Lean::Right, Lean::Left]);
    let share = |number: u64| {
        let all = findings.received + findings.lost;
        format!("{:.3} %", 100.0 * number as f64 / all.max(1) as f64)
    };
    for (name, number) in [
        ("received", findings.received),
        ("lost", findings.lost),
        ("duplicated", findings.duplicated),
        ("reordered", findings.reordered),
    ] {
        table.row([name.into(), count(number), share(number)]);
    }
    for (name, number, what) in [
        ("stale", findings.stale, "too late to detect duplicates"),
        ("corrupted", findings.corrupted, "with a stamp and a wrong checksum"),
        ("other streams", findings.other_streams, "of further senders"),
        ("unstamped", findings.unstamped, ""),
    ] {
        if number > 0 || name == "corrupted" {
            table.row([name.into(), count(number), what.into()]);
        }
    }
    for (reason, &frames) in &findings.dropped {
        table.row(["dropped here".into(), count(frames), (*reason).into()]);
    }
    if let Some(missed @ 1..) = findings.missed {
        table.row(["missed".into(), count(missed), format!("by {}", findings.interface)]);
    }

    let mut text = String::from("Stamped frames\n");
    table.lines().for_each(|line| text = std::mem::take(&mut text) + &line + "\n");
    let per_second = rate(findings.packets_per_second);
    let _ =
        writeln!(text, "  {:.2} s from first to last, {per_second} packets/s", findings.seconds);
    for stream in &findings.streams {
        text += &stream_lines(stream, findings.streams.len() > 1);
    }
    text
}

/// Latency of a stream; with `counters`, also its counters.
fn stream_lines(stream: &Stream, counters: bool) -> String {
    let &Stream { run, stream: number, received, lost, duplicated, reordered, .. } = stream;
    let mut text = format!("Run {run:04x}, stream {number}\n");
    if counters {
        let [received, lost, duplicated, reordered] =
            [received, lost, duplicated, reordered].map(count);
        let _ = writeln!(
            text,
            "  received {received}, lost {lost}, duplicated {duplicated}, reordered {reordered}"
        );
    }
    let _ = match stream.latency_ns {
        Some(Spread { min, p50, p99, max }) => {
            let [min, p50, p99, max] = [min, p50, p99, max].map(time);
            writeln!(text, "  latency min {min}, median {p50}, 99 % {p99}, max {max}")
        }
        None => writeln!(text, "  latency unknown: no frame has a send time"),
    };
    if stream.before_sent > 0 {
        let frames = count(stream.before_sent);
        let _ = writeln!(text, "  {frames} arrived before their send time: the clocks differ");
    }
    text
}

/// A time with a unit, as in `1.5 µs`.
fn time(ns: u64) -> String {
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.1} µs", ns as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        _ => format!("{:.1} s", ns as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_with_units() {
        assert_eq!(
            [999, 1_500, 2_000_000, 3_200_000_000].map(time),
            ["999 ns", "1.5 µs", "2.0 ms", "3.2 s"]
        );
    }
}
