//! The report of `ringtap-ndn load`, as text and JSON.

use serde_json::json;

use crate::args::{Form, LoadArgs, Names};
use crate::link::Link;
use crate::tools::times::{Times, ms};
use ringtap_base::text::json_document;
use ringtap_terminal::console;
use ringtap_terminal::numbers::{bytes, count, of, rate};

/// Counters and latencies of a run.
#[derive(Default)]
pub(super) struct Results {
    pub(super) sent: u64,
    /// Answered Interests, and received Data; a Data may answer several.
    pub(super) answered: u64,
    pub(super) data: u64,
    pub(super) nacks: u64,
    pub(super) lost: u64,
    /// Datagrams dropped at this program's socket.
    pub(super) dropped_here: u64,
    /// Unsolicited or late Data.
    pub(super) surplus: u64,
    pub(super) marked: u64,
    pub(super) bytes: u64,
    pub(super) times: Times,
    /// Seconds until the last Interest was sent, and until the end.
    pub(super) sending_s: f64,
    pub(super) seconds: f64,
}

impl Results {
    /// Lost Interests that drops at this program's socket may explain, and the others.
    pub(super) fn lost_here_and_elsewhere(&self) -> (u64, u64) {
        let here = self.lost.min(self.dropped_here);
        (here, self.lost - here)
    }
}

pub(super) fn print(
    args: &LoadArgs,
    window: usize,
    results: &Results,
    link: &Link,
) -> anyhow::Result<()> {
    let text = match args.output.report {
        Form::Json => json(args, window, results, link)? + "\n",
        Form::Text => text(args, results, link),
    };
    console::print_plain(&text)
}

fn names(args: &LoadArgs) -> String {
    match args.names {
        Names::Unique => "unique".into(),
        Names::Drawn(popularity) => popularity.to_string(),
    }
}

fn json(args: &LoadArgs, window: usize, results: &Results, link: &Link) -> anyhow::Result<String> {
    let (lost_here, lost_elsewhere) = results.lost_here_and_elsewhere();
    let report = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "prefix": args.prefix.to_string(),
        "to": args.to.to_string(),
        "names": names(args),
        "population": args.population,
        "window": window,
        "rate": args.rate,
        "sent": results.sent,
        "answered": results.answered,
        "data": results.data,
        "nacks": results.nacks,
        "lost": results.lost,
        "lost_here": lost_here,
        "lost_elsewhere": lost_elsewhere,
        "dropped_here": results.dropped_here,
        "receive_queue_bytes": link.queue_bytes,
        "under_way": results.sent - results.answered - results.nacks - results.lost,
        "loss": results.lost as f64 / results.sent.max(1) as f64,
        "surplus": results.surplus,
        "congestion_marks": results.marked,
        "malformed": link.malformed,
        "refused": link.refused,
        "data_bytes": results.bytes,
        "seconds": results.seconds,
        "interests_per_second": per_second(results.sent, results.sending_s),
        "answered_per_second": per_second(results.answered, results.sending_s),
        "latency_ns": results.times.summary(),
    });
    Ok(json_document(serde_json::to_string_pretty(&report)?))
}

/// A number per second; `seconds` excludes the final wait.
fn per_second(number: u64, seconds: f64) -> f64 {
    number as f64 / seconds.max(1e-9)
}

fn text(args: &LoadArgs, results: &Results, link: &Link) -> String {
    let share = 100.0 * results.lost as f64 / results.sent.max(1) as f64;
    let mut text = format!(
        "{} of {} ({}) in {:.2} s: {} sent/s, {} answered/s\n\
         {} answered by {} Data, {}, {} lost ({share:.2} %)\n",
        of(results.sent, "Interest"),
        args.prefix,
        names(args),
        results.sending_s,
        rate(per_second(results.sent, results.sending_s)),
        rate(per_second(results.answered, results.sending_s)),
        count(results.answered),
        count(results.data),
        of(results.nacks, "Nack"),
        count(results.lost),
    );
    if results.dropped_here > 0 {
        let (here, elsewhere) = results.lost_here_and_elsewhere();
        text += &format!(
            "  {} dropped at this program's own socket (receive queue of {} full):\n  \
             up to {} of the lost Interests were lost here, {} elsewhere\n",
            of(results.dropped_here, "datagram"),
            bytes(link.queue_bytes.into()),
            count(here),
            count(elsewhere),
        );
    }
    for (number, what) in [
        (results.surplus, "unsolicited Data"),
        (results.marked, "Data with a congestion mark"),
        (link.malformed, "malformed packets"),
        (link.refused, "datagrams refused by the forwarder"),
    ] {
        if number > 0 {
            text += &format!("  {} {what}\n", count(number));
        }
    }
    if let Some(times) = results.times.summary() {
        let all = [times.min, times.p50, times.p90, times.p99, times.p999, times.max];
        let [min, p50, p90, p99, p999, max] = all.map(ms);
        text += &format!(
            "latency min {min}, median {p50}, 90 % {p90}, 99 % {p99}, 99.9 % {p999}, max {max}\n"
        );
        text += &times.bars();
    }
    text
}
