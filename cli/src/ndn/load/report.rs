//! What a load found, for people and for programs.

use serde_json::json;

use super::Found;
use crate::args::{Form, LoadArgs, Names};
use crate::ndn::link::Link;
use crate::ndn::times::ms;
use ringtap_terminal::console;
use ringtap_terminal::numbers::{bytes, count, of, rate};

pub(super) fn print(
    args: &LoadArgs,
    window: usize,
    found: &Found,
    link: &Link,
) -> anyhow::Result<()> {
    let text = match args.output.report {
        Form::Json => json(args, window, found, link)? + "\n",
        Form::Text => text(args, found, link),
    };
    console::print(&text)
}

fn names(args: &LoadArgs) -> String {
    match args.names {
        Names::Unique => "unique".into(),
        Names::Drawn(popularity) => popularity.to_string(),
    }
}

fn json(args: &LoadArgs, window: usize, found: &Found, link: &Link) -> anyhow::Result<String> {
    let (lost_here, lost_elsewhere) = found.lost_here_and_elsewhere();
    let report = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "prefix": args.prefix.to_string(),
        "to": args.to.to_string(),
        "names": names(args),
        "population": args.population,
        "window": window,
        "rate": args.rate,
        "sent": found.sent,
        "answered": found.answered,
        "data": found.data,
        "nacks": found.nacks,
        "lost": found.lost,
        "lost_here": lost_here,
        "lost_elsewhere": lost_elsewhere,
        "dropped_here": found.dropped_here,
        "receive_queue_bytes": link.queue_bytes,
        "under_way": found.sent - found.answered - found.nacks - found.lost,
        "loss": found.lost as f64 / found.sent.max(1) as f64,
        "surplus": found.surplus,
        "congestion_marks": found.marked,
        "malformed": link.malformed,
        "refused": link.refused,
        "data_bytes": found.bytes,
        "seconds": found.seconds,
        "interests_per_second": per_second(found.sent, found.sending_s),
        "answered_per_second": per_second(found.answered, found.sending_s),
        "latency_ns": found.times.summary(),
    });
    Ok(serde_json::to_string_pretty(&report)?)
}

/// While Interests were sent: what comes behind the last one is waiting.
fn per_second(number: u64, seconds: f64) -> f64 {
    number as f64 / seconds.max(1e-9)
}

fn text(args: &LoadArgs, found: &Found, link: &Link) -> String {
    let share = 100.0 * found.lost as f64 / found.sent.max(1) as f64;
    let mut text = format!(
        "{} of {} ({}) in {:.2} s: {} sent/s, {} answered/s\n\
         {} answered by {} Data, {}, {} lost ({share:.2} %)\n",
        of(found.sent, "Interest"),
        args.prefix,
        names(args),
        found.sending_s,
        rate(per_second(found.sent, found.sending_s)),
        rate(per_second(found.answered, found.sending_s)),
        count(found.answered),
        count(found.data),
        of(found.nacks, "Nack"),
        count(found.lost),
    );
    if found.dropped_here > 0 {
        let (here, elsewhere) = found.lost_here_and_elsewhere();
        text += &format!(
            "  {} dropped at this program's own socket, whose receive queue of {} was full:\n  \
             so up to {} of those lost were lost here, and {} elsewhere\n",
            of(found.dropped_here, "datagram"),
            bytes(link.queue_bytes.into()),
            count(here),
            count(elsewhere),
        );
    }
    for (number, what) in [
        (found.surplus, "Data that nobody waited for"),
        (found.marked, "Data with a congestion mark"),
        (link.malformed, "no packets"),
        (link.refused, "datagrams that nobody was there to take"),
    ] {
        if number > 0 {
            text += &format!("  {} {what}\n", count(number));
        }
    }
    if let Some(times) = found.times.summary() {
        let all = [times.min, times.p50, times.p90, times.p99, times.p999, times.max];
        let [min, p50, p90, p99, p999, max] = all.map(ms);
        text += &format!(
            "latency min {min}, median {p50}, 90 % {p90}, 99 % {p99}, 99.9 % {p999}, max {max}\n"
        );
        text += &times.bars();
    }
    text
}
