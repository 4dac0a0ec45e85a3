//! Compares the sketches of ringtap-sketch with other libraries: the same stream, in a new random
//! order each round.
//!
//! ```text
//! sketches [--rounds N] [--quick] [--csv FILE] [--seed N]
//! ```
//!
//! Each trial is checked: estimates that must not be below the true count are compared with it, and
//! heavy keys get an F1 score. Rates are by CPU time, which other processes on the machine affect
//! less.

#![deny(unsafe_code)]

mod candidates;
#[cfg(datasketches_cpp)]
#[allow(unsafe_code, reason = "it calls the shim")]
mod cpp;
mod stream;
mod threads;

use beside::{Random, Rate, Ratio, describe, markdown, number, quantile, thread_cpu};
use candidates::{
    APACHE_CMS, APACHE_FI, ASAP, CMS, CPP_CMS, CPP_FI, Candidate, EXACT, HASHBROWN, HEAVYKEEPER,
    Job, Known, SAVING,
};
use std::{fmt::Write, process::ExitCode};
use stream::Stream;

#[global_allocator]
static ALLOCATOR: ringtap_base::Allocator = ringtap_base::Allocator;

/// Claims: ours, the rival, and the claimed ratio of rates.
const CLAIMS: [(&str, &str, f64); 7] = [
    (CMS, ASAP, 1.0),
    (CMS, CPP_CMS, 5.0),
    (CMS, APACHE_CMS, 20.0),
    (SAVING, CPP_FI, 1.4),
    (SAVING, APACHE_FI, 1.4),
    (SAVING, HEAVYKEEPER, 2.5),
    (EXACT, HASHBROWN, 1.5),
];

/// The claimed ratio of two threads to one.
const SEPARATE: f64 = 1.9;

/// The claimed F1 score of the heavy keys.
const F1: f64 = 0.998;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match Options::parse(&arguments).and_then(|options| compare(&options)) {
        Ok(text) => {
            println!("{}", text.trim_end());
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("sketches: {why}");
            ExitCode::FAILURE
        }
    }
}

struct Options {
    rounds: usize,
    quick: bool,
    csv: Option<String>,
    seed: u64,
}

const USAGE: &str = "sketches [--rounds N] [--quick] [--csv FILE] [--seed N]";

impl Options {
    fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut options = Self { rounds: 0, quick: false, csv: None, seed: 1 };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
            match argument.as_str() {
                "--quick" => options.quick = true,
                "--rounds" => options.rounds = number(value()?)? as usize,
                "--csv" => options.csv = Some(value()?.clone()),
                "--seed" => options.seed = number(value()?)?,
                _ => return Err(format!("unknown argument {argument}; usage: {USAGE}")),
            }
        }
        if options.rounds == 0 {
            options.rounds = if options.quick { 3 } else { 7 };
        }
        Ok(options)
    }
}

/// The rates of a candidate by round, and the last result.
struct Cell {
    name: &'static str,
    rates: Vec<f64>,
    known: Option<Known>,
}

impl Cell {
    fn new(name: &'static str) -> Self {
        Self { name, rates: Vec::new(), known: None }
    }

    fn over(&self, other: &Self) -> Ratio {
        Ratio::of(self.rates.iter().zip(&other.rates).map(|(own, other)| own / other))
    }

    fn figure(&self) -> String {
        let mut rates = self.rates.clone();
        rates.sort_by(f64::total_cmp);
        let [low, median, high] = [0.25, 0.5, 0.75].map(|share| Rate(quantile(&rates, share)));
        format!("{median} ({low}–{high})")
    }
}

fn compare(options: &Options) -> Result<String, String> {
    let packets = if options.quick { 4_000_000 } else { 20_000_000 };
    let stream = Stream::new(packets, options.seed);
    let candidates = candidates::all();
    let mut cells: Vec<Cell> = candidates.iter().map(|c| Cell::new(c.name)).collect();
    let mut threaded: Vec<Cell> = threads::VARIANTS.iter().map(|name| Cell::new(name)).collect();
    let mut random = Random(options.seed);
    let mut order: Vec<usize> = (0..cells.len() + threaded.len()).collect();
    let mut image: Option<Vec<u8>> = None;
    let rate = |seconds: f64| packets as f64 / seconds / 1e6;
    for round in 1..=options.rounds {
        random.shuffle(&mut order);
        for &index in &order {
            if let Some(candidate) = candidates.get(index) {
                let (seconds, known) = trial(candidate, &stream)?;
                cells[index].rates.push(rate(seconds));
                cells[index].known = Some(known);
            } else {
                let variant = index - cells.len();
                let (seconds, bytes) = threads::run(variant, &stream);
                if *image.get_or_insert_with(|| bytes.clone()) != bytes {
                    return Err(format!("{}: the result differs", threads::VARIANTS[variant]));
                }
                threaded[variant].rates.push(rate(seconds));
            }
        }
        eprintln!("sketches: round {round} of {}", options.rounds);
    }
    if let Some(file) = &options.csv {
        std::fs::write(file, csv(&cells, &threaded)).map_err(|why| format!("{file}: {why}"))?;
    }
    Ok(report(options, &stream, &candidates, &cells, &threaded))
}

fn trial(candidate: &Candidate, stream: &Stream) -> Result<(f64, Known), String> {
    let mut seconds = 0.0;
    let known = (candidate.run)(stream, &mut |count| {
        let start = thread_cpu();
        count();
        seconds = thread_cpu() - start;
    });
    known.map(|known| (seconds, known)).map_err(|why| format!("{}: {why}", candidate.name))
}

fn report(
    options: &Options,
    stream: &Stream,
    candidates: &[Candidate],
    cells: &[Cell],
    threaded: &[Cell],
) -> String {
    let mut text = format!(
        "## Sketches\n\n{}; {} rounds, seed {}.\n{}\nMillion updates per second of CPU time: median (first–third quartile).\n",
        describe(),
        options.rounds,
        options.seed,
        stream.describe()
    );
    let jobs = [
        (Job::Count, "Estimates of given keys"),
        (Job::Heavy, "Heavy keys"),
        (Job::Exact, "Every key"),
    ];
    for (job, title) in jobs {
        let header = ["structure", "M updates/s", "bytes", "F1"];
        let mut rows = vec![header.map(str::to_owned).to_vec()];
        for (candidate, cell) in candidates.iter().zip(cells).filter(|(c, _)| c.job == job) {
            let known = cell.known.as_ref();
            let name = candidate.name;
            rows.push(vec![
                if candidate.ours { format!("**{name}**") } else { name.to_owned() },
                cell.figure(),
                known.and_then(|known| known.bytes).map_or("–".into(), |bytes| bytes.to_string()),
                known.and_then(|known| known.f1).map_or("–".into(), |f1| format!("{f1:.4}")),
            ]);
        }
        let _ = write!(text, "\n### {title}\n\n{}", markdown(&rows));
    }
    let mut rows =
        vec![["Count-Min, 4 × 2^14 of 64 bits", "M updates/s"].map(str::to_owned).to_vec()];
    rows.extend(threaded.iter().map(|cell| vec![cell.name.to_owned(), cell.figure()]));
    let _ = write!(text, "\n### Two threads, the same result bit for bit\n\n{}", markdown(&rows));
    let _ = write!(text, "\nClaims and verdicts:\n\n");
    let find = |name: &str| cells.iter().find(|cell| cell.name == name);
    for (ours, rival, goal) in CLAIMS {
        if let (Some(a), Some(b)) = (find(ours), find(rival)) {
            let ratio = a.over(b);
            let _ = writeln!(text, "- {ours} / {rival} ≥ {goal}: {ratio}: {}", ratio.verdict(goal));
        }
    }
    let known = find(SAVING).and_then(|cell| cell.known.as_ref()).and_then(|known| known.f1);
    let f1 = known.unwrap_or(0.0);
    let verdict = if f1 >= F1 { "holds" } else { "does not hold" };
    let _ = writeln!(text, "- {SAVING}: F1 ≥ {F1}: {f1:.4}: {verdict}");
    let ratio = threaded[1].over(&threaded[0]);
    let _ = writeln!(
        text,
        "- {} / {} ≥ {SEPARATE}: {ratio}: {}",
        threaded[1].name,
        threaded[0].name,
        ratio.verdict(SEPARATE)
    );
    text
}

fn csv(cells: &[Cell], threaded: &[Cell]) -> String {
    let mut text = String::from("candidate,round,million_per_s\n");
    for cell in cells.iter().chain(threaded) {
        for (i, rate) in cell.rates.iter().enumerate() {
            let _ = writeln!(text, "\"{}\",{},{rate}", cell.name, i + 1);
        }
    }
    text
}
