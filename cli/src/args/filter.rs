//! Flags of `ringtap filter`.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Subcommand, ValueEnum, ValueHint};
use ringtap_filter::Policy;
use ringtap_filter::run::NotIp;

use super::{Capture, Form, Moved};
use crate::units;

const AFTER: &str = "\
A rule file has a statement a line; later rules count before earlier ones:
  default deny
  allow from 10.0.0.0/8 to any
  deny from any to 10.1.2.0-10.1.2.99
  ban 192.0.2.7
Exit codes: 0 success; 1 something could not be read, written or sent; 2 usage, or the rules are
wrong; 3 losses with --fail-on-drop. Signals: INT, TERM end it and it reports.";

#[derive(Args)]
#[command(after_help = AFTER, args_conflicts_with_subcommands = true)]
pub(crate) struct FilterArgs {
    #[command(subcommand)]
    pub(crate) action: Option<FilterAction>,

    /// Capture files (pcap, pcapng, also within gzip or zstd); - is standard input
    #[arg(short, long, value_name = "FILE", num_args = 1.., value_hint = ValueHint::FilePath,
        help_heading = "From and to")]
    pub(crate) read: Vec<PathBuf>,
    /// Capture of what passes; - is stdout, and the report then goes to stderr
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "interface",
        help_heading = "From and to")]
    pub(crate) write: Option<PathBuf>,
    /// Interface to receive from, until an interrupt or for --duration
    #[arg(
        short,
        long,
        value_name = "IFACE",
        conflicts_with = "read",
        requires = "output",
        help_heading = "From and to"
    )]
    pub(crate) interface: Vec<String>,
    /// Interface to send to what passes
    #[arg(short, long, value_name = "IFACE", requires = "interface", help_heading = "From and to")]
    pub(crate) output: Vec<String>,
    /// Also the other way round, by the same rules
    #[arg(long, requires = "interface", help_heading = "From and to")]
    pub(crate) both_ways: bool,
    /// Capture of what does not pass
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "From and to")]
    pub(crate) drops: Option<PathBuf>,
    /// How frames are taken: af-packet (the host sees them, too) or af-xdp (it does not)
    #[arg(
        long,
        value_name = "METHOD",
        default_value = "auto",
        hide_possible_values = true,
        help_heading = "From and to"
    )]
    pub(crate) capture: Capture,
    /// How frames are sent: af-packet or af-xdp
    #[arg(
        long,
        value_name = "METHOD",
        default_value = "af-packet",
        hide_possible_values = true,
        help_heading = "From and to"
    )]
    pub(crate) send: Sending,
    /// Receive for so long
    #[arg(long, value_name = "TIME", value_parser = units::duration_ns, requires = "interface",
        help_heading = "From and to")]
    pub(crate) duration: Option<u64>,

    /// File of rules to begin with
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Rules")]
    pub(crate) rules: Option<PathBuf>,
    /// What happens to packets that no rule is about, unless the file says it: allow or deny
    #[arg(long, value_name = "POLICY", default_value = "deny", value_parser = policy,
        help_heading = "Rules")]
    pub(crate) default: Policy,
    /// What happens to frames that are not IP, such as ARP: pass or drop
    #[arg(long, value_name = "WHAT", default_value_t, help_heading = "Rules")]
    pub(crate) not_ip: NotIp,
    /// Rules, and bans, at the most
    #[arg(long, value_name = "N", default_value = "4M", value_parser = units::index_count,
        help_heading = "Rules")]
    pub(crate) max_rules: usize,
    /// Memory for look-ups, for IPv4 and IPv6 each and for each revision in use
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = units::bytes,
        help_heading = "Rules")]
    pub(crate) memory: u64,
    /// Socket for changes while it runs, as in unix:/run/filter.sock; for 'ringtap filter ctl'
    #[arg(long, value_name = "unix:PATH", value_parser = socket, requires = "interface",
        help_heading = "Rules")]
    pub(crate) control: Option<PathBuf>,
    /// UDP port of control packets among the others; they change rules at their place
    #[arg(long, value_name = "PORT", requires = "control_key", help_heading = "Rules")]
    pub(crate) control_port: Option<u16>,
    /// File with the key that control packets are sealed by, 16 bytes at least
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "control_port",
        help_heading = "Rules")]
    pub(crate) control_key: Option<PathBuf>,
    /// Only say what becomes of a packet from SOURCE to DESTINATION, and why
    #[arg(long, num_args = 2, value_names = ["SOURCE", "DESTINATION"], help_heading = "Rules")]
    pub(crate) explain: Vec<IpAddr>,

    /// One thread, in the order of the packets
    #[arg(long, conflicts_with_all = ["workers", "interface"], help_heading = "Arrangement")]
    pub(crate) sequential: bool,
    /// Threads that judge packets of captures [default: from the free cores]
    #[arg(long, value_name = "N", conflicts_with = "interface", help_heading = "Arrangement")]
    pub(crate) workers: Option<usize>,
    /// Queues of an interface, a worker each [default: 1; of af-xdp, as many as it has]
    #[arg(long, value_name = "N", requires = "interface", help_heading = "Arrangement")]
    pub(crate) queues: Option<u16>,
    /// Check the rules, print the plan and exit
    #[arg(long, help_heading = "Arrangement")]
    pub(crate) dry_run: bool,

    /// The report on stdout: text or json
    #[arg(
        long,
        value_name = "FORM",
        default_value = "text",
        hide_possible_values = true,
        help_heading = "Output"
    )]
    pub(crate) report: Form,
    /// Add a digest of all verdicts in their order; of captures
    #[arg(long, conflicts_with = "interface", help_heading = "Output")]
    pub(crate) digest: bool,
    /// Exit with 3 if packets were lost though no rule said so
    #[arg(long, help_heading = "Output")]
    pub(crate) fail_on_drop: bool,
}

#[derive(Subcommand)]
pub(crate) enum FilterAction {
    /// Changes the rules of a filter that runs, or asks it
    Ctl(CtlArgs),
    /// It is ringtap-lab filter
    #[command(hide = true, disable_help_flag = true)]
    Bench(Moved),
}

#[derive(Args)]
pub(crate) struct CtlArgs {
    /// The filter's socket (PATH or unix:PATH), or udp:HOST:PORT for a sealed control packet
    #[arg(value_name = "PATH", value_parser = Target::from_str)]
    pub(crate) target: Target,
    /// File with the key for control packets
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) key: Option<PathBuf>,
    /// Only check whether the change could be made
    #[arg(long, global = true)]
    pub(crate) dry_run: bool,
    #[command(subcommand)]
    pub(crate) action: CtlAction,
}

#[derive(Subcommand)]
pub(crate) enum CtlAction {
    /// Adds a rule: add allow from 10.0.0.0/8 to any
    Add { rule: Vec<String> },
    /// Takes out the latest rule of these words
    Remove { rule: Vec<String> },
    /// Bans sources, all in one step; says how many were banned already
    Ban {
        #[arg(required = true)]
        sources: Vec<String>,
    },
    /// Takes bans back, all in one step; says how many were not banned
    Unban {
        #[arg(required = true)]
        sources: Vec<String>,
    },
    /// What happens to packets that no rule is about: allow or deny
    Default { policy: String },
    /// Makes all statements of a file in one step; - is stdin
    Apply { file: PathBuf },
    /// The same, in place of all rules and bans there are
    Replace { file: PathBuf },
    /// All rules and bans, with their numbers and how often each decided
    List,
    /// All rules and bans, as a file that 'apply' takes
    Dump,
    /// What becomes of a packet, and why
    Explain { source: IpAddr, destination: IpAddr },
    /// Revision and counters, as JSON
    Status,
}

/// Where a change goes.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    Socket(PathBuf),
    Packet(SocketAddr),
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("udp", at)) => at
                .parse()
                .map(Self::Packet)
                .map_err(|_| format!("{at:?} is no address and port, as in 192.0.2.1:7777")),
            Some(("unix", path)) => Ok(Self::Socket(path.into())),
            _ => Ok(Self::Socket(text.into())),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sending {
    AfPacket,
    AfXdp,
}

fn policy(name: &str) -> Result<Policy, String> {
    match name {
        "allow" => Ok(Policy::Allow),
        "deny" => Ok(Policy::Deny),
        _ => Err(format!("{name:?} is neither allow nor deny")),
    }
}

fn socket(text: &str) -> Result<PathBuf, String> {
    let path = text.strip_prefix("unix:").filter(|path| !path.is_empty());
    path.map(PathBuf::from).ok_or_else(|| format!("{text:?}: write unix:PATH"))
}
