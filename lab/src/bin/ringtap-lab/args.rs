//! The flags: one list from which parsing and help come.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use ringtap_filter::Policy;
use ringtap_lab::exclusion::exchanges::Mode;
use ringtap_lab::filter::{Distribution, Work};
use ringtap_terminal::units::{self, Cores};
use ringtap_terminal::{Form, Output};
use ringtap_traffic::Popularity;

const AFTER: &str = "\
IDs are those of 'ringtap-lab list'; 'rings' is all that begin with it, 'all' is all. A run that was
cut off goes on where it was. What no command measures: 'ringtap-lab trial NAME KEY=VALUE…'. The ringtap
that is measured lies beside this program, or where programs are looked for.";

/// The experiments of five papers on this machine, and their published designs
#[derive(Parser)]
#[command(name = "ringtap-lab", version, after_help = AFTER, arg_required_else_help = true)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    pub(crate) action: Action,
}

#[derive(Subcommand)]
pub(crate) enum Action {
    /// The experiments, and the figure of which paper each is about
    List,
    /// Measures on this machine, judges the papers' claims, and writes the report
    Run(RunArgs),
    /// The latest run as one page, with its figures
    Report(ReportArgs),
    /// Whether ringtap is faster or slower than that of another revision
    Compare(CompareArgs),
    /// The published packet filter: control and data packets through a design
    Filter(FilterArgs),
    /// What mutual exclusion costs an NDN forwarder
    Ndn {
        #[command(subcommand)]
        action: NdnAction,
    },
    /// One workload, once; its numbers as JSON
    #[command(hide = true)]
    Trial {
        /// Which
        name: String,
        /// What it takes, as KEY=VALUE
        words: Vec<String>,
    },
}

#[derive(Args)]
pub(crate) struct RunArgs {
    /// What to run
    #[arg(value_name = "ID", required = true)]
    pub(crate) ids: Vec<String>,
    /// In minutes: fewer rounds, fewer points, less traffic
    #[arg(long)]
    pub(crate) quick: bool,
    /// Of the round that is not counted; each round has the next
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) runs: Runs,
    /// The verdicts on stdout: text or json
    #[arg(long, value_name = "FORM", default_value = "text", hide_possible_values = true)]
    pub(crate) report: Form,
}

#[derive(Args)]
pub(crate) struct ReportArgs {
    /// The folder of the run [default: the latest]
    #[arg(value_name = "RUN", value_hint = ValueHint::DirPath)]
    pub(crate) run: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) runs: Runs,
}

#[derive(Args)]
pub(crate) struct CompareArgs {
    /// The other revision, as git knows it; it is built from the repository here
    #[arg(value_name = "REV")]
    pub(crate) revision: String,
    /// What to compare [default: something of each application]
    #[arg(value_name = "ID")]
    pub(crate) ids: Vec<String>,
    /// Fewer points, less traffic
    #[arg(long)]
    pub(crate) quick: bool,
    /// Trials of each setting, in each program
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) rounds: u32,
    /// Of the first round; each round has the next
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) runs: Runs,
}

/// Where runs are kept.
#[derive(Args)]
pub(crate) struct Runs {
    /// The folder of all runs and their traffic
    #[arg(long = "runs", value_name = "DIR", default_value = "runs", value_hint = ValueHint::DirPath)]
    pub(crate) folder: PathBuf,
}

#[derive(Args)]
pub(crate) struct FilterArgs {
    /// Published mix, 1 to 8
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) mix: usize,
    /// Packets behind the warm-up
    #[arg(long, value_name = "N", default_value = "1M", value_parser = units::index_count)]
    pub(crate) packets: usize,
    /// Workers; 1 is a single thread
    #[arg(short, long, value_name = "N", default_value_t = 1)]
    pub(crate) workers: usize,
    /// Who decides: sharded (ours), paper (locks and caches) or oracle (serial)
    #[arg(long, value_name = "NAME", default_value = "sharded", hide_possible_values = true)]
    pub(crate) design: DesignName,
    /// Who gets which packet: address or random
    #[arg(long, value_name = "HOW", default_value_t = Distribution::Address)]
    pub(crate) distribution: Distribution,
    /// Entries of each worker's cache, in the paper's design
    #[arg(long, value_name = "N", default_value = "1024", value_parser = units::index_count)]
    pub(crate) cache: usize,
    /// What happens to packets that nothing was said about: allow or deny
    #[arg(long, value_name = "POLICY", default_value = "deny", value_parser = policy)]
    pub(crate) default: Policy,
    /// What is done for a packet that passes: serial, interleaved, simd, jump or off
    #[arg(long, value_name = "MODE", default_value_t)]
    pub(crate) work: Work,
    /// Packets between dispatch and verdict, at the most
    #[arg(long, value_name = "N", default_value = "256", value_parser = units::index_count)]
    pub(crate) in_flight: usize,
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
    /// Cycles of a compare-and-swap, and whether it stops other cores
    Cas(CasArgs),
    /// Exchanges a second by mode, names and workers
    Pit(PitArgs),
    /// Forwarding speed by cores: the published model, and one of what processors do
    Model(ModelArgs),
}

/// How often an experiment is made, where, and with what chance.
#[derive(Args)]
pub(crate) struct Rounds {
    /// Cores to pin the threads to, in order: 0,1 or 0-3 [default: all]
    #[arg(long, value_name = "LIST", value_parser = units::cores)]
    pub(crate) cores: Option<Cores>,
    /// Rounds, each of all trials in turn
    #[arg(long, value_name = "N", default_value = "3", value_parser = units::index_count)]
    pub(crate) trials: usize,
    /// Of all that is drawn: the order of locks, names, who gets which packet
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
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
    /// sharded, locked, locked-prefetch [default: each in turn]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) mode: Vec<Mode>,
    /// Which first components are asked for how often: uniform, zipf:S, one-hot
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "uniform,zipf:1,one-hot"
    )]
    pub(crate) names: Vec<Popularity>,
    /// First components there are
    #[arg(long, value_name = "N", default_value = "1048576", value_parser = units::count)]
    pub(crate) population: u64,
    /// Workers [default: 1, 2, … as many as cores]
    #[arg(short, long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) workers: Vec<usize>,
    /// Exchanges of a trial, at the least
    #[arg(long, value_name = "N", default_value = "1M", value_parser = units::index_count)]
    pub(crate) exchanges: usize,
    /// Interests pending at a time
    #[arg(long, value_name = "N", default_value = "65536", value_parser = units::index_count)]
    pub(crate) pending: usize,
    /// Locks of the locked modes
    #[arg(long, value_name = "N", default_value_t = 64)]
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
    /// The published parameters, not those measured here: 1018, 226 and 41 cycles
    #[arg(long)]
    pub(crate) published: bool,
    /// Numbers of cores, from 1 to this
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) cores_max: usize,
    /// Locks that packets are spread over
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub(crate) locks: usize,
    #[command(flatten)]
    pub(crate) output: Output,
}

fn policy(name: &str) -> Result<Policy, String> {
    match name {
        "allow" => Ok(Policy::Allow),
        "deny" => Ok(Policy::Deny),
        _ => Err(format!("{name:?} is neither allow nor deny")),
    }
}
