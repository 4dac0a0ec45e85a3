//! Flags of `ringtap check`.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

use super::{Capture, Output};
use crate::units;

const AFTER: &str = "\
Exit codes: 0 all frames arrived once and intact; 1 failure; 2 usage error; 3 frames were lost,
duplicated or corrupted, or none arrived. Signals: INT and TERM end the run and print the report.";

#[derive(Args)]
#[command(after_help = AFTER)]
pub(crate) struct CheckArgs {
    /// Receive from this interface
    #[arg(short, long, value_name = "IFACE", value_parser = NonEmptyStringValueParser::new(), required = true)]
    pub(crate) interface: Vec<String>,
    /// Capture method: af-packet (copies; the host also receives the frames), af-xdp or dpdk
    /// (faster; the host receives none)
    #[arg(long, value_name = "METHOD", default_value = "af-packet", hide_possible_values = true)]
    pub(crate) method: Capture,
    /// Expect this many stamped frames: stop when all have arrived, and count missing ones as lost
    #[arg(long, value_name = "N", value_parser = units::positive_count)]
    pub(crate) count: Option<u64>,
    /// Stop after this time without a stamped frame, once the first has arrived
    #[arg(long, value_name = "TIME", default_value = "3s", value_parser = units::positive_duration_ns)]
    pub(crate) idle_stop: u64,
    #[command(flatten)]
    pub(crate) output: Output,
}
