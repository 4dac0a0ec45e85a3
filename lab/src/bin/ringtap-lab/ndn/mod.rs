//! `ringtap-lab ndn`: runs the trials in turn and prints a flat JSON object or a table row for
//! each.

mod cores;
mod figures;
mod live;
mod model;

use std::process::ExitCode;

use anyhow::bail;
use ringtap_lab::exclusion::TICK;
use ringtap_lab::exclusion::bystander::{self, Row};
use ringtap_lab::exclusion::cas::{self, Access};
use ringtap_lab::exclusion::exchanges;
use ringtap_lab::exclusion::locked::Sharing;
use ringtap_lab::exclusion::relay;
use serde_json::{Value, json};

use crate::args::{CasArgs, NdnAction, PitArgs, RelayArgs};
use cores::cores;
use figures::{median, print_json};
use ringtap_terminal::console::{self, print_message};
use ringtap_terminal::numbers::{count, rate};
use ringtap_terminal::table::{Lean, Table};
use ringtap_terminal::{Form, Usage};
use ringtap_traffic::Popularity;

/// Maximum number of lock lines: 4 GiB of memory.
const LINES_MAX: usize = 1 << 26;
/// Maximum number of buckets: 1 GiB of memory.
const LOCKS_MAX: usize = 1 << 24;
/// Maximum number of samples. They are kept in memory, 8 bytes each.
const SAMPLES_MAX: usize = 50_000_000;
/// Maximum number of pending Interests. Their packets are built in advance.
const PENDING_MAX: usize = 1 << 18;

/// Rounds of the bystander measurement per trial, and chunks of each.
const BYSTANDER: [usize; 2] = [3, 40];

pub(crate) fn run(action: &NdnAction) -> anyhow::Result<ExitCode> {
    match action {
        NdnAction::Cas(args) => run_cas(args),
        NdnAction::Pit(args) => run_pit(args),
        NdnAction::Live(args) => live::run(args),
        NdnAction::Model(args) => model::run(args),
        NdnAction::Relay(args) => run_relay(args),
    }
}

/// Forwards until an interrupt, and prints the report.
fn run_relay(args: &RelayArgs) -> anyhow::Result<ExitCode> {
    let report = relay::run(relay::Parameters {
        mode: args.mode,
        workers: args.workers.into(),
        port: args.port,
        next_hop: args.next_hop,
    })?;
    console::print(&(serde_json::to_string(&report)? + "\n")).map(|()| ExitCode::SUCCESS)
}

fn run_cas(args: &CasArgs) -> anyhow::Result<ExitCode> {
    if !(1..=LINES_MAX).contains(&args.lines) || !(1..=SAMPLES_MAX).contains(&args.samples) {
        return Err(Usage::of("--lines takes 1 to 64M, --samples 1 to 50M"));
    }
    let cores = cores(args.rounds.cores.as_ref())?;
    let mut trials = Vec::new();
    let mut medians = Vec::new();
    for number in 0..args.rounds.trials.max(1) {
        for access in measured_with(cores.len()) {
            let trial = cas::Trial {
                access,
                threads: cores.len(),
                cores: cores.clone(),
                lines: args.lines,
                samples: args.samples,
                seed: args.rounds.seed + number as u64,
            };
            let found = cas::measure(&trial);
            medians.push((access.name(), found.ticks.median));
            trials.push(json!({
                "experiment": "cas",
                "trial": number,
                "mode": access.name(),
                "threads": cores.len(),
                "cores": cores,
                "lines": args.lines,
                "unit": TICK,
                "cycles_per_cas": found.ticks.median,
                "cycles_mean": found.ticks.mean,
                "cycles_p10": found.ticks.p10,
                "cycles_p90": found.ticks.p90,
                "overhead_cycles": found.overhead,
                "samples": found.ticks.samples,
                "taken": found.taken,
            }));
        }
    }
    let mut rows = Vec::new();
    if let [first, second, ..] = cores[..] {
        let [rounds, chunks] = BYSTANDER;
        rows = bystander::measure(
            [Some(first), Some(second)],
            rounds * args.rounds.trials.max(1),
            chunks,
        );
        trials.extend(rows.iter().map(|row| {
            json!({
                "experiment": "bystander",
                "neighbour": row.neighbour.name(),
                "work": row.work.name(),
                "cores": [first, second],
                "unit": TICK,
                "cycles_per_operation": row.ticks.median,
                "cycles_p10": row.ticks.p10,
                "cycles_p90": row.ticks.p90,
                "slowdown": row.slowdown,
            })
        }));
    } else {
        print_message(
            "warning",
            "one core only: the effect of a compare-and-swap on other cores is not measured",
        );
    }
    match args.output.report {
        Form::Json => print_json("cas", &trials),
        Form::Text => console::print(&cas_text(args, cores.len(), &medians, &rows))
            .map(|()| ExitCode::SUCCESS),
    }
}

/// Lines of another core need one.
fn measured_with(cores: usize) -> impl Iterator<Item = Access> {
    Access::ALL.into_iter().filter(move |access| cores > 1 || !access.is_remote())
}

fn cas_text(args: &CasArgs, threads: usize, medians: &[(&str, f64)], rows: &[Row]) -> String {
    let mut table = Table::new(&[Lean::Left, Lean::Right]);
    for access in measured_with(threads).map(Access::name) {
        let of_access = medians.iter().filter(|(name, _)| *name == access).map(|&(_, ticks)| ticks);
        table.row([access.to_owned(), format!("{:.0}", median(of_access.collect()))]);
    }
    let mut text = format!(
        "Compare-and-swap that acquires a lock, median {TICK}: {threads} threads, {} lines\n",
        count(args.lines as u64)
    );
    table.lines().for_each(|line| text += &(line + "\n"));
    if !rows.is_empty() {
        let mut table = Table::new(&[Lean::Left, Lean::Right, Lean::Right, Lean::Right]);
        table.row(["neighbour", "load", "chase", "cas"]);
        for rows in rows.chunks(3) {
            let cell = |row: &Row| format!("{:.1} ({:.2}×)", row.ticks.median, row.slowdown);
            table.row(
                [vec![rows[0].neighbour.name().to_owned()], rows.iter().map(cell).collect()]
                    .concat(),
            );
        }
        text += &format!(
            "Operation of one core on its own cache lines, {TICK}, by what the other core does\n"
        );
        table.lines().for_each(|line| text += &(line + "\n"));
    }
    text
}

fn run_pit(args: &PitArgs) -> anyhow::Result<ExitCode> {
    let cores = cores(args.rounds.cores.as_ref())?;
    let modes = if args.mode.is_empty() { Sharing::ALL.to_vec() } else { args.mode.clone() };
    let all_workers = match args.workers.is_empty() {
        true => (1..=cores.len()).collect(),
        false => args.workers.clone(),
    };
    if all_workers.iter().any(|workers| !(1..=256).contains(workers))
        || !(1..=LOCKS_MAX).contains(&args.locks)
        || !(32..=PENDING_MAX).contains(&args.pending)
        || args.exchanges == 0
        || args.population == 0
        || args.payload > 8_000
    {
        return Err(Usage::of(
            "--workers takes values from 1 to 256, --locks 1 to 16777216, --pending 32 to 262144, --payload up to 8000; \
             --exchanges and --population at least 1",
        ));
    }
    let mut trials = Vec::new();
    for number in 0..args.rounds.trials.max(1) {
        for (&popularity, &workers) in args
            .names
            .iter()
            .flat_map(|names| all_workers.iter().map(move |workers| (names, workers)))
        {
            for &mode in &modes {
                trials.push(pit_trial(args, number, mode, popularity, workers, &cores)?);
            }
        }
    }
    match args.output.report {
        Form::Json => print_json("pit", &trials),
        Form::Text => console::print(&pit_text(args, &trials)).map(|()| ExitCode::SUCCESS),
    }
}

fn pit_trial(
    args: &PitArgs,
    number: usize,
    mode: Sharing,
    popularity: Popularity,
    workers: usize,
    cores: &[usize],
) -> anyhow::Result<Value> {
    let pinned: Vec<usize> = cores.iter().copied().take(workers).collect();
    let trial = exchanges::Trial {
        mode,
        popularity,
        names: args.population,
        workers,
        cores: pinned.clone(),
        exchanges: args.exchanges,
        pending: args.pending,
        locks: args.locks,
        payload: args.payload as usize,
        seed: args.rounds.seed,
    };
    let found = match exchanges::measure(&trial) {
        Ok(found) => found,
        Err(lost) => bail!("{} {popularity} with {workers} workers: {lost}", mode.name()),
    };
    let each = found.exchanges.max(1) as f64;
    Ok(json!({
        "experiment": "pit",
        "trial": number,
        "mode": mode.name(),
        "names": popularity.to_string(),
        "workers": workers,
        "cores": pinned,
        "locks": args.locks,
        "population": args.population,
        "pending": args.pending,
        "payload_bytes": args.payload,
        "exchanges": found.exchanges,
        "seconds": found.seconds,
        "exchanges_per_second": each / found.seconds.max(1e-9),
        "unit": TICK,
        "cycles_per_exchange": found.ticks as f64 * workers as f64 / each,
        "share_of_busiest": found.most as f64 / each,
        "lock_waits": found.waits,
    }))
}

/// A table: a row for each distribution of names and number of workers, a column for each mode.
/// Each cell is the median of the rounds.
fn pit_text(args: &PitArgs, trials: &[Value]) -> String {
    let mut modes = Vec::new();
    let mut rows = Vec::new();
    for trial in trials {
        let row = (trial["names"].as_str().unwrap_or(""), trial["workers"].as_u64().unwrap_or(0));
        let mode = trial["mode"].as_str().unwrap_or("");
        if !modes.contains(&mode) {
            modes.push(mode);
        }
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    let lean = [vec![Lean::Left, Lean::Right], vec![Lean::Right; modes.len()]].concat();
    let mut table = Table::new(&lean);
    table.row([vec!["names", "workers"], modes.clone()].concat());
    for (names, workers) in rows {
        let cell = |mode: &&str| {
            let same = trials.iter().filter(|trial| {
                trial["names"] == names && trial["workers"] == workers && trial["mode"] == **mode
            });
            rate(median(same.filter_map(|trial| trial["exchanges_per_second"].as_f64()).collect()))
        };
        let cells: Vec<String> = modes.iter().map(cell).collect();
        table.row([vec![names.to_owned(), workers.to_string()], cells].concat());
    }
    let mut text = format!(
        "Exchanges per second in memory, {} pending, {} locks, median of {}\n",
        count(args.pending as u64),
        args.locks,
        args.rounds.trials.max(1)
    );
    table.lines().for_each(|line| text += &(line + "\n"));
    text
}
