//! `ringtap-lab ndn model`: computes speed by cores from published parameters or from parameters
//! measured on this machine.

use std::process::ExitCode;

use ringtap_engine::Machine;
use ringtap_lab::exclusion::TICK;
use ringtap_lab::exclusion::cas::{self, Access};
use ringtap_lab::exclusion::exchanges;
use ringtap_lab::exclusion::locked::Sharing;
use ringtap_lab::exclusion::model::{
    LineLock, PAPER_NAIVE, PAPER_PACKET, PAPER_PREFETCHED, Serial,
};
use ringtap_traffic::Popularity;
use serde_json::json;

use super::cores::own_cores;
use super::figures::{median, print_json};
use crate::args::ModelArgs;
use ringtap_base::Clock;
use ringtap_terminal::console;
use ringtap_terminal::numbers::rate;
use ringtap_terminal::table::{Lean, Table};
use ringtap_terminal::{Form, Usage};

/// Clock rate of the paper's processor, Hz.
const PAPER_HZ: f64 = 2.2e9;

/// Inputs of the models, in cycles.
struct Parameters {
    packet: f64,
    naive: f64,
    prefetched: f64,
    uncontended: f64,
    /// Cycles per second.
    hz: f64,
    source: &'static str,
}

pub(super) fn run(args: &ModelArgs) -> anyhow::Result<ExitCode> {
    if !(1..=1024).contains(&args.cores_max) || !(1..=1 << 20).contains(&args.locks) {
        return Err(Usage::of("--cores-max takes values from 1 to 1024, --locks 1 to 1048576"));
    }
    let parameters = if args.published { PUBLISHED } else { measured(args.rounds)? };
    let Parameters { packet, naive, prefetched, uncontended, hz, source } = parameters;
    let paper = Serial { packet, cas: prefetched };
    let line = |transfer: f64| LineLock {
        packet,
        owned: uncontended,
        transfer,
        // A packet is processed entirely under the lock of its name.
        held: packet + uncontended,
        hottest: 1.0 / args.locks as f64,
    };
    let (ideal, plain) =
        (line((prefetched - uncontended).max(0.0)), line((naive - uncontended).max(0.0)));
    let one = LineLock { hottest: 1.0, ..ideal };
    let rows: Vec<(usize, [f64; 6])> = (1..=args.cores_max)
        .map(|cores| {
            let speeds = [
                paper.without(cores),
                paper.with(cores),
                ideal.with(cores),
                plain.with(cores),
                one.with(cores),
                ideal.sharded(cores, 0.0),
            ];
            (cores, speeds.map(|per_cycle| per_cycle * hz))
        })
        .collect();
    if args.output.report == Form::Json {
        let trials: Vec<_> = rows
            .iter()
            .flat_map(|(cores, speeds)| {
                MODELS.iter().zip(speeds).map(move |((model, _), speed)| {
                    json!({
                        "experiment": "model",
                        "model": model,
                        "cores": cores,
                        "packets_per_second": speed,
                        "relative": speed / speeds[0],
                        "parameters": source,
                        "cycles_per_packet": packet,
                        "cycles_per_cas_naive": naive,
                        "cycles_per_cas_prefetched": prefetched,
                        "cycles_per_cas_uncontended": uncontended,
                        "locks": args.locks,
                    })
                })
            })
            .collect();
        return print_json("model", &trials);
    }
    let mut table = Table::new(&[Lean::Right; 7]);
    let heads = MODELS.iter().map(|(_, head)| (*head).to_owned());
    table.row(std::iter::once("cores".to_owned()).chain(heads));
    for (cores, speeds) in &rows {
        let cells = speeds.iter().map(|&speed| rate(speed));
        table.row(std::iter::once(cores.to_string()).chain(cells));
    }
    let mut text = format!(
        "Modelled packets per second; {source} {TICK}: {packet:.0} per packet, compare-and-swap \
         {naive:.0} naive, {prefetched:.0} prefetched, {uncontended:.0} uncontended; {} locks\n",
        args.locks
    );
    table.lines().for_each(|line| text += &(line + "\n"));
    if let Some((cores, [without, with, ..])) = rows.last() {
        text += &format!(
            "With {cores} cores the published model loses {:.0} % by exclusion.\n",
            100.0 * (1.0 - with / without)
        );
    }
    console::print(&text).map(|()| ExitCode::SUCCESS)
}

/// The models: name in JSON, column title.
const MODELS: [(&str, &str); 6] = [
    ("paper-without", "no exclusion"),
    ("paper", "paper"),
    ("line-prefetched", "line, prefetched"),
    ("line-naive", "line, naive"),
    ("line-one-lock", "one lock"),
    ("sharded", "sharded"),
];

/// The published parameters. The paper gives no cost of an uncontended compare-and-swap; the cost
/// of a prefetched one stands in, because prefetching brings the line into the own cache.
const PUBLISHED: Parameters = Parameters {
    packet: PAPER_PACKET,
    naive: PAPER_NAIVE,
    prefetched: PAPER_PREFETCHED,
    uncontended: PAPER_PREFETCHED,
    hz: PAPER_HZ,
    source: "published",
};

/// Measures the cost of a packet (half an exchange of one worker without locks) and of a
/// compare-and-swap by each kind of access.
fn measured(rounds: u16) -> anyhow::Result<Parameters> {
    let cores = own_cores(&Machine::this());
    let mut packets = Vec::new();
    let mut accesses =
        [Access::Naive, Access::Prefetched, Access::Uncontended].map(|a| (a, Vec::new()));
    let (clock, begin) = (Clock::start(), ringtap_lab::exclusion::ticks());
    for seed in 0..rounds.into() {
        let found = exchanges::measure(&exchanges::Trial {
            mode: Sharing::Shards,
            popularity: Popularity::Uniform,
            names: 1 << 20,
            workers: 1,
            cores: cores.iter().copied().take(1).collect(),
            exchanges: 500_000,
            pending: 1 << 16,
            locks: 1,
            payload: 100,
            seed,
        })?;
        packets.push(found.ticks as f64 / (2 * found.exchanges) as f64);
        for (access, found) in &mut accesses {
            let trial = cas::Trial {
                access: *access,
                threads: cores.len(),
                cores: cores.clone(),
                lines: 1 << 20,
                samples: 100_000,
                seed,
            };
            // Some counters advance in steps of more ticks than a compare-and-swap takes.
            found.push(cas::measure(&trial).ticks.mean);
        }
    }
    let hz = (ringtap_lab::exclusion::ticks() - begin) as f64 * 1e9 / clock.now_ns() as f64;
    let [naive, prefetched, uncontended] = accesses.map(|(_, ticks)| median(ticks));
    Ok(Parameters {
        packet: median(packets),
        naive,
        prefetched,
        uncontended,
        hz,
        source: "measured",
    })
}
