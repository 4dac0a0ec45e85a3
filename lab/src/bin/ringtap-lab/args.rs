//! Command-line flags and their help texts.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use ringtap_filter::Policy;
use ringtap_lab::exclusion::locked::Sharing;
use ringtap_lab::filter::{Distribution, Work};
use ringtap_terminal::units::{self, Cores};
use ringtap_terminal::{Form, Output};
use ringtap_traffic::Popularity;

const AFTER: &str = "\
'ringtap-lab list' prints the IDs; 'rings' selects all IDs that begin with 'rings/', 'all' selects all. An
interrupted run continues where it stopped. 'ringtap-lab trial NAME KEY=VALUE…' runs one workload. The lab
measures the ringtap in the folder of this program, which must be of the same commit, profile and compiler.";

/// Repeats the experiments of five papers on this machine, and runs the papers' designs
#[derive(Parser)]
#[command(
    name = "ringtap-lab",
    version,
    long_version = ringtap_lab::BUILD,
    after_help = AFTER,
    arg_required_else_help = true
)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    pub(crate) action: Action,
}

#[derive(Subcommand)]
pub(crate) enum Action {
    /// Lists the experiments and the figure of the paper that each repeats
    List,
    /// Measures on this machine, judges the papers' claims, and writes the report
    Run(RunArgs),
    /// Writes the latest run as one page, with its figures
    Report(ReportArgs),
    /// Compares the verdicts of a run with those of an expected one; exit code 3 if they do not agree
    Check(CheckArgs),
    /// Compares the speed of ringtap with that of another revision
    Compare(CompareArgs),
    /// Runs the published packet-filter benchmark with one of its designs
    Filter(FilterArgs),
    /// Measures the cost of mutual exclusion in an NDN forwarder
    Ndn {
        #[command(subcommand)]
        action: NdnAction,
    },
    /// Runs one workload once and prints its numbers as JSON
    #[command(hide = true)]
    Trial {
        /// Name of the workload
        name: String,
        /// Arguments of the workload, as KEY=VALUE
        words: Vec<String>,
    },
}

#[derive(Args)]
pub(crate) struct RunArgs {
    /// Experiments to run
    #[arg(value_name = "ID", required_unless_present = "paper")]
    pub(crate) ids: Vec<String>,
    /// Runs the experiments of this paper: its number in 'ringtap-lab list'
    #[arg(long, value_name = "N", conflicts_with = "ids")]
    pub(crate) paper: Option<usize>,
    /// Takes minutes instead of hours: fewer rounds, fewer points, less traffic
    #[arg(long)]
    pub(crate) quick: bool,
    /// Seed of the uncounted first round; each further round uses the next number
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Starts further rounds for open claims until this time has passed; 0 for planned rounds only. Not with --quick
    #[arg(long, value_name = "TIME", default_value = "150m", value_parser = units::duration_ns)]
    pub(crate) budget: u64,
    /// Uses at most this number of cores [default: all]
    #[arg(long, value_name = "N", value_parser = units::number_in(1..=1024_u16))]
    pub(crate) cores: Option<u16>,
    /// Keeps all trials, whatever else uses the machine; otherwise disturbed ones are repeated and not judged
    #[arg(long)]
    pub(crate) no_gate: bool,
    #[command(flatten)]
    pub(crate) runs: Runs,
    /// Format of the verdicts on stdout: text or json
    #[arg(long, value_name = "FORMAT", default_value = "text", hide_possible_values = true)]
    pub(crate) report: Form,
}

#[derive(Args)]
pub(crate) struct ReportArgs {
    /// Folder of the run [default: the latest]
    #[arg(value_name = "RUN", value_hint = ValueHint::DirPath)]
    pub(crate) run: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) runs: Runs,
}

#[derive(Args)]
pub(crate) struct CheckArgs {
    /// Folder of the expected run
    #[arg(value_name = "EXPECTED", value_hint = ValueHint::DirPath)]
    pub(crate) expected: PathBuf,
    /// Folder of the run to check [default: the latest]
    #[arg(value_name = "RUN", value_hint = ValueHint::DirPath)]
    pub(crate) run: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) runs: Runs,
    /// Format of the pairs of verdicts on stdout: text or json
    #[arg(long, value_name = "FORMAT", default_value = "text", hide_possible_values = true)]
    pub(crate) report: Form,
}

#[derive(Args)]
pub(crate) struct CompareArgs {
    /// The other revision, as a git revision; built from the repository in the current folder
    #[arg(value_name = "REV")]
    pub(crate) revision: String,
    /// Experiments to compare [default: a few quick ones that cover the applications]
    #[arg(value_name = "ID")]
    pub(crate) ids: Vec<String>,
    /// Fewer points, less traffic
    #[arg(long)]
    pub(crate) quick: bool,
    /// Trials of each setting in each program
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) rounds: u32,
    /// Seed of the first round; each further round uses the next number
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) runs: Runs,
}

/// Where runs are stored.
#[derive(Args)]
pub(crate) struct Runs {
    /// Folder of all runs and their traffic
    #[arg(long = "runs", value_name = "DIR", default_value = "runs", value_hint = ValueHint::DirPath)]
    pub(crate) folder: PathBuf,
}

#[derive(Args)]
pub(crate) struct FilterArgs {
    /// Published mix, 1 to 8
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) mix: usize,
    /// Packets after the warm-up
    #[arg(long, value_name = "N", default_value = "1M", value_parser = units::index_count)]
    pub(crate) packets: usize,
    /// Workers; 1 is a single thread, unless --cores has several
    #[arg(short, long, value_name = "N", default_value_t = 1)]
    pub(crate) workers: usize,
    /// Design of the filter: sharded (ours), paper (locks and caches) or oracle (serial)
    #[arg(long, value_name = "NAME", default_value = "sharded", hide_possible_values = true)]
    pub(crate) design: DesignName,
    /// How packets are assigned to workers: address or random
    #[arg(long, value_name = "HOW", default_value_t = Distribution::Address)]
    pub(crate) distribution: Distribution,
    /// Entries of each worker's cache, in the paper's design
    #[arg(long, value_name = "N", default_value = "1024", value_parser = units::index_count)]
    pub(crate) cache: usize,
    /// Policy for packets without a rule: allow or deny
    #[arg(long, value_name = "POLICY", default_value = "deny", value_parser = policy)]
    pub(crate) default: Policy,
    /// Work for each accepted packet: serial, interleaved, simd, jump or off
    #[arg(long, value_name = "MODE", default_value_t)]
    pub(crate) work: Work,
    /// Maximum number of packets between dispatch and verdict
    #[arg(long, value_name = "N", default_value = "256", value_parser = units::index_count)]
    pub(crate) in_flight: usize,
    /// Cores of the distributor and of the workers, in order: 0,1 or 0-3 [default: the kernel chooses]
    #[arg(long, value_name = "LIST", value_parser = units::cores)]
    pub(crate) cores: Option<Cores>,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DesignName {
    Oracle,
    Paper,
    Sharded,
}

#[derive(Subcommand)]
pub(crate) enum NdnAction {
    /// Measures the cycles of a compare-and-swap, and whether it stalls other cores
    Cas(CasArgs),
    /// Measures exchanges per second by mode, names and workers
    Pit(PitArgs),
    /// Measures exchanges through a running forwarder with UDP faces, by mode and workers
    Live(LiveArgs),
    /// Computes forwarding speed by cores: the published model, and a model of cache lines
    Model(ModelArgs),
    /// The forwarder of 'ndn live', which starts it itself
    #[command(hide = true)]
    Relay(RelayArgs),
}

/// Rounds, cores and seed of a measurement.
#[derive(Args)]
pub(crate) struct Rounds {
    /// Cores to pin the threads to, in order: 0,1 or 0-3 [default: all]
    #[arg(long, value_name = "LIST", value_parser = units::cores)]
    pub(crate) cores: Option<Cores>,
    /// Rounds; each runs every trial once
    #[arg(long, value_name = "N", default_value = "3", value_parser = units::index_count)]
    pub(crate) trials: usize,
    /// Seed of all random choices: the order of locks, names, packets
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
}

#[derive(Args)]
pub(crate) struct LiveArgs {
    /// How workers share the tables: shards, buckets, buckets-naive, global, buckets-owned, buckets-elided [default: each in
    /// turn]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) mode: Vec<Sharing>,
    /// Numbers of workers
    #[arg(short, long, value_name = "LIST", value_delimiter = ',', default_value = "1,2")]
    pub(crate) workers: Vec<usize>,
    /// Interests in flight
    #[arg(long, value_name = "N", default_value = "256", value_parser = units::count)]
    pub(crate) window: u64,
    /// Duration of each trial
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = units::duration_ns)]
    pub(crate) duration: u64,
    /// Rounds; each runs every trial once
    #[arg(long, value_name = "N", default_value = "5", value_parser = units::index_count)]
    pub(crate) trials: usize,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Args)]
pub(crate) struct RelayArgs {
    /// How workers share the tables
    #[arg(long, value_name = "MODE")]
    pub(crate) mode: Sharing,
    /// Number of workers
    #[arg(long, value_name = "N", value_parser = units::number_in(1..=256_u16))]
    pub(crate) workers: u16,
    /// Receive at this UDP port of 127.0.0.1
    #[arg(long, value_name = "PORT")]
    pub(crate) port: u16,
    /// Send Interests for /load to this UDP port of 127.0.0.1
    #[arg(long, value_name = "PORT")]
    pub(crate) next_hop: u16,
}

#[derive(Args)]
pub(crate) struct CasArgs {
    /// Lock lines that the threads share
    #[arg(long, value_name = "N", default_value = "1048576", value_parser = units::index_count)]
    pub(crate) lines: usize,
    /// Compare-and-swaps of each thread
    #[arg(long, value_name = "N", default_value = "200k", value_parser = units::index_count)]
    pub(crate) samples: usize,
    #[command(flatten)]
    pub(crate) rounds: Rounds,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Args)]
pub(crate) struct PitArgs {
    /// How workers share the tables: shards, buckets, buckets-naive, global, buckets-owned, buckets-elided [default: each in
    /// turn]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) mode: Vec<Sharing>,
    /// Distribution of the first name components: uniform, zipf:S, one-hot
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "uniform,zipf:1,one-hot"
    )]
    pub(crate) names: Vec<Popularity>,
    /// Number of distinct first components
    #[arg(long, value_name = "N", default_value = "1048576", value_parser = units::count)]
    pub(crate) population: u64,
    /// Numbers of workers [default: 1, 2, … up to the number of cores]
    #[arg(short, long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) workers: Vec<usize>,
    /// Minimum number of exchanges of a trial
    #[arg(long, value_name = "N", default_value = "1M", value_parser = units::index_count)]
    pub(crate) exchanges: usize,
    /// Interests pending at a time
    #[arg(long, value_name = "N", default_value = "65536", value_parser = units::index_count)]
    pub(crate) pending: usize,
    /// Number of buckets with a lock
    #[arg(long, value_name = "N", default_value = "1048576", value_parser = units::index_count)]
    pub(crate) locks: usize,
    /// Bytes of content in each Data
    #[arg(long, value_name = "SIZE", default_value = "100", value_parser = units::bytes)]
    pub(crate) payload: u64,
    #[command(flatten)]
    pub(crate) rounds: Rounds,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Args)]
pub(crate) struct ModelArgs {
    /// Uses the published parameters (1018, 226 and 41 cycles) instead of measuring
    #[arg(long)]
    pub(crate) published: bool,
    /// Rounds of each measurement; the models use the medians
    #[arg(long, value_name = "N", default_value = "3", value_parser = units::number_in(1..=100_u16))]
    pub(crate) rounds: u16,
    /// Largest number of cores; the table has a row for each from 1
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) cores_max: usize,
    /// Number of locks that packets are spread over
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub(crate) locks: usize,
    #[command(flatten)]
    pub(crate) output: Output,
}

fn policy(name: &str) -> Result<Policy, String> {
    match name {
        "allow" => Ok(Policy::Allow),
        "deny" => Ok(Policy::Deny),
        _ => Err(format!("invalid policy {name:?}: use allow or deny")),
    }
}
