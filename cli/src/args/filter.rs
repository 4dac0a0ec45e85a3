//! Flags of `ringtap filter`.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand, ValueEnum, ValueHint};
use ringtap_filter::run::NotIp;
use ringtap_filter::{Policy, RULES_MOST};

use super::{Capture, Form, Inputs};
use crate::units;

const AFTER: &str = "\
A rule file has one statement per line; later rules take precedence:
  default deny
  allow from 10.0.0.0/8 to any
  deny from any to 10.1.2.0-10.1.2.99
  ban 192.0.2.7
Exit codes: 0 success; 1 reading, writing or sending failed; 2 usage error or invalid rules;
3 losses with --fail-on-drop; 130 interrupted before the end of the captures, or twice.
Signals: INT and TERM end the run and print the report.";

#[derive(Args)]
#[command(after_help = AFTER, args_conflicts_with_subcommands = true)]
pub(crate) struct FilterArgs {
    #[command(subcommand)]
    pub(crate) action: Option<FilterAction>,

    #[command(flatten, next_help_heading = "Input and output")]
    pub(crate) inputs: Inputs,
    /// Write passed packets to a capture file; if FILE is - (stdout), the report goes to stderr
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "interface",
        help_heading = "Input and output")]
    pub(crate) write: Option<PathBuf>,
    /// Receive from this interface, until an interrupt or for --duration
    #[arg(
        short,
        long,
        value_name = "IFACE",
        value_parser = NonEmptyStringValueParser::new(),
        conflicts_with = "read",
        requires = "output",
        help_heading = "Input and output"
    )]
    pub(crate) interface: Vec<String>,
    /// Send passed packets on this interface
    #[arg(
        short,
        long,
        value_name = "IFACE",
        value_parser = NonEmptyStringValueParser::new(),
        requires = "interface",
        conflicts_with = "read",
        help_heading = "Input and output"
    )]
    pub(crate) output: Vec<String>,
    /// Filter both directions with the same rules
    #[arg(
        long,
        requires = "interface",
        conflicts_with = "read",
        help_heading = "Input and output"
    )]
    pub(crate) both_ways: bool,
    /// Write dropped packets to a capture file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Input and output")]
    pub(crate) drops: Option<PathBuf>,
    /// Replace capture files that exist [default: an error; on interfaces the next free name, as in
    /// drops.1.pcap]
    #[arg(long, help_heading = "Input and output")]
    pub(crate) force: bool,
    /// Capture method: auto (af-packet), af-packet (the host also receives the frames) or af-xdp
    /// (the host receives none)
    #[arg(
        long,
        value_name = "METHOD",
        default_value = "auto",
        hide_possible_values = true,
        conflicts_with = "read",
        help_heading = "Input and output"
    )]
    pub(crate) capture: Capture,
    /// Send method: af-packet or af-xdp
    #[arg(
        long,
        value_name = "METHOD",
        default_value = "af-packet",
        hide_possible_values = true,
        conflicts_with = "read",
        help_heading = "Input and output"
    )]
    pub(crate) send: Sending,

    /// Read the initial rules from a file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Rules")]
    pub(crate) rules: Option<PathBuf>,
    /// Policy for packets that match no rule, unless the file sets it: allow or deny
    #[arg(long, value_name = "POLICY", default_value = "deny", value_parser = policy,
        help_heading = "Rules")]
    pub(crate) default: Policy,
    /// Pass or drop frames without IP, such as ARP
    #[arg(long, value_name = "WHAT", default_value_t, help_heading = "Rules")]
    pub(crate) not_ip: NotIp,
    /// Limit the number of rules and the number of bans, each
    #[arg(long, value_name = "N", default_value = "4M", value_parser = units::number_in(1..=RULES_MOST),
        help_heading = "Rules")]
    pub(crate) max_rules: usize,
    /// Limit the memory of look-up tables, for each of IPv4 and IPv6 and each revision in use
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = units::positive_bytes,
        help_heading = "Rules")]
    pub(crate) memory: u64,
    /// Listen for 'ringtap filter ctl' on this socket, as in unix:/run/filter.sock
    #[arg(long, value_name = "unix:PATH", value_parser = socket, requires = "interface", conflicts_with = "read",
        help_heading = "Rules")]
    pub(crate) control: Option<PathBuf>,
    /// Accept control packets on this UDP port; they change the rules at their position in the
    /// stream
    #[arg(long, value_name = "PORT", value_parser = units::number_in(1..=u16::MAX), requires = "control_key", help_heading = "Rules")]
    pub(crate) control_port: Option<u16>,
    /// Read the key of control packets from a file, at least 16 bytes
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "control_port",
        help_heading = "Rules")]
    pub(crate) control_key: Option<PathBuf>,
    /// Print the verdict for a packet from SOURCE to DESTINATION with its reason, and exit
    #[arg(long, num_args = 2, value_names = ["SOURCE", "DESTINATION"], value_parser = address,
        help_heading = "Rules")]
    pub(crate) explain: Vec<IpAddr>,

    /// Run on one thread
    #[arg(long, conflicts_with_all = ["workers", "interface"], help_heading = "Threads")]
    pub(crate) sequential: bool,
    /// Filter captures with this many worker threads [default: by the number of free cores]
    #[arg(long, value_name = "N", value_parser = units::index_count, conflicts_with = "interface", help_heading = "Threads")]
    pub(crate) workers: Option<usize>,
    /// Receive from this many queues of the interface, one worker each [default: 1; with af-xdp,
    /// all]
    #[arg(
        long,
        value_name = "N",
        value_parser = units::number_in(1..=u16::MAX),
        requires = "interface",
        conflicts_with = "read",
        help_heading = "Threads"
    )]
    pub(crate) queues: Option<u16>,
    /// Check the rules, print the plan and exit
    #[arg(long, help_heading = "Threads")]
    pub(crate) dry_run: bool,

    /// Print the report as text or json
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "text",
        hide_possible_values = true,
        help_heading = "Report"
    )]
    pub(crate) report: Form,
    /// Add a digest of all verdicts in order; captures only
    #[arg(long, conflicts_with = "interface", help_heading = "Report")]
    pub(crate) digest: bool,
    /// Exit with 3 if packets were lost for reasons other than rules
    #[arg(long, help_heading = "Report")]
    pub(crate) fail_on_drop: bool,
}

#[derive(Subcommand)]
pub(crate) enum FilterAction {
    /// Change or query the rules of a running filter
    Ctl(CtlArgs),
}

#[derive(Args)]
pub(crate) struct CtlArgs {
    /// The filter's socket (PATH or unix:PATH), or udp:ADDRESS:PORT for a control packet
    #[arg(value_name = "PATH", value_parser = Target::from_str)]
    pub(crate) target: Target,
    /// Read the key of control packets from a file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) key: Option<PathBuf>,
    /// Only check whether the change would succeed
    #[arg(long, global = true)]
    pub(crate) dry_run: bool,
    #[command(subcommand)]
    pub(crate) action: CtlAction,
}

#[derive(Subcommand)]
pub(crate) enum CtlAction {
    /// Add a rule: add allow from 10.0.0.0/8 to any
    Add { rule: Vec<String> },
    /// Remove the latest rule with these words
    Remove { rule: Vec<String> },
    /// Ban sources in one step; print how many were already banned
    Ban {
        #[arg(required = true)]
        sources: Vec<String>,
    },
    /// Remove bans in one step; print how many sources were not banned
    Unban {
        #[arg(required = true)]
        sources: Vec<String>,
    },
    /// Set the policy for packets that match no rule: allow or deny
    Default { policy: String },
    /// Apply all statements of a file in one step; - is stdin
    Apply { file: PathBuf },
    /// Replace all rules and bans by those of a file in one step; - is stdin
    Replace { file: PathBuf },
    /// List all rules and bans, with numbers and counters
    List,
    /// Print all rules and bans, as a file for 'apply'
    Dump,
    /// Print the verdict for a packet, with its reason
    Explain {
        #[arg(value_parser = address)]
        source: IpAddr,
        #[arg(value_parser = address)]
        destination: IpAddr,
    },
    /// Print the revision and counters as JSON
    Status,
}

/// The destination of a change.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    Socket(PathBuf),
    Packet(SocketAddr),
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("udp", at)) => at.parse().map(Self::Packet).map_err(|_| {
                format!("invalid address {at:?}: use ADDRESS:PORT, as in 192.0.2.1:7777")
            }),
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

fn address(text: &str) -> Result<IpAddr, String> {
    ringtap_base::parse_address(text)
        .ok_or_else(|| format!("invalid address {text:?}: use 192.0.2.7 or 2001:db8::7"))
}

fn policy(name: &str) -> Result<Policy, String> {
    match name {
        "allow" => Ok(Policy::Allow),
        "deny" => Ok(Policy::Deny),
        _ => Err(format!("unknown policy {name:?}: use allow or deny")),
    }
}

fn socket(text: &str) -> Result<PathBuf, String> {
    let path = text.strip_prefix("unix:").filter(|path| !path.is_empty());
    path.map(PathBuf::from).ok_or_else(|| format!("invalid control socket {text:?}: use unix:PATH"))
}
