//! Flags of `ringtap merge`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use ringtap_monitor::TOP_MOST;

use super::{ReportForm, SketchFile};
use crate::units;

const FILES: &str = "\
States and measurements cannot be merged with each other.
Exit codes: 0 success; 1 reading or writing failed, or the files do not belong together; 2 usage
error; 130 interrupted, without a report.";

/// Flags of `ringtap merge`.
#[derive(Args, Clone)]
#[command(after_help = FILES)]
pub(crate) struct MergeArgs {
    /// States written by 'ringtap monitor --state', made with the same settings; or measurements
    /// written by 'ringtap measure --write sketch:PATH', with the same key, weight and structure. A
    /// folder stands for its files *.state
    #[arg(value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,
    /// Replace files that exist
    #[arg(long)]
    pub(crate) force: bool,
    /// The report on stdout: text, json or html [default: text; none with --state]
    #[arg(long, value_name = "FORMAT", hide_possible_values = true)]
    pub(crate) report: Option<ReportForm>,
    /// Show this many rows in each list, or list this many keys [default: 10; of measurements as the
    /// first file]
    #[arg(long, value_name = "N", value_parser = units::number_in(0..=TOP_MOST))]
    pub(crate) top: Option<usize>,

    /// Write the merged state to this file
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath, help_heading = "States")]
    pub(crate) state: Option<PathBuf>,
    /// Add the digest of one run over all packets, if the merge is exact
    #[arg(long, help_heading = "States")]
    pub(crate) digest: bool,
    /// Report a source as a scanner above this number of failed attempts [default: 20]
    #[arg(long, value_name = "N", value_parser = units::number_in(0..=u32::MAX), help_heading = "States")]
    pub(crate) scan_threshold: Option<u32>,
    /// Report a source as a UDP scanner above this number of failed attempts, less the answered ones [default: 20]
    #[arg(long, value_name = "N", value_parser = units::number_in(0..=u32::MAX), help_heading = "States")]
    pub(crate) udp_scan_threshold: Option<u32>,
    /// Label applications by the names in this file, the same as when the states were made
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "States")]
    pub(crate) names: Option<PathBuf>,
    /// Label applications by the ports in this file, the same as when the states were made
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "States")]
    pub(crate) port_labels: Option<PathBuf>,
    /// Limit the memory of the report [default: a quarter of the machine's memory]
    #[arg(long, value_name = "SIZE", value_parser = units::positive_bytes, help_heading = "States")]
    pub(crate) memory: Option<u64>,

    /// List only keys with at least this share of the total, all of them without --top [default: as
    /// the first file]
    #[arg(long, value_name = "SHARE", value_parser = units::share, help_heading = "Measurements")]
    pub(crate) threshold: Option<f64>,
    /// Write the merged measurement, in the forms of 'ringtap measure --write'
    #[arg(long, value_name = "FORMAT:PATH", help_heading = "Measurements")]
    pub(crate) write: Vec<SketchFile>,
}
