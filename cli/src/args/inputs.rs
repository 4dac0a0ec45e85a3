//! Flags for packets to read, of a run over captures or an interface.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::units;

#[derive(Args)]
pub(crate) struct Inputs {
    /// Read capture files (pcap, pcapng; also compressed with gzip or zstd); - is stdin
    #[arg(short, long, value_name = "FILE", num_args = 1.., value_hint = ValueHint::FilePath)]
    pub(crate) read: Vec<PathBuf>,
    /// Stop after this time
    #[arg(long, value_name = "TIME", value_parser = units::positive_duration_ns, conflicts_with = "read")]
    pub(crate) duration: Option<u64>,
}
