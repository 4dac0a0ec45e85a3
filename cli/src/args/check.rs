//! Flags of `ringtap check`.

use clap::Args;

use super::{Capture, Output};
use crate::units;

const AFTER: &str = "\
Exit codes: 0 all frames came, once and whole; 1 something failed; 2 usage; 3 frames were lost,
duplicated or corrupted, or none came. Signals: INT, TERM end it and it reports.";

#[derive(Args)]
#[command(after_help = AFTER)]
pub(crate) struct CheckArgs {
    /// The interface to receive from
    #[arg(short, long, value_name = "IFACE", required = true)]
    pub(crate) interface: Vec<String>,
    /// How: af-packet (a copy of each frame; the host goes on) or af-xdp or dpdk (faster; the host sees none)
    #[arg(long, value_name = "HOW", default_value = "af-packet", hide_possible_values = true)]
    pub(crate) method: Capture,
    /// So many stamped frames were sent: ends when all have come, and what is missing at the end is lost, too
    #[arg(long, value_name = "N", value_parser = units::count)]
    pub(crate) count: Option<u64>,
    /// Ends after so long without a stamped frame, once the first has come
    #[arg(long, value_name = "TIME", default_value = "3s", value_parser = units::duration_ns)]
    pub(crate) idle_stop: u64,
    #[command(flatten)]
    pub(crate) output: Output,
}
