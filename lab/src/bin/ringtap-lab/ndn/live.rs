//! `ringtap-lab ndn live`: exchanges through a running forwarder by mode and workers, and what two
//! models make of the measured cost of a packet.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use ringtap_base::Clock;
use ringtap_lab::Programs;
use ringtap_lab::exclusion::cas::{self, Access};
use ringtap_lab::exclusion::live::{Measured, Trial, measure};
use ringtap_lab::exclusion::locked::Sharing;
use ringtap_lab::exclusion::model::{LineLock, Serial};
use ringtap_lab::exclusion::{Spread, TICK};
use serde_json::json;

use super::cores::own_cores;
use super::figures::print_json;
use crate::args::LiveArgs;
use ringtap_engine::Machine;
use ringtap_terminal::console;
use ringtap_terminal::numbers::{count, rate};
use ringtap_terminal::table::{Lean, Table};
use ringtap_terminal::{Form, Usage};

/// Cores of the paper's Figure 2.
const CORES: usize = 20;

/// All trials of a mode and a number of workers.
struct Row {
    mode: Sharing,
    workers: usize,
    trials: Vec<Measured>,
}

impl Row {
    fn spread(&self, figure: impl Fn(&Measured) -> f64) -> Spread {
        Spread::of(&mut self.trials.iter().map(figure).collect::<Vec<_>>(), 0.0)
    }

    fn waits_per_million(&self) -> f64 {
        self.spread(|trial| 1e6 * trial.waits as f64 / trial.exchanges as f64).median
    }

    /// The part of the packets of the worker that had most.
    fn busiest(&self) -> f64 {
        let part = |trial: &Measured| {
            let most = trial.packets.iter().max().copied().unwrap_or(0);
            most as f64 / trial.packets.iter().sum::<u64>().max(1) as f64
        };
        self.spread(part).median
    }
}

pub(super) fn run(args: &LiveArgs) -> anyhow::Result<ExitCode> {
    if args.workers.iter().any(|workers| !(1..=256).contains(workers))
        || !(1..=1 << 20).contains(&args.window)
        || args.duration < 100_000_000
    {
        return Err(Usage::of(
            "--workers takes values from 1 to 256, --window 1 to 1048576, --duration at least 100ms",
        ));
    }
    let programs = Programs::of(std::env::current_exe().context("finding this program")?);
    programs.build_of("ringtap-ndn")?;
    let modes = if args.mode.is_empty() { Sharing::ALL.to_vec() } else { args.mode.clone() };
    let row = |(&workers, &mode): (&usize, &Sharing)| Row { mode, workers, trials: Vec::new() };
    let pairs =
        args.workers.iter().flat_map(|workers| modes.iter().map(move |mode| (workers, mode)));
    let mut rows: Vec<Row> = pairs.map(row).collect();
    let (clock, begin) = (Clock::start(), ringtap_lab::exclusion::ticks());
    let mut trials = Vec::new();
    for number in 0..args.trials.max(1) {
        for row in &mut rows {
            let Row { mode, workers, .. } = *row;
            let duration = Duration::from_nanos(args.duration);
            let trial = Trial { mode, workers, window: args.window, duration };
            let found = match measure(&programs, &trial) {
                Ok(found) => found,
                Err(error) => bail!("{mode} with {workers} workers: {error}"),
            };
            trials.push((number, row.mode, row.workers, found.clone()));
            row.trials.push(found);
        }
    }
    // Ticks per nanosecond.
    let pace = (ringtap_lab::exclusion::ticks() - begin) as f64 / clock.now_ns() as f64;
    if args.output.report == Form::Json {
        let json = |(number, mode, workers, found): &(usize, Sharing, usize, Measured)| {
            json!({
                "experiment": "live",
                "trial": number,
                "mode": mode.name(),
                "workers": workers,
                "window": args.window,
                "exchanges": found.exchanges,
                "exchanges_per_second": found.per_second,
                "unit": TICK,
                "cycles_per_exchange": found.cpu_ns * pace,
                "lock_waits": found.waits,
                "packets_by_worker": found.packets.iter().map(u64::to_string).collect::<Vec<_>>().join(","),
            })
        };
        return print_json("live", &trials.iter().map(json).collect::<Vec<_>>());
    }
    console::print(&(table(args, &rows, pace) + &model(&rows, pace))).map(|()| ExitCode::SUCCESS)
}

fn table(args: &LiveArgs, rows: &[Row], pace: f64) -> String {
    let right = Lean::Right;
    let mut table = Table::new(&[right, Lean::Left, right, right, right, right]);
    table.row(["workers", "mode", "Data/s (10 % to 90 %)", TICK, "waits/million", "busiest"]);
    for row in rows {
        let [speed, cost] =
            [row.spread(|trial| trial.per_second), row.spread(|trial| trial.cpu_ns * pace)];
        table.row([
            row.workers.to_string(),
            row.mode.to_string(),
            format!("{} ({} to {})", rate(speed.median), rate(speed.p10), rate(speed.p90)),
            format!("{:.0} ({:.0} to {:.0})", cost.median, cost.p10, cost.p90),
            format!("{:.1}", row.waits_per_million()),
            format!("{:.0} %", 100.0 * row.busiest()),
        ]);
    }
    let mut text = format!(
        "Exchanges through a forwarder with UDP faces, {} in flight, medians of {}; {TICK} of the forwarder per exchange\n",
        count(args.window),
        args.trials.max(1),
    );
    table.lines().for_each(|line| text += &(line + "\n"));
    text
}

/// The models, with the measured cost of a packet and of a compare-and-swap.
fn model(rows: &[Row], pace: f64) -> String {
    let alone = rows.iter().find(|row| row.workers == 1 && row.mode == Sharing::Shards);
    let Some(alone) = alone else { return String::new() };
    let packet = alone.spread(|trial| trial.cpu_ns * pace).median / 2.0;
    let cores = own_cores(&Machine::this());
    let ticks = |access| {
        let (lines, samples, seed) = (1 << 20, 100_000, 1);
        let trial =
            cas::Trial { access, threads: cores.len(), cores: cores.clone(), lines, samples, seed };
        cas::measure(&trial).ticks.mean
    };
    let [naive, prefetched, owned] =
        [Access::Naive, Access::Prefetched, Access::Uncontended].map(ticks);
    let paper = Serial { packet, cas: prefetched };
    let line = |transfer: f64| {
        let hottest = 1.0 / (1_u64 << 20) as f64;
        let lock = LineLock { packet, owned, transfer, held: packet + owned, hottest };
        lock.with(CORES)
    };
    let loss = |with: f64, without: f64| 100.0 * (1.0 - with / without);
    let free = line(0.0);
    format!(
        "With these {TICK} per packet ({packet:.0}) and per compare-and-swap (naive {naive:.0}, prefetched {prefetched:.0}, \
         own line {owned:.0}), {CORES} cores would lose by exclusion: {:.0} % if all cores stop, as in the paper; \
         {:.1} % if a line is locked, naive; {:.1} %, prefetched.\n",
        loss(paper.with(CORES), paper.without(CORES)),
        loss(line((naive - owned).max(0.0)), free),
        loss(line((prefetched - owned).max(0.0)), free),
    )
}
