//! Flags of `ringtap forward`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use ringtap_ndn::packets::NameBuf;

use super::Output;
use crate::units;

const AFTER: &str = "\
A configuration:
  [udp]
  listen = \"0.0.0.0:6363\"
  [unix]
  listen = \"/run/ndn.sock\"
  [[route]]
  prefix = \"/example\"
  to = \"udp://192.0.2.1:6363\"
docs/NDN.md has all keys. Programs that announce prefixes find the socket by
NDN_CLIENT_TRANSPORT=unix:///run/ndn.sock. Exit codes: 0 success; 1 something could not be opened;
2 usage, or the configuration is wrong; 3 losses with --fail-on-drop.
Signals: INT, TERM end it and it reports.";

#[derive(Args)]
#[command(after_help = AFTER, args_conflicts_with_subcommands = true)]
pub(crate) struct ForwardArgs {
    #[command(subcommand)]
    pub(crate) action: Option<ForwardAction>,
    /// TOML file that says where neighbours and programs are, and which routes there are
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
    /// Forward for so long
    #[arg(long, value_name = "TIME", value_parser = units::duration_ns)]
    pub(crate) duration: Option<u64>,
    /// Become this user once everything is open; started as root
    #[arg(long, value_name = "NAME")]
    pub(crate) user: Option<String>,
    /// Check the configuration, print the plan and exit
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) output: Output,
    /// A line on stderr this often, a second at least
    #[arg(long, value_name = "TIME", value_parser = units::duration_ns)]
    pub(crate) stats: Option<u64>,
    /// Exit with 3 if packets were lost for want of room
    #[arg(long)]
    pub(crate) fail_on_drop: bool,
}

#[derive(Subcommand)]
pub(crate) enum ForwardAction {
    /// Changes the routes of a forwarder that runs, or asks it
    Ctl(ForwardCtlArgs),
}

#[derive(Args)]
pub(crate) struct ForwardCtlArgs {
    /// The forwarder's socket; NFD and ndnd answer, too
    #[arg(value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub(crate) socket: PathBuf,
    #[command(subcommand)]
    pub(crate) action: ForwardCtl,
}

#[derive(Subcommand)]
pub(crate) enum ForwardCtl {
    /// Sends Interests of a prefix to a neighbour, too
    Register {
        prefix: NameBuf,
        /// udp://HOST:PORT, ether://IFACE, or the number of a face
        to: String,
        /// Cheaper routes are taken first
        #[arg(long, value_name = "N", default_value_t = 0)]
        cost: u64,
        /// It ends after so much time
        #[arg(long, value_name = "TIME", value_parser = units::duration_ns)]
        expires: Option<u64>,
    },
    /// Takes a route back that was registered so, or configured
    Unregister {
        prefix: NameBuf,
        /// As it was given, or the number of the face
        to: String,
    },
    /// All routes
    Routes,
    /// All faces, and what went over them
    Faces,
    /// Closes a face
    Close {
        /// Its number
        face: u64,
    },
    /// The strategies of prefixes
    Strategies,
    /// Chooses the strategy of a prefix: best-route, multicast, or none of its own
    Strategy { prefix: NameBuf, name: String },
    /// Counters of the whole
    Status,
}
