//! The rings of ringtap-ring beside their rivals, and beside what the machine can stream.
//!
//! ```text
//! rings [--rounds N] [--quick] [--csv FILE] [--cpus A,B] [--seed N]
//! ```
//!
//! Same two CPUs, same items, same loops, same waiting for all (ends.rs); a process for each trial
//! (trial.rs); trials in random order (rounds.rs). Tables go to standard output, progress to
//! standard error.

mod candidates;
mod claims;
mod ends;
mod item;
mod machine;
mod rounds;
mod table;
mod trial;

use claims::Results;
use rounds::Plan;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.first().map(String::as_str) {
        Some("trial") => numbers(&arguments[1..]).and_then(trial),
        Some("roundtrip") => numbers(&arguments[1..]).and_then(roundtrip),
        _ => Options::parse(&arguments).and_then(|options| compare(&options)),
    };
    match done {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("rings: {why}");
            ExitCode::FAILURE
        }
    }
}

struct Options {
    plan: Plan,
    csv: Option<String>,
}

impl Options {
    fn parse(arguments: &[String]) -> Result<Self, String> {
        let (mut rounds, mut seed, mut csv, mut cpus, mut quick) = (None, 1, None, None, false);
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
            match argument.as_str() {
                "--quick" => quick = true,
                "--rounds" => rounds = Some(number(value()?)? as usize),
                "--seed" => seed = number(value()?)?,
                "--csv" => csv = Some(value()?.clone()),
                "--cpus" => cpus = Some(machine::two(value()?)?),
                _ => return Err(format!("what is {argument}? {USAGE}")),
            }
        }
        let rounds = rounds.unwrap_or(if quick { 5 } else { 11 }).max(1);
        let cpus = cpus.map_or_else(machine::first_two, Ok)?;
        let plan = if quick {
            let (sizes, capacities) = (vec![8, 64], vec![2_048, 65_536]);
            Plan { sizes, capacities, rounds, milliseconds: 20.0, cpus, seed }
        } else {
            let capacities = vec![256, 2_048, 16_384, 65_536];
            Plan { sizes: item::SIZES.into(), capacities, rounds, milliseconds: 40.0, cpus, seed }
        };
        Ok(Self { plan, csv })
    }
}

const USAGE: &str = "rings [--rounds N] [--quick] [--csv FILE] [--cpus A,B] [--seed N]";

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("not a number: \"{text}\""))
}

/// Measures, prints, judges.
fn compare(options: &Options) -> Result<String, String> {
    let plan = &options.plan;
    let candidates = candidates::all();
    let before = machine::describe(plan.cpus)?;
    let cells = rounds::measure(&candidates, plan)?;
    let results = Results { candidates: &candidates, cells: &cells };
    if let Some(file) = &options.csv {
        std::fs::write(file, table::csv(&results)).map_err(|why| format!("{file}: {why}"))?;
    }
    let trials = cells.iter().flat_map(|cell| cell.trials());
    let (all, clean) =
        trials.fold((0, 0), |(all, clean), (_, ok)| (all + 1, clean + u32::from(ok)));
    let round_trip = machine::round_trip(plan.cpus)?;
    let noise =
        if clean * 2 < all { "**This machine was busy: the figures say little.**\n" } else { "" };
    let missing = match candidates::MISSING {
        [] => String::new(),
        names => format!("**Left out, not installed: {}.**\n", names.join("; ")),
    };
    Ok(format!(
        "## Rings side by side\n\n{before}After the rounds the same line took {round_trip:.0} ns there and back.\n\
         {} rounds, seed {}; {} of {all} trials were disturbed and left out (`~`: too many were, so all count).\n{missing}{noise}\n\
         {}### Share of the streaming limit\n\n{}\n{}",
        plan.rounds,
        plan.seed,
        all - clean,
        table::rates(&results, &plan.sizes, &plan.capacities),
        table::shares(&results, &plan.sizes, &plan.capacities),
        claims::judge(&results).trim_end(),
    ))
}

/// The arguments of a process that measures one thing.
fn numbers<const N: usize>(arguments: &[String]) -> Result<[u64; N], String> {
    let numbers = arguments.iter().map(|n| number(n)).collect::<Result<Vec<u64>, String>>()?;
    numbers.try_into().map_err(|_| format!("{N} numbers are needed"))
}

/// One trial, in this process.
fn trial(
    [candidate, bytes, capacity, burst, warm, items, a, b]: [u64; 8],
) -> Result<String, String> {
    let candidates = candidates::all();
    let candidate = candidates.get(candidate as usize).ok_or("no such candidate")?;
    let ends = candidate.ends(bytes as usize, capacity as usize, burst as usize);
    trial::run(ends, warm, items, [a, b].map(|cpu| cpu as usize)).map(|o| o.to_string())
}

/// The same-line round trip, in this process.
fn roundtrip(cpus: [u64; 2]) -> Result<String, String> {
    machine::same_line(cpus.map(|cpu| cpu as usize)).map(|nanoseconds| nanoseconds.to_string())
}
