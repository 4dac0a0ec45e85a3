//! Flags of `ringtap extract`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use ringtap_export::formats::CommunityId;
use ringtap_query::{Filter, Matcher};
use ringtap_wire::TunnelPorts;

use crate::units;

const NOTES: &str = "\
The ids are the field communityId of flow records and events: of the packet itself, or of the one in
a tunnel. Later fragments belong to the flow of their first one. --where reads the files twice: first
as `ringtap monitor --idle-timeout 15m --active-timeout 0` does, for the records that the expression
selects. It is that of `ringtap query`, after \"where\".
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
    #[arg(long, value_name = "ID,…", required_unless_present = "filter", value_delimiter = ',', value_parser = units::community_id)]
    pub(crate) flow: Vec<CommunityId>,
    /// Choose the packets of flows whose records this expression selects
    #[arg(long = "where", id = "filter", value_name = "EXPR", conflicts_with = "flow", value_parser = Selected::new)]
    pub(crate) filter: Option<Selected>,
    /// Write them to this file, as pcapng; - is stdout
    #[arg(short, long, value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    pub(crate) write: PathBuf,
    /// Expect these tunnels on these UDP ports, too, as ringtap monitor does
    #[arg(long, value_name = "PORT=KIND,…")]
    pub(crate) tunnel_port: Option<TunnelPorts>,
    /// Replace a file that exists
    #[arg(long)]
    pub(crate) force: bool,
}

/// Flows that an expression selects.
#[derive(Clone)]
pub(crate) struct Selected {
    pub(crate) text: String,
    pub(crate) matcher: Matcher,
}

impl Selected {
    fn new(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Err("it is empty: use an expression such as \"tcp port 443\"".to_owned());
        }
        let filter = Filter::new(text).map_err(|error| error.to_string())?;
        let matcher = Matcher::new(&filter).map_err(|error| error.to_string())?;
        if let Some(flag) = matcher.needs() {
            let column = "a column of it is in records of `ringtap monitor";
            return Err(format!("{column} {flag}` alone: use --flow with the id of such a record"));
        }
        Ok(Self { text: text.to_owned(), matcher })
    }
}
