//! Flags of `ringtap lab`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use super::Form;

const AFTER: &str = "\
IDs are those of 'ringtap lab list'; 'rings' is all that begin with it, 'all' is all. A run that was
cut off goes on where it was. What no command measures: 'ringtap lab trial NAME KEY=VALUE…'.";

#[derive(Args)]
#[command(after_help = AFTER)]
pub(crate) struct LabArgs {
    #[command(subcommand)]
    pub(crate) action: LabAction,
}

#[derive(Subcommand)]
pub(crate) enum LabAction {
    /// The experiments, and the figure of which paper each is about
    List,
    /// Measures on this machine, judges the papers' claims, and writes the report
    Run(LabRunArgs),
    /// The latest run as one page, with its figures
    Report(LabReportArgs),
    /// Whether this program is faster or slower than that of another revision
    Compare(LabCompareArgs),
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
pub(crate) struct LabRunArgs {
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
pub(crate) struct LabReportArgs {
    /// The folder of the run [default: the latest]
    #[arg(value_name = "RUN", value_hint = ValueHint::DirPath)]
    pub(crate) run: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) runs: Runs,
}

#[derive(Args)]
pub(crate) struct LabCompareArgs {
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
