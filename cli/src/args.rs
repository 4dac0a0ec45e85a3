//! The flags: one list from which parsing, help, man pages and completions come.

mod capture;
mod check;
mod filter;
mod forward;
mod generate;
mod measure;
mod ndn;
mod threads;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueHint};
#[cfg(feature = "pages")]
use clap_complete::Shell;
use ringtap_export::{Collector, FileOutput, Refresh};
use ringtap_extract::Extractors;
use ringtap_monitor::Analyses;
use ringtap_skeleton::Skeleton;
use ringtap_terminal::Usage;
use ringtap_wire::Tunnels;

pub(crate) use capture::Capture;
pub(crate) use check::CheckArgs;
pub(crate) use filter::{CtlAction, CtlArgs, FilterAction, FilterArgs, Sending, Target};
pub(crate) use forward::{ForwardAction, ForwardArgs, ForwardCtl, ForwardCtlArgs};
pub(crate) use generate::{GenerateArgs, SendMethod};
pub(crate) use measure::{MeasureArgs, MergeArgs, SketchFile, SketchForm};
pub(crate) use ndn::{LoadArgs, Names, NdnAction, NdnArgs, PingArgs, ServerArgs, Url};
pub(crate) use ringtap_terminal::{Form, Output};
pub(crate) use threads::Threads;

use crate::units::{self, Limit, TimeoutList, Words};

/// Network traffic monitoring on ordinary multi-core machines
#[derive(Parser)]
#[command(
    name = "ringtap",
    version,
    args_override_self = true,
    disable_help_subcommand = true,
    max_term_width = 100,
    after_help = "Try it:\n  \
        ringtap monitor -r capture.pcap\n\n\
        'ringtap COMMAND --help' lists the flags of a command."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Flows, port scans, talkers and volumes of captured traffic
    Monitor(Box<MonitorArgs>),
    /// Passes on packets by rules that may change while it runs
    Filter(Box<FilterArgs>),
    /// Forwards NDN packets between neighbours and programs
    Forward(Box<ForwardArgs>),
    /// Traffic whose truth is known, or a capture, to a file or interface
    Generate(Box<GenerateArgs>),
    /// Receives what 'generate --stamp' sent: what was lost, how late
    Check(CheckArgs),
    /// Heavy keys by sketches, in several designs, and how they perform
    Measure(Box<MeasureArgs>),
    /// What several machines measured, as one answer
    Merge(MergeArgs),
    /// NDN: asks for names, answers them, puts load on whoever does
    Ndn(Box<NdnArgs>),
    /// It is ringtap-lab
    #[command(hide = true, disable_help_flag = true)]
    Lab(Moved),
    /// What this machine offers (cores, memory, interfaces), and advice
    Doctor(DoctorArgs),
    /// A completion script on stdout
    #[cfg(feature = "pages")]
    #[command(hide = true)]
    Completions {
        /// For which shell
        shell: Shell,
    },
    /// Man pages, one a command
    #[cfg(feature = "pages")]
    #[command(hide = true)]
    Man {
        /// Where to put them
        #[arg(value_hint = ValueHint::DirPath)]
        directory: PathBuf,
    },
}

const FLAGS_MONITOR: &str = "\
Times: 30, 30s, 500ms, 1h30m. Counts: 100k, 5M (thousands). Sizes: 512M, 4G (1024s).
Exit codes: 0 success; 1 something could not be read, written or exported; 2 usage;
3 losses with --fail-on-drop; 130 interrupted twice.
Signals: INT, TERM stop reading and report; USR1 prints statistics; HUP begins new record files.
Environment: RINGTAP_LOG, what is told on stderr unasked: error, warn (and alerts) or info [default];
NO_COLOR.";

#[derive(Args)]
#[command(after_help = FLAGS_MONITOR)]
pub(crate) struct MonitorArgs {
    /// Capture files (pcap, pcapng, also within gzip or zstd); - is standard input
    #[arg(short, long, value_name = "FILE", num_args = 1.., value_hint = ValueHint::FilePath,
        help_heading = "Source")]
    pub(crate) read: Vec<PathBuf>,
    /// Interface to listen to, until an interrupt or for --duration; several (-i a,b or -i a -i b) are read as one
    /// stream of packets, up to 16
    #[arg(short, long, value_name = "IFACE", conflicts_with = "read", help_heading = "Source")]
    pub(crate) interface: Vec<String>,
    /// Only packets that this selects, in the words of tcpdump: 'tcp port 80 and not net 10.0.0.0/8' (see
    /// pcap-filter(7); it is read by libpcap)
    #[arg(short, long, value_name = "EXPR", help_heading = "Source")]
    pub(crate) filter: Option<String>,
    /// The same, in as many words; behind --, if files are listed before them
    #[arg(value_name = "EXPR", conflicts_with = "filter", help_heading = "Source")]
    pub(crate) words: Vec<String>,
    /// How frames are taken: af-packet (a copy; the host sees them, too), af-xdp (the host sees none of
    /// them; one queue for each of the interface's) or dpdk (IFACE is a PCI address, or a virtual device as
    /// in net_pcap0,rx_pcap=FILE; only in a program that was built with it)
    #[arg(
        long,
        value_name = "METHOD",
        default_value = "auto",
        hide_possible_values = true,
        help_heading = "Source"
    )]
    pub(crate) capture: Capture,
    /// Arguments for DPDK's environment, as in '-m 1024', in place of ours for memory
    #[arg(long, value_name = "ARGS", value_parser = units::words, allow_hyphen_values = true,
        requires = "interface", help_heading = "Source")]
    pub(crate) dpdk_args: Option<Words>,
    /// Listen for so long
    #[arg(long, value_name = "TIME", value_parser = units::duration_ns, conflicts_with = "read",
        help_heading = "Source")]
    pub(crate) duration: Option<u64>,
    /// When more comes than can be metered, leave out the packets of some pairs of addresses (counted, and
    /// told) instead of losing packets of all flows
    #[arg(long, conflicts_with = "read", help_heading = "Source")]
    pub(crate) shed: bool,
    /// Become this user once everything is open; started as root
    #[arg(long, value_name = "NAME", conflicts_with = "read", help_heading = "Source")]
    pub(crate) user: Option<String>,
    /// Take only frames for this host
    #[arg(long, help_heading = "Source")]
    pub(crate) no_promiscuous: bool,
    /// TOML file with the names of these flags as keys; flags win
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Source")]
    pub(crate) config: Option<PathBuf>,

    /// Analyses to run: flows, scans, talkers, volumes, or all of these; and activity (who was busy in each
    /// interval, by sketches)
    #[arg(long, value_name = "LIST", help_heading = "Analyses")]
    pub(crate) analyses: Option<Analyses>,
    /// What is read from payloads into flow records: dns (query names), all or none [default: all]
    #[arg(long, value_name = "LIST", help_heading = "Analyses")]
    pub(crate) extract: Option<Extractors>,
    /// Of tunnels (GRE, VXLAN, GTP, …), what makes flows, talkers and scans: outer (the tunnel), inner
    /// (what it carries) or both
    #[arg(
        long,
        value_name = "WHICH",
        default_value_t,
        hide_possible_values = true,
        help_heading = "Analyses"
    )]
    pub(crate) tunnels: Tunnels,
    /// A flow ends after this much silence, in packet time [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = units::duration_ns, help_heading = "Analyses")]
    pub(crate) idle_timeout: Option<u64>,
    /// A flow is cut when it has lived this long, in packet time [default: 120s]
    #[arg(long, value_name = "TIME", value_parser = units::duration_ns, help_heading = "Analyses")]
    pub(crate) active_timeout: Option<u64>,
    /// Timeouts as those of nprobe, nfdump, yaf, zeek, cisco or softflowd, and by protocol:
    /// tcp=, tcp.fin=, tcp.rst=, udp=, icmp=, general=, maxlife= [default: nprobe]
    #[arg(long, value_name = "PRESET|NAME=TIME,…", value_parser = units::timeouts, help_heading = "Analyses")]
    pub(crate) timeouts: Option<TimeoutList>,
    /// One flow a direction, not one for both
    #[arg(long, help_heading = "Analyses")]
    pub(crate) uniflow: bool,
    /// Packets of different VLANs are of different flows
    #[arg(long, help_heading = "Analyses")]
    pub(crate) vlan_in_key: bool,
    /// Reporting interval, in packet time [default: the whole run; of an interface 60s,
    /// with --tui 5s]
    #[arg(long, value_name = "TIME", value_parser = units::duration_ns, help_heading = "Analyses")]
    pub(crate) interval: Option<u64>,
    /// More failed attempts than this are a scan [default: 20]
    #[arg(long, value_name = "N", help_heading = "Analyses")]
    pub(crate) scan_threshold: Option<u32>,
    /// Tell when a host reaches this in an interval: dst-pps=, dst-bps= (on average), src-peers=, dst-peers=
    /// (distinct hosts)
    #[arg(long, value_name = "NAME=N", value_parser = units::limit, help_heading = "Analyses")]
    pub(crate) alert: Vec<Limit>,
    /// Rows in each list of talkers [default: 10]
    #[arg(long, value_name = "N", value_parser = units::index_count, help_heading = "Analyses")]
    pub(crate) top: Option<usize>,
    /// Look at one packet in N only, whichever those are by their contents; 1:N or N
    #[arg(long, value_name = "1:N", value_parser = units::sample, help_heading = "Analyses")]
    pub(crate) sample: Option<u32>,
    /// Live flows at the most; beyond, the oldest end early [default: from the memory]
    #[arg(long, value_name = "N", value_parser = units::count, help_heading = "Analyses")]
    pub(crate) max_flows: Option<u64>,
    /// Memory the run may take; the fewer flows it keeps at a time [default: a quarter of the machine's]
    #[arg(long, value_name = "SIZE", value_parser = units::bytes, help_heading = "Analyses")]
    pub(crate) memory: Option<u64>,

    #[arg(
        long,
        value_name = "NAME",
        help = skeletons(),
        overrides_with = "sequential",
        help_heading = "Arrangement"
    )]
    pub(crate) skeleton: Option<Skeleton>,
    /// One thread, in the order of the packets: the same as --skeleton reference
    #[arg(long, overrides_with = "skeleton", help_heading = "Arrangement")]
    pub(crate) sequential: bool,
    /// Queues that the packets are read through, by address pair [default: from the free cores]
    #[arg(long, value_name = "N", help_heading = "Arrangement")]
    pub(crate) queues: Option<usize>,
    /// How many workers, behind each queue [default: from the free cores]
    #[arg(short, long, value_name = "N", help_heading = "Arrangement")]
    pub(crate) workers: Option<usize>,
    #[command(flatten)]
    pub(crate) threads: Threads,
    /// Seed of the hash tables [default: drawn at random]
    #[arg(long, value_name = "N", help_heading = "Arrangement")]
    pub(crate) seed: Option<u64>,
    /// Print the plan and exit
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
    /// Add a digest of the report and of every flow record, whatever their order
    #[arg(long, help_heading = "Output")]
    pub(crate) digest: bool,
    /// Write flow records, as json, csv, eve (Suricata), zeek (conn.log) or parquet; - is stdout, and the report then
    /// goes to stderr
    #[arg(long, value_name = "FORMAT:PATH", help_heading = "Output")]
    pub(crate) write: Vec<FileOutput>,
    /// Export flow records, to ipfix://HOST:PORT (UDP), ipfix+tcp://HOST:PORT,
    /// ipfix+tls://HOST:PORT, ipfix-file:PATH, netflow9://HOST:PORT, netflow5://HOST:PORT, or lines to
    /// json+tcp://HOST:PORT (also csv, eve; +tls)
    #[arg(long, value_name = "URL", help_heading = "Output")]
    pub(crate) export: Vec<Collector>,
    /// Authorities that may vouch for collectors with TLS, PEM [default: the system's]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub(crate) tls_ca: Option<PathBuf>,
    /// Our certificate for collectors with TLS, PEM
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "tls_key",
        help_heading = "Output")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The private key of our certificate, PEM
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "tls_cert",
        help_heading = "Output")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Observation domain of what is exported (NetFlow v9: source; v5: engine)
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Output")]
    pub(crate) observation_domain: u32,
    /// Templates are sent again after so much time or so many messages, over UDP
    #[arg(
        long,
        value_name = "TIME[,MESSAGES]",
        default_value = "600s,4096",
        value_parser = units::refresh,
        help_heading = "Output"
    )]
    pub(crate) template_refresh: Refresh,
    /// Progress on stderr, a line this often [default: a bar, on a terminal]
    #[arg(long, value_name = "TIME", value_parser = units::duration_ns, help_heading = "Output")]
    pub(crate) stats: Option<u64>,
    /// Answer Prometheus, or whoever else asks for http://ADDR/metrics, while it runs; a port alone is that of 127.0.0.1
    #[arg(long, value_name = "ADDR", value_parser = units::listening, help_heading = "Output")]
    pub(crate) metrics: Option<SocketAddr>,
    /// The terminal as a view of the run: rates, losses, load, intervals, scans
    #[arg(long, conflicts_with_all = ["read", "stats", "quiet"], help_heading = "Output")]
    pub(crate) tui: bool,
    /// Neither alerts nor progress on stderr
    #[arg(short, long, help_heading = "Output")]
    pub(crate) quiet: bool,
    /// Exit with 3 if anything was dropped, or ignored or forgotten for lack of resources
    #[arg(long, help_heading = "Output")]
    pub(crate) fail_on_drop: bool,
}

fn skeletons() -> String {
    let names = Skeleton::ALL.map(Skeleton::name).join(", ");
    format!("Arrangement of threads: {names} [default: from the free cores]")
}

#[derive(Args)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) output: Output,
}

/// What was given to a command that another program has now.
#[derive(Args)]
pub(crate) struct Moved {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    _words: Vec<OsString>,
}

impl Moved {
    /// Says which command it is now.
    pub(crate) fn to(&self, command: &str) -> anyhow::Error {
        Usage::of(format!("this is a command of another program now: {command}"))
    }
}
