//! Command-line flags of `ringtap`. Help, man pages and completions are generated from them.

mod capture;
mod check;
mod extract;
mod filter;
mod generate;
mod given;
mod inputs;
mod measure;
mod merge;
mod query;
mod threads;
mod verify;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::{ArgPredicate, NonEmptyStringValueParser};
use clap::{Args, Parser, Subcommand, ValueHint};
use ringtap_export::{EventOutput, FileOutput, Refresh};
use ringtap_extract::Extractors;
use ringtap_flow::{FIRST_PACKETS_MOST, OCTETS_MOST};
use ringtap_monitor::{Analyses, Observers, TOP_MOST};
use ringtap_program::pages::Pages;
use ringtap_skeleton::Skeleton;
use ringtap_store::KeepFree;
use ringtap_terminal::Usage;
use ringtap_wire::{TunnelPorts, Tunnels};

pub(crate) use capture::Capture;
pub(crate) use check::CheckArgs;
pub(crate) use extract::ExtractArgs;
pub(crate) use filter::{CtlAction, CtlArgs, FilterAction, FilterArgs, Sending, Target};
pub(crate) use generate::{GenerateArgs, SendMethod};
pub(crate) use given::Given;
pub(crate) use inputs::Inputs;
pub(crate) use measure::{MeasureArgs, MeasureForm, SketchFile, SketchForm};
pub(crate) use merge::MergeArgs;
pub(crate) use query::{QueryArgs, Rows};
pub(crate) use ringtap_terminal::{Form, Output, ReportForm};
pub(crate) use threads::Threads;
pub(crate) use verify::VerifyArgs;

use crate::alerts::{AlertTo, HELPER_NAME, HelperArgs};
use crate::units::{self, Limit, TimeoutList, Words};

/// Network traffic monitoring on ordinary multi-core machines
#[derive(Parser)]
#[command(
    name = "ringtap",
    version,
    long_version = ringtap_program::build!(),
    args_override_self = true,
    disable_help_subcommand = true,
    max_term_width = 100,
    after_help = "Try it:\n  \
        ringtap monitor -r capture.pcap\n\
        'ringtap COMMAND --help' lists the flags of a command."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// The definition of the command line, from which help, man pages and completions are made.
pub fn definition() -> clap::Command {
    let command = <Cli as clap::CommandFactory>::command();
    let further = Analyses::further();
    if further.is_empty() {
        return command;
    }
    let with_further = |list: clap::Arg| {
        let help = list.get_help().map(ToString::to_string).unwrap_or_default();
        list.help(format!("{help}. This program adds to all: {}", further.join(", ")))
    };
    command.mut_subcommand("monitor", |monitor| monitor.mut_arg("analyses", with_further))
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Report flows, port scans, top talkers and traffic volumes
    Monitor(Box<MonitorArgs>),
    /// Pass or drop packets by rules that can change during the run
    Filter(Box<FilterArgs>),
    /// Generate traffic with known ground truth, or replay captures
    Generate(Box<GenerateArgs>),
    /// Measure loss, order and latency of frames of 'generate --stamp'
    Check(CheckArgs),
    /// Find heavy keys with sketches; compare parallel designs
    Measure(Box<MeasureArgs>),
    /// Merge states of monitors, or measurements, of several machines
    Merge(MergeArgs),
    /// Ask stored flow records: who, how much, with whom, when
    Query(QueryArgs),
    /// Write the packets of chosen flows of captures to a file
    Extract(Box<ExtractArgs>),
    /// Find what is missing in a store, or in what arrived elsewhere
    Verify(VerifyArgs),
    /// Check a configuration of 'monitor'
    CheckConfig(CheckConfigArgs),
    /// Show this machine's resources and give advice
    Doctor(DoctorArgs),
    /// Run a program for alerts of 'monitor', which starts this itself
    #[command(hide = true, name = HELPER_NAME)]
    RunForAlerts(HelperArgs),
    /// Answer questions of the page of 'monitor', which starts this itself
    #[command(hide = true, name = crate::query::helper::NAME)]
    AnswerForPage(crate::query::helper::HelperArgs),
    /// Set up network cards until 'monitor' ends, which starts this itself
    #[command(hide = true, name = crate::cards::HELPER_NAME)]
    SetUpCards(crate::cards::HelperArgs),
    #[command(flatten)]
    Pages(Pages),
    /// A command of another program
    #[command(hide = true, disable_help_flag = true)]
    Forward(MovedArgs),
    /// Commands of another program
    #[command(hide = true, disable_help_flag = true)]
    Ndn(MovedArgs),
}

#[derive(Args)]
pub(crate) struct CheckConfigArgs {
    /// The file, as for 'monitor --config'; a fault has its line and the exit code 2
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
}

const FLAGS_MONITOR: &str = "\
Times: 30, 30s, 500ms, 1h30m. Counts: 100k, 5M (powers of 1000). Sizes: 512M, 4G (powers of 1024).
A flag that is given twice has its last value, or it adds to a list.
Exit codes: 0 success; 1 reading, writing or exporting failed; 2 usage error;
3 losses with --fail-on-drop; 130 interrupted before the end of the files, or twice.
Signals: INT and TERM stop reading and print the report; USR1 prints statistics; HUP starts new
record files, opens files of alerts again, and takes up changes of --config (with -i).
Environment: RINGTAP_LOG sets the level of messages on stderr: error, warn (with alerts) or info
[default]. NO_COLOR disables colours.";

#[derive(Args)]
#[command(after_help = FLAGS_MONITOR)]
pub(crate) struct MonitorArgs {
    /// As given, if there is a configuration file.
    #[arg(skip)]
    pub(crate) given: Given,
    #[command(flatten, next_help_heading = "Source")]
    pub(crate) inputs: Inputs,
    /// Capture on interfaces, until an interrupt or for --duration; up to 16 (-i a,b or -i a -i b)
    /// are read as one stream of packets
    #[arg(short, long, value_name = "IFACE", value_parser = NonEmptyStringValueParser::new(), conflicts_with = "read", help_heading = "Source")]
    pub(crate) interface: Vec<String>,
    /// Select packets with a pcap-filter(7) expression, as in tcpdump: 'tcp port 80 and not net
    /// 10.0.0.0/8'
    #[arg(short, long, value_name = "EXPR", value_parser = NonEmptyStringValueParser::new(), help_heading = "Source")]
    pub(crate) filter: Option<String>,
    /// Filter expression as separate words; put it after -- if files precede it
    #[arg(value_name = "EXPR", value_parser = NonEmptyStringValueParser::new(), conflicts_with = "filter", help_heading = "Source")]
    pub(crate) words: Vec<String>,
    /// Capture method: auto (af-packet), af-packet (copies; the host also receives the frames),
    /// af-xdp (the host receives none; one reader queue per queue of the interface) or dpdk (IFACE
    /// is a PCI address, or a virtual device such as net_pcap0,rx_pcap=FILE; needs a build with the
    /// feature dpdk)
    #[arg(
        long,
        value_name = "METHOD",
        default_value = "auto",
        hide_possible_values = true,
        conflicts_with = "read",
        help_heading = "Source"
    )]
    pub(crate) capture: Capture,
    /// Pass these arguments to DPDK's EAL, such as '-m 1024', instead of the default memory
    /// arguments
    #[arg(long, value_name = "ARGS", value_parser = units::words, allow_hyphen_values = true,
        conflicts_with = "read", help_heading = "Source")]
    pub(crate) dpdk_args: Option<Words>,
    /// Under overload, drop all packets of some address pairs (counted and reported) instead of
    /// random packets of all flows
    #[arg(long, conflicts_with = "read", help_heading = "Source")]
    pub(crate) shed: bool,
    /// Switch to this user once the interfaces are open; needs root
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new(), conflicts_with = "read", help_heading = "Source")]
    pub(crate) user: Option<String>,
    /// Set up the network cards as 'ringtap doctor' advises, print each change, and undo all of them when the run has ended
    #[arg(long, conflicts_with = "read", help_heading = "Source")]
    pub(crate) setup_nic: bool,
    /// Do not use promiscuous mode: receive only frames for this host
    #[arg(long, conflicts_with = "read", help_heading = "Source")]
    pub(crate) no_promiscuous: bool,
    /// Read flags from a TOML file, with flag names as keys; the command line has priority
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Source")]
    pub(crate) config: Option<PathBuf>,

    /// Run these analyses: applications, flows, names, scans, talkers, udp_scans, volumes, all (these seven), tcp
    /// (round-trip times, retransmissions), passive_dns (which names led to which addresses), statistics (lengths, gaps and
    /// bursts of packets, in records) or activity (busiest hosts of each interval, by sketches)
    /// [default: all; with --tui or --web also activity]
    #[arg(long, value_name = "LIST", help_heading = "Analyses")]
    pub(crate) analyses: Option<Analyses>,
    /// What watches the run, if a program runs it as a library.
    #[arg(skip)]
    pub(crate) observers: Observers,
    /// Read the payloads of these protocols into flow records and events: tls, quic, dns, http, ssh,
    /// dhcp, ntp, labels (the names of further protocols), proxy, all (these nine), syn (the options of TCP's SYNs; not in all,
    /// but "all,syn" reads both) or none [default: all]
    #[arg(long, value_name = "LIST", help_heading = "Analyses")]
    pub(crate) extract: Option<Extractors>,
    /// Label applications by the names in this file instead of the built-in list: a suffix of a
    /// name and a label on each line
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Analyses")]
    pub(crate) names: Option<PathBuf>,
    /// Label applications by the ports in this file, before the built-in list: a port and a label on each line, as in
    /// '8443/tcp internal-api'; labels from names and payloads have priority
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Analyses")]
    pub(crate) port_labels: Option<PathBuf>,
    /// Print an alert when a host first reaches an entry of this file, and report all matches: a name
    /// (of TLS, QUIC, DNS or HTTP; with all names below it), a JA3 or JA4 fingerprint, an address or a
    /// network on each line, perhaps with a label
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Analyses")]
    pub(crate) watch: Option<PathBuf>,
    /// Add names of networks to flow records and talkers: a network and a name on each line of this
    /// file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Analyses")]
    pub(crate) networks: Option<PathBuf>,
    /// Add countries and autonomous systems to flow records and talkers, from these databases (MMDB)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Analyses")]
    pub(crate) geo: Vec<PathBuf>,
    /// Add the vendors of network cards to flow records, from IEEE's oui.txt or oui.csv, or Wireshark's manuf
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Analyses")]
    pub(crate) oui: Option<PathBuf>,
    /// Add names of VLANs to flow records: a VLAN and a name on each line of this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Analyses")]
    pub(crate) vlans: Option<PathBuf>,
    /// Use these packets of tunnels (GRE, VXLAN, GTP, …) for flows, talkers and scans: outer (the
    /// tunnel), inner (its contents) or both
    #[arg(
        long,
        value_name = "WHICH",
        default_value_t,
        hide_possible_values = true,
        help_heading = "Analyses"
    )]
    pub(crate) tunnels: Tunnels,
    /// Expect these tunnels on these UDP ports, too: capwap, geneve, gre, gtp-u, gue, l2tp, lisp, mpls, teredo, vxlan,
    /// vxlan-gpe or none
    #[arg(long, value_name = "PORT=KIND,…", help_heading = "Analyses")]
    pub(crate) tunnel_port: Option<TunnelPorts>,
    /// End a flow after this idle time, in packet time [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = units::positive_duration_ns, help_heading = "Analyses")]
    pub(crate) idle_timeout: Option<u64>,
    /// Split a flow that has lasted this long, in packet time; 0: never [default: 120s]
    #[arg(long, value_name = "TIME", value_parser = units::duration_ns, help_heading = "Analyses")]
    pub(crate) active_timeout: Option<u64>,
    /// Report live flows in parts at multiples of this time, in packet time; flowId joins the records of a flow [with
    /// --store: 60s]
    #[arg(long, value_name = "TIME", value_parser = units::cut_ns, default_value_if("store", ArgPredicate::IsPresent, "60s"),
        help_heading = "Analyses")]
    pub(crate) cut: Option<u64>,
    /// Use the timeouts of nprobe, nfdump, yaf, zeek, cisco or softflowd, and set single ones:
    /// tcp=, tcp.fin=, tcp.rst=, udp=, icmp=, general=, maxlife= [default: nprobe]
    #[arg(long, value_name = "PRESET|NAME=TIME,…", value_parser = units::timeouts, help_heading = "Analyses")]
    pub(crate) timeouts: Vec<TimeoutList>,
    /// Meter each direction as a separate flow
    #[arg(long, help_heading = "Analyses")]
    pub(crate) uniflow: bool,
    /// Include the VLAN in the flow key
    #[arg(long, help_heading = "Analyses")]
    pub(crate) vlan_in_key: bool,
    /// Report at this interval of packet time [default: the whole run; 60s on interfaces and with --store; 5s with
    /// --tui]
    #[arg(long, value_name = "TIME", value_parser = units::positive_duration_ns, default_value_if("store", ArgPredicate::IsPresent, "60s"),
        help_heading = "Analyses")]
    pub(crate) interval: Option<u64>,
    /// Report a source as a scanner above this number of failed attempts [default: 20]
    #[arg(long, value_name = "N", value_parser = units::number_in(0..=u32::MAX), help_heading = "Analyses")]
    pub(crate) scan_threshold: Option<u32>,
    /// Report a source as a UDP scanner above this number of failed attempts, less the answered ones
    /// [default: 20]
    #[arg(long, value_name = "N", value_parser = units::number_in(0..=u32::MAX), help_heading = "Analyses")]
    pub(crate) udp_scan_threshold: Option<u32>,
    /// Print an alert when a host reaches a limit in an interval: dst-pps= or dst-bps= (average
    /// packets or bits received per second), src-peers= (distinct hosts that it sent to) or
    /// dst-peers= (distinct hosts that sent to it); or when a host of the networks of --networks (without: a private
    /// address) sends for the first time (new-device=TIME), answers on a port for the first time (new-server-port=TIME),
    /// each after a learning time, or exchanges more octets than this many times its median (volume-change=N), and than
    /// volume-floor= [100M]
    #[arg(long, value_name = "NAME=N", value_parser = units::limit, help_heading = "Analyses")]
    pub(crate) alert: Vec<Limit>,
    /// Do not report alerts of known hosts, such as scanners, but count them: an address or a network, a kind of alerts or *,
    /// and perhaps the time when the rule ends on each line of this file, as in 10.1.2.3 vertical_scan
    /// 2027-01-01T00:00:00Z
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Analyses")]
    pub(crate) allow: Option<PathBuf>,
    /// With --analyses statistics: list this many first packets of each flow in its record, at most 255 [default: 30]
    #[arg(long, value_name = "N", value_parser = units::number_in(0..=FIRST_PACKETS_MOST), help_heading = "Analyses")]
    pub(crate) statistics_packets: Option<u8>,
    /// With --analyses statistics: add the entropy of this many first octets of the payload of each direction, at most 1,024
    /// [default: 0, which adds none]
    #[arg(long, value_name = "N", value_parser = units::number_in(0..=OCTETS_MOST), help_heading = "Analyses")]
    pub(crate) statistics_octets: Option<u16>,
    /// Show this many rows in each list of talkers [default: 10]
    #[arg(long, value_name = "N", value_parser = units::number_in(0..=TOP_MOST), help_heading = "Analyses")]
    pub(crate) top: Option<usize>,
    /// Leave out IP packets with the same content as one seen at most this long before, as two
    /// interfaces or a mirror port deliver them [default: 0, which leaves out none]
    #[arg(long, value_name = "WINDOW", value_parser = units::duration_ns, help_heading = "Analyses")]
    pub(crate) dedup: Option<u64>,
    /// Handle only a hash-selected sample of packets, 1 in N; use 1:N or N
    #[arg(long, value_name = "1:N", value_parser = units::sample, help_heading = "Analyses")]
    pub(crate) sample: Option<u32>,
    /// Limit live flows; beyond the limit, old flows end early [default: from the memory limit]
    #[arg(long, value_name = "N", value_parser = units::positive_count, help_heading = "Analyses")]
    pub(crate) max_flows: Option<u64>,
    /// Limit the memory of the run, which bounds the number of flows [default: a quarter of the
    /// machine's memory]
    #[arg(long, value_name = "SIZE", value_parser = units::positive_bytes, help_heading = "Analyses")]
    pub(crate) memory: Option<u64>,

    #[arg(
        long,
        value_name = "NAME",
        help = skeletons(),
        overrides_with = "sequential",
        help_heading = "Threads"
    )]
    pub(crate) skeleton: Option<Skeleton>,
    /// Run on one thread; same as --skeleton reference
    #[arg(long, overrides_with = "skeleton", help_heading = "Threads")]
    pub(crate) sequential: bool,
    /// Use this many workers per queue [default: by the number of free cores]
    #[arg(short, long, value_name = "N", value_parser = units::index_count, help_heading = "Threads")]
    pub(crate) workers: Option<usize>,
    #[command(flatten, next_help_heading = "Threads")]
    pub(crate) threads: Threads,
    /// Seed the hash tables with this number [default: random]
    #[arg(long, value_name = "N", value_parser = units::number_in(0..=u64::MAX), help_heading = "Threads")]
    pub(crate) seed: Option<u64>,

    /// Print the report as text, json, or html: one page with charts
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "text",
        hide_possible_values = true,
        help_heading = "Output"
    )]
    pub(crate) report: ReportForm,
    /// Add a digest of the report and all flow records
    #[arg(long, help_heading = "Output")]
    pub(crate) digest: bool,
    /// Write the state of the run to this file, for 'ringtap merge'; or to this folder the state of
    /// each interval
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath, conflicts_with = "anonymise",
        help_heading = "Output")]
    pub(crate) state: Option<PathBuf>,
    /// Continue the open flows of the run before, from this file, and write those of this run to it at the end; without it
    /// they end with the run
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath, conflicts_with_all = ["state", "anonymise"],
        help_heading = "Output")]
    pub(crate) resume: Option<PathBuf>,
    /// Keep flow records (Parquet), events, alerts and totals in this folder, in files by time and probe that are never
    /// replaced, with a manifest for 'ringtap verify'
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Output")]
    pub(crate) store: Option<PathBuf>,
    /// Name this machine or link in its states, in its store, in messages of Kafka and in IPFIX (observationDomainName)
    /// [default: the host name; in IPFIX none]
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new(), help_heading = "Output")]
    pub(crate) probe: Option<String>,
    /// Write flow records as json, csv, eve (Suricata), zeek (conn.log) or parquet. If PATH is - (stdout), the report goes
    /// to stderr. PATH may have strftime fields, as in flows-%Y%m%dT%H%M.json (UTC; %% is a percent sign); with PATH,open a file has its name while
    /// it is written, so that other programs can follow it (not parquet)
    #[arg(long, value_name = "FORMAT:PATH", help_heading = "Output")]
    pub(crate) write: Vec<FileOutput>,
    /// Write every message found in payloads (DNS, HTTP, TLS, ...) as json or eve, or as Zeek's logs
    /// into an existing folder, zeek:FOLDER
    #[arg(long, value_name = "FORMAT:PATH", value_parser = EventOutput::named, help_heading = "Output")]
    pub(crate) events: Vec<Vec<EventOutput>>,
    /// Replace output files that exist [default: an error; on interfaces the next free name, as in
    /// flows.1.json]
    #[arg(long, help_heading = "Output")]
    pub(crate) force: bool,
    /// Begin new files of records, events and alerts, and send statistics to IPFIX and NetFlow v9 collectors, at multiples of this
    /// time since 1970, in packet time [with --store: 5m]
    #[arg(long, value_name = "TIME", value_parser = units::rotate_ns, default_value_if("store", ArgPredicate::IsPresent, "5m"),
        help_heading = "Output")]
    pub(crate) rotate: Option<u64>,
    /// After a rotation, remove finished files of the same names that were last written longer ago, as in 30d
    #[arg(long, value_name = "TIME", value_parser = units::positive_duration_ns, help_heading = "Output")]
    pub(crate) keep: Option<u64>,
    /// After a rotation, remove the oldest finished files of the same names while these have more bytes
    #[arg(long, value_name = "SIZE", value_parser = units::positive_bytes, help_heading = "Output")]
    pub(crate) keep_size: Option<u64>,
    /// Keep this much of each output's file system free, as 5% or 10G: remove the oldest finished files of the same names
    /// while less is free, and warn when none is left [default: only warn, below 5% and 10 GB]
    #[arg(long, value_name = "SIZE|SHARE", value_parser = units::keep_free, help_heading = "Output")]
    pub(crate) keep_free: Option<KeepFree>,
    /// Export flow records to ipfix://HOST:PORT (UDP), ipfix+tcp://HOST:PORT,
    /// ipfix+tls://HOST:PORT, ipfix+local:///PATH (a local socket), ipfix-file:PATH,
    /// netflow9://HOST:PORT, netflow5://HOST:PORT, as lines to json+tcp://HOST:PORT (also csv, eve; +tls), or to kafka://BROKER/TOPIC?format=json
    /// (also protobuf); or states, for 'ringtap merge', to kafka://BROKER/TOPIC?format=state
    #[arg(long, value_name = "URL", help_heading = "Output")]
    pub(crate) export: Vec<ringtap_export::Output>,
    /// Send alerts to json:PATH (lines; - is stdout; PATH may have strftime fields), syslog:HOST (RFC 5424; also syslog+tcp://HOST,
    /// syslog+tls://HOST; syslog: is this host), an http:// or https:// URL (POST), exec:PROGRAM (run
    /// for each one), packets:FOLDER (a file with the packets of each one, see --recent) or stderr [default: stderr]
    #[arg(long, value_name = "WHERE", help_heading = "Output")]
    pub(crate) alert_to: Vec<AlertTo>,
    /// Keep the latest packets in this much of --memory, for --alert-to packets:FOLDER [default: 64M, at most a quarter of it]
    #[arg(long, value_name = "SIZE", value_parser = units::positive_bytes, help_heading = "Output")]
    pub(crate) recent: Option<u64>,
    /// Trust these certificate authorities (PEM) for TLS collectors, brokers, syslog and webhooks
    /// [default: the system's]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub(crate) tls_ca: Option<PathBuf>,
    /// Present this certificate (PEM) to TLS collectors, brokers, syslog and webhooks, and serve --web with
    /// TLS
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "tls_key",
        help_heading = "Output")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Use this private key (PEM) of the certificate
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "tls_cert",
        help_heading = "Output")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Set the observation domain of exported records (NetFlow v9: source; v5: engine)
    #[arg(
        long,
        value_name = "N",
        value_parser = units::number_in(0..=u32::MAX),
        default_value_t = 0,
        requires = "export",
        help_heading = "Output"
    )]
    pub(crate) observation_domain: u32,
    /// Resend templates over UDP after this time or number of messages
    #[arg(
        long,
        value_name = "TIME[,MESSAGES]",
        default_value = "600s,4096",
        value_parser = units::refresh,
        requires = "export",
        help_heading = "Output"
    )]
    pub(crate) template_refresh: Refresh,
    /// Replace addresses (Crypto-PAn, prefix-preserving) and hash names in all outputs, with the key in
    /// this file: 32 bytes, or 64 hexadecimal digits
    #[arg(long, value_name = "KEYFILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub(crate) anonymise: Option<PathBuf>,
    /// Print a progress line on stderr at this interval, with the rate since the line before [default: a progress bar, on a terminal]
    #[arg(long, value_name = "TIME", value_parser = units::positive_duration_ns, help_heading = "Output")]
    pub(crate) stats: Option<u64>,
    /// Serve Prometheus metrics at http://ADDR/metrics; a port alone listens on 127.0.0.1
    #[arg(long, value_name = "ADDR", value_parser = units::listening, help_heading = "Output")]
    pub(crate) metrics: Option<SocketAddr>,
    /// Serve a live page of the run at http://ADDR/, and its metrics at /metrics; a port alone listens on
    /// 127.0.0.1
    #[arg(long, value_name = "ADDR", value_parser = units::listening, help_heading = "Output")]
    pub(crate) web: Option<SocketAddr>,
    /// Serve the page only to those who know the secret in this file, at least 16 bytes; needed if
    /// other machines can reach ADDR
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "web",
        help_heading = "Output")]
    pub(crate) web_token: Option<PathBuf>,
    /// Show the run in a terminal view: rates, losses, load, intervals, scans
    #[arg(long, conflicts_with_all = ["read", "stats", "quiet"], help_heading = "Output")]
    pub(crate) tui: bool,
    /// Do not print alerts or progress on stderr; other places of --alert-to get them
    #[arg(short, long, help_heading = "Output")]
    pub(crate) quiet: bool,
    /// Exit with 3 if anything was dropped or lost for lack of resources
    #[arg(long, help_heading = "Output")]
    pub(crate) fail_on_drop: bool,
}

impl MonitorArgs {
    /// The name of this machine or link.
    pub(crate) fn probe_name(&self) -> String {
        let host = || std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        self.probe.clone().unwrap_or_else(|| host().trim_end().to_owned())
    }
}

fn skeletons() -> String {
    let [others @ .., last] = Skeleton::ALL.map(Skeleton::name);
    format!(
        "Arrange the threads as {} or {last} [default: by the number of free cores]",
        others.join(", ")
    )
}

#[derive(Args)]
pub(crate) struct DoctorArgs {
    /// Show these interfaces, with advice [default: all, with advice for cards that are up]
    #[arg(value_name = "IFACE", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) interfaces: Vec<String>,
    /// Run the commands advised for these interfaces, and print those that undo them; a link may be down for seconds
    #[arg(long, requires = "interfaces")]
    pub(crate) apply: bool,
    /// With --apply, only print the commands
    #[arg(long, requires = "apply")]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// Arguments of a command that is one of another program.
#[derive(Args)]
pub(crate) struct MovedArgs {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

impl MovedArgs {
    /// The error, which has the whole command as it is now; `begin` are its first words.
    pub(crate) fn moved(&self, begin: &str) -> anyhow::Error {
        let words = self.words.iter().map(|word| format!(" {}", word.display()));
        Usage::of(format!(
            "NDN has a program of its own: use '{begin}{}'",
            words.collect::<String>()
        ))
    }
}
