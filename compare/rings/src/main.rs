//! Compares the rings of ringtap-ring with other rings and queues, and with the streaming limit of
//! the machine.
//!
//! ```text
//! rings [--rounds N] [--quick] [--sizes N,N…] [--csv FILE] [--plot FILE] [--cpus A,B] [--seed N]
//! ```
//!
//! All candidates have the same two CPUs, items, loops and waiting (ends.rs). Each trial is a
//! process (trial.rs); trials run in random order (rounds.rs). Tables go to standard output,
//! progress to standard error.

mod candidates;
mod claims;
mod ends;
mod item;
mod latency;
mod machine;
mod many;
mod plot;
mod rounds;
mod table;
mod trial;

use beside::{number, numbers};
use claims::Results;
use rounds::{Cell, Plan};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.first().map(String::as_str) {
        Some("trial") => numbers(&arguments[1..]).and_then(trial),
        Some("latency") => numbers(&arguments[1..]).and_then(measure_latency),
        Some("many") => numbers(&arguments[1..]).and_then(many::run),
        Some("roundtrip") => numbers(&arguments[1..]).and_then(roundtrip),
        _ => Options::parse(&arguments).and_then(|options| compare(&options)),
    };
    match done {
        Ok(text) => {
            println!("{}", text.trim_end());
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
    plot: Option<String>,
}

impl Options {
    fn parse(arguments: &[String]) -> Result<Self, String> {
        let (mut rounds, mut seed, mut cpus, mut quick) = (None, 1, None, false);
        let mut sizes = None;
        let (mut csv, mut plot) = (None, None);
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
            match argument.as_str() {
                "--quick" => quick = true,
                "--sizes" => sizes = Some(parse_sizes(value()?)?),
                "--rounds" => rounds = Some(number(value()?)? as usize),
                "--seed" => seed = number(value()?)?,
                "--csv" => csv = Some(value()?.clone()),
                "--plot" => plot = Some(value()?.clone()),
                "--cpus" => cpus = Some(machine::two(value()?)?),
                _ => return Err(format!("unknown argument {argument}; usage: {USAGE}")),
            }
        }
        let rounds = rounds.unwrap_or(if quick { 5 } else { 11 }).max(1);
        let cpus = cpus.map_or_else(machine::first_two, Ok)?;
        let plan = if quick {
            let (sizes, capacities) = (sizes.unwrap_or(vec![8, 64]), vec![2_048, 65_536]);
            Plan { sizes, capacities, rounds, milliseconds: 20.0, cpus, seed }
        } else {
            let sizes = sizes.unwrap_or(item::SIZES.into());
            let capacities = vec![256, 2_048, 16_384, 65_536];
            Plan { sizes, capacities, rounds, milliseconds: 40.0, cpus, seed }
        };
        Ok(Self { plan, csv, plot })
    }
}

const USAGE: &str = "rings [--rounds N] [--quick] [--sizes N,N…] [--csv FILE] [--plot FILE] [--cpus A,B] [--seed N]";

/// Item sizes in bytes, separated by commas.
fn parse_sizes(list: &str) -> Result<Vec<usize>, String> {
    list.split(',')
        .map(|size| match number(size)? as usize {
            size if item::SIZES.contains(&size) => Ok(size),
            size => Err(format!("no items of {size} bytes; sizes: {:?}", item::SIZES)),
        })
        .collect()
}

/// Measures all candidates and writes the files; returns the report.
fn compare(options: &Options) -> Result<String, String> {
    let Options { plan, csv, plot } = options;
    let candidates = candidates::all();
    let before = machine::describe(plan.cpus)?;
    let cells = rounds::measure(&candidates, plan)?;
    let latencies = latency::measure(&candidates, plan)?;
    let many = many::measure(plan)?;
    let results = Results { candidates: &candidates, cells: &cells };
    let write = |file: &Option<String>, text: &dyn Fn() -> String| match file {
        Some(file) => std::fs::write(file, text()).map_err(|why| format!("{file}: {why}")),
        None => Ok(()),
    };
    write(csv, &|| table::csv(&results, &latencies, &many))?;
    write(plot, &|| plot::svg(&results, &plan.sizes, &plan.capacities, &before))?;
    let mut text = format!("## Comparison of rings\n\n{before}\n");
    text += &format!("After the rounds: {:.0} ns.\n", machine::round_trip(plan.cpus)?);
    let busy = noise(&cells, plan, &mut text);
    if !candidates::MISSING.is_empty() {
        text += &format!("**Left out, not installed: {}.**\n", candidates::MISSING.join("; "));
    }
    text += "\n";
    text += &table::rates(&results, &plan.sizes, &plan.capacities);
    text += "### Share of the streaming limit\n\n";
    text += &table::shares(&results, &plan.sizes, &plan.capacities);
    text += "\n### Latency of single items, 64 bytes × 2048\n\n\
             Nanoseconds: half of a round trip; one way with an item every 20 µs. CPU time of a \
             waiting consumer.\n\n";
    text += &latency::table(&candidates, &latencies);
    text += "\n### Several producers and consumers, 8 bytes × 2048\n\n\
             Million items per second, one item per call, threads not pinned.\n\n";
    text += &many::table(&many);
    text += "\n";
    text += &claims::judge(&results);
    if busy {
        text += "\n**The machine was busy: the verdicts are not reliable.**\n";
    }
    Ok(text)
}

/// Appends the number of disturbed trials to `text`; returns whether more than half were disturbed.
fn noise(cells: &[Cell], plan: &Plan, text: &mut String) -> bool {
    let trials = cells.iter().flat_map(Cell::trials);
    let (all, clean) =
        trials.fold((0, 0), |(all, clean), (_, ok)| (all + 1, clean + u32::from(ok)));
    let Plan { rounds, seed, .. } = plan;
    let disturbed = all - clean;
    *text += &format!(
        "{rounds} rounds, seed {seed}; {disturbed} of {all} trials were disturbed and left out \
         (`~`: too many were disturbed, so all count).\n"
    );
    let busy = disturbed * 2 > all;
    if busy {
        *text += "**The machine was busy: the figures are not reliable.**\n";
    }
    busy
}

/// Runs one trial in this process.
fn trial(
    [candidate, bytes, capacity, burst, warm, items, a, b]: [u64; 8],
) -> Result<String, String> {
    let candidates = candidates::all();
    let candidate = candidates.get(candidate as usize).ok_or("unknown candidate")?;
    let ends = candidate.ends(bytes as usize, capacity as usize, burst as usize);
    trial::run(ends, warm, items, [a, b].map(|cpu| cpu as usize)).map(|o| o.to_string())
}

/// Measures latency and idle CPU of one candidate in this process.
fn measure_latency([candidate, a, b]: [u64; 3]) -> Result<String, String> {
    let candidates = candidates::all();
    let candidate = candidates.get(candidate as usize).ok_or("unknown candidate")?;
    latency::run(candidate, [a, b].map(|cpu| cpu as usize))
}

/// Measures the round trip of a cache line in this process.
fn roundtrip(cpus: [u64; 2]) -> Result<String, String> {
    machine::same_line(cpus.map(|cpu| cpu as usize)).map(|nanoseconds| nanoseconds.to_string())
}
