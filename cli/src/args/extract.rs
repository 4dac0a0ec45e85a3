//! Flags of `ringtap extract`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use ringtap_export::formats::CommunityId;

use crate::units;

const NOTES: &str = "\
The ids are the field communityId of flow records and events: of the packet itself, or of the one in
a tunnel. Later fragments belong to the flow of their first one.
Exit codes: 0 success, also if no packet belongs to the flows; 1 reading or writing failed; 2 usage
error; 130 interrupted, without a file.";

/// Flags of `ringtap extract`.
#[derive(Args)]
#[command(after_help = NOTES)]
pub(crate) struct ExtractArgs {
    /// Capture files (pcap, pcapng; also compressed with gzip or zstd), in order; - is stdin
    #[arg(value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,
    /// Choose the packets with these Community IDs; may be repeated
    #[arg(long, value_name = "ID,…", required = true, value_delimiter = ',', value_parser = units::community_id)]
    pub(crate) flow: Vec<CommunityId>,
    /// Write them to this file, as pcapng; - is stdout
    #[arg(short, long, value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    pub(crate) write: PathBuf,
    /// Replace a file that exists
    #[arg(long)]
    pub(crate) force: bool,
}
