//! `ringtap-lab filter`: runs the published benchmark once.

use std::process::ExitCode;

use ringtap_filter::Policy;
use ringtap_lab::filter::bench::{Bench, Design, measure};
use serde_json::json;

use crate::args::{DesignName, FilterArgs};
use ringtap_terminal::console;
use ringtap_terminal::numbers::{count, rate};
use ringtap_terminal::{Form, Usage};

/// Maximum number of packets of a run. They are kept in memory, 28 bytes each.
const PACKETS_MAX: usize = 100_000_000;

pub(crate) fn run(args: &FilterArgs) -> anyhow::Result<ExitCode> {
    if !(1..=PACKETS_MAX).contains(&args.packets) {
        return Err(Usage::of(format!("invalid --packets {}: use 1 to 100M", args.packets)));
    }
    if !(1..=1 << 24).contains(&args.cache) || args.in_flight == 0 {
        return Err(Usage::of("--cache takes 1 to 16M entries, --in-flight at least 1"));
    }
    let design = match args.design {
        DesignName::Oracle => Design::Oracle,
        DesignName::Paper => Design::Paper,
        DesignName::Sharded => Design::Sharded,
    };
    let measured = measure(&Bench {
        mix: args.mix,
        packets: args.packets,
        workers: args.workers,
        design,
        distribution: args.distribution,
        cache: args.cache,
        policy: args.default,
        work: args.work,
        in_flight: args.in_flight,
        cores: args.cores.as_ref().map_or_else(Vec::new, |cores| cores.0.clone()),
    })
    .map_err(Usage::of)?;
    let outcome = &measured.outcome;
    let per_second = args.packets as f64 / measured.seconds.max(1e-9);
    let data = (outcome.accepted + outcome.refused).max(1);
    let hit_rate = measured.hits.map(|hits| hits as f64 / data as f64);
    let busiest = measured.busiest_s.map(|seconds| args.packets as f64 / seconds.max(1e-9));
    let default = if args.default == Policy::Allow { "allow" } else { "deny" };
    let text = match args.output.report {
        Form::Json => {
            let report = json!({
                "version": env!("CARGO_PKG_VERSION"),
                "mix": args.mix,
                "design": format!("{:?}", args.design).to_lowercase(),
                "distribution": args.distribution.name(),
                "default": default,
                "work": args.work.name(),
                "workers": args.workers,
                "cache": args.cache,
                "in_flight": args.in_flight,
                "packets": args.packets,
                "warm_up_packets": measured.warm_up,
                "control_packets": outcome.controls - measured.warm_up,
                "accepted": outcome.accepted,
                "refused": outcome.refused,
                "verdicts_sha256": outcome.verdicts_sha256(),
                "histogram_sha256": outcome.histogram_sha256(),
                "cache_hit_rate": hit_rate,
                "busiest_cpu_seconds": measured.busiest_s,
                "busiest_packets_per_second": busiest,
                "seconds": measured.seconds,
                "packets_per_second": per_second as u64,
            });
            serde_json::to_string_pretty(&report)? + "\n"
        }
        Form::Text => format!(
            "mix {}, {:?}, work {}, default {default}: {} packets after {} of warm-up\n\
             {} accepted, {} refused, {} control\n\
             {} packets/s ({:.3} s){}\nverdicts sha256:{}\nhistogram sha256:{}\n",
            args.mix,
            args.design,
            args.work,
            count(args.packets as u64),
            count(measured.warm_up),
            count(outcome.accepted),
            count(outcome.refused),
            count(outcome.controls - measured.warm_up),
            rate(per_second),
            measured.seconds,
            hit_rate.map_or(String::new(), |rate| format!(
                ", {:.1} % of verdicts in a cache",
                rate * 100.0
            )),
            outcome.verdicts_sha256(),
            outcome.histogram_sha256(),
        ),
    };
    console::print(&text).map(|()| ExitCode::SUCCESS)
}
