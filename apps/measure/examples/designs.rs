//! The paper's two tables: X. Wu, P. Li, Y. Ran, Y. Luo, "Network Measurement for 100 Gbps Links
//! Using Multicore Processors". All designs run interleaved over the same packets, offered at the
//! same rate; medians.
//!
//! `cargo run --release -p ringtap-measure --example designs [ROUNDS [PACKETS_PER_SECOND]]` prints Markdown.
#![allow(clippy::print_stdout)]

use ringtap_engine::{Machine, Plan, Watch};
use ringtap_measure::run::{Design, Options, Sample, SampleBuilder, plan, run_sample};
use ringtap_measure::{Kind, Settings, State};
use ringtap_traffic::{Generator, Profile};

const SEED: u64 = 1;
/// Packets offered in a run.
const PACKETS: u64 = 3_000_000;
const WORKERS: usize = 2;

/// From the paper: packet drop rate, and processing time in seconds.
const PAPER: &[(Design, State, Kind, f64, f64)] = &[
    (Design::Rss, State::Separate, Kind::Sht, 1.66e-1, 3.80e-8),
    (Design::Rss, State::Shared, Kind::Sht, 2.02e-1, 4.95e-8),
    (Design::Rss, State::Separate, Kind::Cms, 3.86e-1, 8.29e-8),
    (Design::Rss, State::Shared, Kind::Cms, 9.44e-1, 1.48e-6),
    (Design::Rss, State::Separate, Kind::Rs, 9.61e-1, 2.14e-6),
    (Design::Rss, State::Shared, Kind::Rs, 9.91e-1, 9.15e-6),
    (Design::Sync, State::Separate, Kind::Sht, 8.06e-1, 7.90e-8),
    (Design::Sync, State::Shared, Kind::Sht, 8.04e-1, 1.04e-7),
    (Design::Async, State::Separate, Kind::Sht, 8.03e-1, 6.66e-8),
    (Design::Async, State::Shared, Kind::Sht, 8.02e-1, 9.72e-8),
    (Design::Sync, State::Separate, Kind::Rs, 9.93e-1, 7.83e-6),
    (Design::Sync, State::Shared, Kind::Rs, 9.92e-1, 7.70e-6),
    (Design::Async, State::Separate, Kind::Rs, 9.93e-1, 7.19e-6),
    (Design::Async, State::Shared, Kind::Rs, 9.92e-1, 8.54e-6),
    // Not in the paper's tables.
    (Design::Sync, State::Separate, Kind::Cms, f64::NAN, f64::NAN),
    (Design::Sync, State::Shared, Kind::Cms, f64::NAN, f64::NAN),
    (Design::Async, State::Separate, Kind::Cms, f64::NAN, f64::NAN),
    (Design::Async, State::Shared, Kind::Cms, f64::NAN, f64::NAN),
];

/// A design and the results of its runs.
struct Row {
    plan: Plan<Options>,
    paper: (f64, f64),
    drops: Vec<f64>,
    times_ns: Vec<f64>,
    delays_ns: Vec<f64>,
}

fn main() {
    let mut words = std::env::args().skip(1);
    let mut number =
        |unless: u64| words.next().map_or(unless, |word| word.parse().expect("a number"));
    let (rounds, rate) = (number(5), number(20_000_000));
    let sample = sample();
    let watch = Watch::new();
    let mut rows: Vec<Row> = PAPER.iter().map(|row| Row::new(row, rate)).collect();
    for _ in 0..rounds {
        for row in &mut rows {
            row.run(&sample, &watch);
        }
    }
    println!(
        "{PACKETS} packets of {} flows (Zipf 1.0) offered at {rate} a second; {WORKERS} workers, 1 MiB a structure; \
         {} cores; medians of {rounds} interleaved rounds.\n",
        sample_profile().flows,
        Machine::this().cores
    );
    println!("| design | paper: PDR | ours | paper: PPT | ours | paper / ours | delay p50 |");
    println!("|---|---:|---:|---:|---:|---:|---:|");
    let or_dash = |x: f64, text: String| if x.is_nan() { "–".to_owned() } else { text };
    for row in &mut rows {
        let (drop, time) = (median(&mut row.drops), median(&mut row.times_ns));
        let (paper_drop, paper_ns) = (row.paper.0, row.paper.1 * 1e9);
        println!(
            "| {} | {} | {drop:.3} | {} | {time:.1} ns | {} | {:.0} µs |",
            row.name(),
            or_dash(paper_drop, format!("{paper_drop:.3}")),
            or_dash(paper_ns, format!("{paper_ns:.1} ns")),
            or_dash(paper_ns, format!("{:.1}", paper_ns / time)),
            median(&mut row.delays_ns) / 1e3,
        );
    }
    println!("\nClaims, by processing time of the same rounds (median ratio):\n");
    claims(&rows);
}

fn sample_profile() -> Profile {
    Profile { packets: 1_000_000, ..Profile::named("w1").expect("a known profile") }
}

fn sample() -> Sample {
    let mut generator = Generator::new(&sample_profile(), SEED).expect("a valid profile");
    let mut sample = SampleBuilder::new(SEED);
    while let Some(frame) = generator.next() {
        sample.push(frame.ts_ns, frame.data, frame.original_len);
    }
    sample.finish()
}

impl Row {
    fn new(
        &(design, state, structure, drop, time): &(Design, State, Kind, f64, f64),
        rate: u64,
    ) -> Self {
        let run = ringtap_engine::Options {
            workers: Some(WORKERS),
            seed: SEED,
            ..ringtap_engine::Options::default()
        };
        let settings = Settings { state, structure, ..Settings::default() };
        let options = Options { design, rate: Some(rate), memory_bytes: None, settings };
        // A thread for the master and for each worker, so that workers of shared structures run at
        // the same time.
        let machine = Machine { cores: WORKERS + 1, ..Machine::this() };
        let plan = plan(run, options, &machine).expect("a plan");
        Self { plan, paper: (drop, time), drops: vec![], times_ns: vec![], delays_ns: vec![] }
    }

    fn run(&mut self, sample: &Sample, watch: &Watch) {
        let outcome = run_sample(&self.plan, sample, PACKETS, watch).expect("a run");
        assert_eq!(
            (outcome.run.ledger.residual(), outcome.run.received),
            (0, PACKETS),
            "{}",
            self.name()
        );
        self.drops.push(outcome.packet_drop_rate());
        self.times_ns.push(outcome.merged.report.processing_ns_mean.unwrap_or(f64::NAN));
        self.delays_ns
            .push(outcome.merged.report.delay_ns.map_or(f64::NAN, |delay| delay.p50 as f64));
    }

    fn name(&self) -> String {
        let Options { design, settings, .. } = &self.plan.app;
        format!("{design}-{}-{}", settings.state, settings.structure)
    }
}

fn claims(rows: &[Row]) {
    let row = |design: Design, state: State, kind: Kind| {
        let same = |row: &&Row| {
            (row.plan.app.design, row.plan.app.settings.state, row.plan.app.settings.structure)
                == (design, state, kind)
        };
        rows.iter().find(same).expect("all designs are in the list")
    };
    let check = |claim: &str, slow: &Row, fast: &Row| {
        let mut ratios: Vec<f64> =
            slow.times_ns.iter().zip(&fast.times_ns).map(|(slow, fast)| slow / fast).collect();
        let ratio = median(&mut ratios);
        let verdict = if ratio >= 1.0 { "confirmed" } else { "not here" };
        println!("- {claim}: {} / {} = {ratio:.2}: {verdict}", slow.name(), fast.name());
    };
    let designs = [Design::Rss, Design::Sync, Design::Async];
    for design in designs {
        for kind in Kind::SHARED {
            let [shared, separate] =
                [State::Shared, State::Separate].map(|state| row(design, state, kind));
            check("separate is no slower than shared", shared, separate);
        }
    }
    for kind in Kind::SHARED {
        let of = |design| row(design, State::Separate, kind);
        check("RSS is best", of(Design::Async), of(Design::Rss));
        check("RSS is best", of(Design::Sync), of(Design::Rss));
        check("ASYNC is better than SYNC", of(Design::Sync), of(Design::Async));
    }
    for design in designs {
        let of = |kind| row(design, State::Separate, kind);
        check("SHT is cheapest", of(Kind::Cms), of(Kind::Sht));
        check("RS is the most expensive", of(Kind::Rs), of(Kind::Cms));
    }
}

/// The median of at least one value.
fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
