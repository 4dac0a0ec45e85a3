//! Flags of `ringtap-ndn forward`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand, ValueHint};
use ringtap_ndn::packets::NameBuf;

use super::SigningArgs;
use ringtap_terminal::{Output, units};

const AFTER: &str = "\
A configuration:
  [udp]
  listen = \"0.0.0.0:6363\"
  [unix]
  listen = \"/run/ndn.sock\"
  [[route]]
  prefix = \"/example\"
  to = \"udp://192.0.2.1:6363\"
programs/ringtap-ndn/README.md describes all keys. Programs that announce prefixes find the socket through
NDN_CLIENT_TRANSPORT=unix:///run/ndn.sock. Exit codes: 0 success; 1 failure; 2 usage error or
invalid configuration; 3 losses with --fail-on-drop.
Signals: INT and TERM end the run and print the report.";

#[derive(Args)]
#[command(after_help = AFTER, args_conflicts_with_subcommands = true)]
pub(crate) struct ForwardArgs {
    #[command(subcommand)]
    pub(crate) action: Option<ForwardAction>,
    /// Read neighbours, programs and routes from a TOML file
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
    /// Use this number of threads for the tables [default: [workers] of the file, or 1]
    #[arg(short, long, value_name = "N", value_parser = units::number_in(1..=256_u16))]
    pub(crate) workers: Option<u16>,
    /// Stop after this time
    #[arg(long, value_name = "TIME", value_parser = units::positive_duration_ns)]
    pub(crate) duration: Option<u64>,
    /// Switch to this user once everything is open; needs root
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) user: Option<String>,
    /// Check the configuration, print the plan and exit
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) output: Output,
    /// Print statistics on stderr at this interval, at least 1s, with the rate since the line before
    #[arg(long, value_name = "TIME", value_parser = units::positive_duration_ns)]
    pub(crate) stats: Option<u64>,
    /// Serve metrics (OpenMetrics) at http://ADDR/metrics; a port alone listens on 127.0.0.1
    #[arg(long, value_name = "ADDR", value_parser = units::listening)]
    pub(crate) metrics: Option<SocketAddr>,
    /// Exit with 3 if packets were lost for lack of room
    #[arg(long)]
    pub(crate) fail_on_drop: bool,
}

#[derive(Subcommand)]
pub(crate) enum ForwardAction {
    /// Change or query the routes of a running forwarder
    Ctl(ForwardCtlArgs),
}

#[derive(Args)]
pub(crate) struct ForwardCtlArgs {
    /// The socket of the forwarder, also of NFD or ndnd
    #[arg(value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub(crate) socket: PathBuf,
    #[command(flatten)]
    pub(crate) signing: SigningArgs,
    #[command(subcommand)]
    pub(crate) action: ForwardCtl,
}

#[derive(Subcommand)]
pub(crate) enum ForwardCtl {
    /// Add a route: send Interests of a prefix to a neighbour
    Register {
        prefix: NameBuf,
        /// udp://HOST:PORT, tcp://HOST:PORT, ether://IFACE, or the number of a face
        to: String,
        /// Cost of the route; lower costs are preferred
        #[arg(long, value_name = "N", value_parser = units::number_in(0..=u64::MAX), default_value_t = 0)]
        cost: u64,
        /// Remove the route after this time
        #[arg(long, value_name = "TIME", value_parser = units::positive_duration_ns)]
        expires: Option<u64>,
    },
    /// Remove a route that was registered or configured
    Unregister {
        prefix: NameBuf,
        /// The neighbour as it was registered, or the number of the face
        to: String,
    },
    /// List routes
    Routes,
    /// List faces with their counters
    Faces,
    /// Print events of faces as they happen: created, destroyed, up, down
    Events {
        /// Stop after this many events
        #[arg(long, value_name = "N", value_parser = units::positive_count)]
        count: Option<u64>,
    },
    /// Close a face
    Close {
        /// The number of the face
        face: u64,
    },
    /// List the strategies of prefixes
    Strategies,
    /// Set the strategy of a prefix: best-route, multicast, or none
    Strategy { prefix: NameBuf, name: String },
    /// Print all counters
    Status,
}
