//! Compares the skeletons of ringtap-skeleton with rayon: same kernels, same cut-offs, each trial
//! in a process, in a new random order each round.
//!
//! ```text
//! skeletons [--rounds N] [--quick] [--threads N] [--csv FILE] [--seed N]
//! ```

#![forbid(unsafe_code)]

mod jobs;
mod kernels;

use beside::{Random, Ratio, child, describe, markdown, number, numbers, quantile};
use jobs::{JOBS, Job, VARIANTS, Variant};
use std::{fmt::Write, process::ExitCode};

/// The claimed ratio of ringtap's speed to rayon's.
const GOAL: f64 = 0.9;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.first().map(String::as_str) {
        Some("trial") => numbers(&arguments[1..]).and_then(trial),
        _ => Options::parse(&arguments).and_then(|options| compare(&options)),
    };
    match done {
        Ok(text) => {
            println!("{}", text.trim_end());
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("skeletons: {why}");
            ExitCode::FAILURE
        }
    }
}

struct Options {
    rounds: usize,
    quick: bool,
    threads: usize,
    csv: Option<String>,
    seed: u64,
}

const USAGE: &str = "skeletons [--rounds N] [--quick] [--threads N] [--csv FILE] [--seed N]";

impl Options {
    fn parse(arguments: &[String]) -> Result<Self, String> {
        let threads = beside::allowed_cpus()?.len();
        let mut options = Self { rounds: 0, quick: false, threads, csv: None, seed: 1 };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
            match argument.as_str() {
                "--quick" => options.quick = true,
                "--rounds" => options.rounds = number(value()?)? as usize,
                "--threads" => options.threads = number(value()?)? as usize,
                "--csv" => options.csv = Some(value()?.clone()),
                "--seed" => options.seed = number(value()?)?,
                _ => return Err(format!("unknown argument {argument}; usage: {USAGE}")),
            }
        }
        if options.rounds == 0 {
            options.rounds = if options.quick { 5 } else { 11 };
        }
        if !(1..=1024).contains(&options.threads) {
            return Err(format!("invalid --threads {}: use 1 to 1024", options.threads));
        }
        Ok(options)
    }
}

/// A variant of a job and its times.
struct Cell {
    job: Job,
    variant: Variant,
    name: &'static str,
    /// Wall and CPU seconds, by round.
    times: Vec<[f64; 2]>,
}

impl Cell {
    fn quantile(&self, clock: usize, share: f64) -> f64 {
        let mut times: Vec<f64> = self.times.iter().map(|time| time[clock]).collect();
        times.sort_by(f64::total_cmp);
        quantile(&times, share)
    }

    /// The ratio of its speed to another's, round by round.
    fn over(&self, other: &Self) -> Ratio {
        Ratio::of(self.times.iter().zip(&other.times).map(|(own, other)| other[0] / own[0]))
    }
}

fn compare(options: &Options) -> Result<String, String> {
    let Options { rounds, quick, threads, .. } = *options;
    let variants = |job: Job| {
        VARIANTS.into_iter().filter_map(move |variant| {
            job.variant(variant).map(|name| Cell { job, variant, name, times: Vec::new() })
        })
    };
    let mut cells: Vec<Cell> = JOBS.into_iter().flat_map(variants).collect();
    let mut random = Random(options.seed);
    let mut order: Vec<usize> = (0..cells.len()).collect();
    for round in 1..=rounds {
        random.shuffle(&mut order);
        for &index in &order {
            let cell = &mut cells[index];
            let size = cell.job.size(quick);
            let line =
                child("trial", &[cell.job as u64, cell.variant as u64, size, threads as u64])
                    .map_err(|why| format!("{}, {}: {why}", cell.job.name(size), cell.name))?;
            let times: Vec<f64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
            cell.times.push(times.try_into().map_err(|_| format!("invalid times \"{line}\""))?);
        }
        eprintln!("skeletons: round {round} of {rounds}");
    }
    if let Some(file) = &options.csv {
        std::fs::write(file, csv(&cells)).map_err(|why| format!("{file}: {why}"))?;
    }
    Ok(report(&cells, options))
}

fn report(cells: &[Cell], options: &Options) -> String {
    let Options { rounds, quick, threads, seed, .. } = options;
    let mut text = format!(
        "## Skeletons and rayon\n\n{}; {threads} threads; {rounds} rounds, seed {seed}.\n\
         Seconds: median (first–third quartile) of whole jobs; speed relative to rayon, round by round.\n",
        describe()
    );
    let mut claims = format!("Claim: ringtap is at least {GOAL} × as fast as rayon\n\n");
    for job in JOBS {
        let of_job = || cells.iter().filter(|cell| cell.job == job);
        let Some(rayon) = of_job().find(|cell| cell.variant == Variant::Rayon) else { continue };
        let name = job.name(job.size(*quick));
        let _ = writeln!(text, "\n### {name}\n");
        let header = ["program", "wall s", "CPU s", "speed / rayon"];
        let mut rows = vec![header.map(str::to_owned).to_vec()];
        for cell in of_job() {
            let [low, median, high] = [0.25, 0.5, 0.75].map(|share| cell.quantile(0, share));
            let ours = cell.variant == Variant::Ringtap;
            rows.push(vec![
                if ours { format!("**{}**", cell.name) } else { cell.name.to_owned() },
                format!("{median:.3} ({low:.3}–{high:.3})"),
                format!("{:.3}", cell.quantile(1, 0.5)),
                cell.over(rayon).to_string(),
            ]);
            if ours {
                let ratio = cell.over(rayon);
                let _ = writeln!(claims, "- {name}: {ratio}: {}", ratio.verdict(GOAL));
            }
        }
        text += &markdown(&rows);
    }
    format!("{text}\n{claims}")
}

fn csv(cells: &[Cell]) -> String {
    let mut text = String::from("job,way,round,wall_s,cpu_s\n");
    for cell in cells {
        for (i, [wall, cpu]) in cell.times.iter().enumerate() {
            let _ = writeln!(text, "{:?},{},{},{wall},{cpu}", cell.job, cell.name, i + 1);
        }
    }
    text
}

/// Runs one trial in this process.
fn trial([job, variant, size, threads]: [u64; 4]) -> Result<String, String> {
    let job = JOBS.get(job as usize).ok_or("unknown job")?;
    let variant = VARIANTS.get(variant as usize).ok_or("unknown variant")?;
    let [wall, cpu] = job.run(*variant, size, threads as usize)?;
    Ok(format!("{wall} {cpu}"))
}
