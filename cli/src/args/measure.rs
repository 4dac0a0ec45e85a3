//! Flags of `ringtap measure` and `ringtap merge`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{ArgGroup, Args, ValueHint};
use ringtap_measure::run::Design;
use ringtap_measure::{CountBy, Kind, State, Weight};

use super::{Capture, Form, Output, Threads};
use crate::units;

const AFTER: &str = "\
Structures: cms, cms-cu (counters; no keys: heavy ones are found with --check only), cms-keys, sht, rs,
rs-modular (single IPv4 addresses), mv, mg, ss, exact. Shared: cms, sht, rs.
Exit codes: 0 success; 1 something could not be read or written; 2 usage; 3 packets were dropped, with
--fail-on-drop. Signals: INT, TERM stop reading and report.";

#[derive(Args)]
#[command(after_help = AFTER)]
#[command(group(ArgGroup::new("from").required(true).args(["read", "interface", "profile"])))]
pub(crate) struct MeasureArgs {
    /// Capture files (pcap, pcapng, also within gzip or zstd); - is standard input
    #[arg(short, long, value_name = "FILE", num_args = 1.., value_hint = ValueHint::FilePath,
        help_heading = "Source")]
    pub(crate) read: Vec<PathBuf>,
    /// Interface to listen to, until an interrupt or for --duration
    #[arg(short, long, value_name = "IFACE", help_heading = "Source")]
    pub(crate) interface: Vec<String>,
    /// Traffic of a named profile or a file, as 'ringtap generate' makes it, from memory
    #[arg(long, value_name = "NAME|FILE", help_heading = "Source")]
    pub(crate) profile: Option<String>,
    /// Packets a second that are offered, the first 2 M of the source again and again; what finds a queue full
    /// is dropped [default: as fast as they are taken]
    #[arg(long, value_name = "N", value_parser = units::count, conflicts_with = "interface",
        help_heading = "Source")]
    pub(crate) rate: Option<u64>,
    /// Packets in all that are offered; of a capture only with --rate [default: what the source has]
    #[arg(long, value_name = "N", value_parser = units::count, conflicts_with = "interface",
        help_heading = "Source")]
    pub(crate) packets: Option<u64>,
    /// Listen for so long
    #[arg(long, value_name = "TIME", value_parser = units::duration_ns, requires = "interface",
        help_heading = "Source")]
    pub(crate) duration: Option<u64>,
    /// How frames are taken: auto, af-packet, af-xdp or dpdk
    #[arg(
        long,
        value_name = "METHOD",
        default_value = "auto",
        hide_possible_values = true,
        help_heading = "Source"
    )]
    pub(crate) capture: Capture,

    /// What packets are counted by: five-tuple, source, destination, pair, prefix:N (of the source) or
    /// destination-prefix:N [default: five-tuple]
    #[arg(long, value_name = "KEY", help_heading = "Measurement")]
    pub(crate) key: Option<CountBy>,
    /// What a packet counts: packets (1) or octets (of its IP packet) [default: packets]
    #[arg(long, value_name = "WEIGHT", help_heading = "Measurement")]
    pub(crate) weight: Option<Weight>,
    /// The share of all from which on a key is heavy [default: 0.0001]
    #[arg(long, value_name = "SHARE", help_heading = "Measurement")]
    pub(crate) threshold: Option<f64>,
    /// What counts (see below) [default: mg]
    #[arg(long, value_name = "NAME", help_heading = "Measurement")]
    pub(crate) structure: Option<Kind>,
    /// Memory of one structure, of each IP version there is [default: 1M, of exact 256M]
    #[arg(long, value_name = "SIZE", value_parser = units::bytes, help_heading = "Measurement")]
    pub(crate) memory: Option<u64>,
    /// Find the exact answer, too, and say how near the structure came
    #[arg(long, help_heading = "Measurement")]
    pub(crate) check: bool,
    /// Estimate how many different keys there are
    #[arg(long, help_heading = "Measurement")]
    pub(crate) distinct: bool,

    /// How packets come to the workers: sync (a master waits for all), async (a master and a ring for each), rss (a
    /// queue for each) or sequential (one thread) [default: rss]
    #[arg(long, value_name = "NAME", help_heading = "Design")]
    pub(crate) design: Option<Design>,
    /// A structure of its own for each worker, merged at the end (separate), or one for all (shared)
    /// [default: separate]
    #[arg(long, value_name = "NAME", help_heading = "Design")]
    pub(crate) state: Option<State>,
    /// Queues that the packets are read through, by address pair [default: from the free cores]
    #[arg(long, value_name = "N", help_heading = "Design")]
    pub(crate) queues: Option<usize>,
    /// How many workers [default: from the free cores]
    #[arg(short, long, value_name = "N", help_heading = "Design")]
    pub(crate) workers: Option<usize>,
    #[command(flatten)]
    pub(crate) threads: Threads,
    /// Seed of the hash functions: the same on all machines whose measurements are merged
    /// [default: drawn at random]
    #[arg(long, value_name = "N", help_heading = "Design")]
    pub(crate) seed: Option<u64>,
    /// Try the designs on a sample of this traffic, and recommend one
    #[arg(long, conflicts_with_all = ["check", "write", "dry_run", "rate"], help_heading = "Design")]
    pub(crate) advise: bool,
    /// Print the plan and exit
    #[arg(long, help_heading = "Design")]
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
    /// Write what was counted: sketch:PATH for 'ringtap merge'; for Apache DataSketches apache:PATH (frequent
    /// items, of mg) and hll:PATH (distinct keys)
    #[arg(long, value_name = "FORM:PATH", help_heading = "Output")]
    pub(crate) write: Vec<SketchFile>,
    /// Exit with 3 if packets were dropped
    #[arg(long, help_heading = "Output")]
    pub(crate) fail_on_drop: bool,
}

/// `ringtap merge`.
#[derive(Args)]
pub(crate) struct MergeArgs {
    /// What 'ringtap measure --write sketch:PATH' wrote, of the same key, weight and structure
    #[arg(value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,
    /// The share of all from which on a key is heavy [default: that of the first file]
    #[arg(long, value_name = "SHARE")]
    pub(crate) threshold: Option<f64>,
    #[command(flatten)]
    pub(crate) output: Output,
    /// Write the merged measurement, as 'ringtap measure' does
    #[arg(long, value_name = "FORM:PATH")]
    pub(crate) write: Vec<SketchFile>,
}

/// `FORM:PATH`.
#[derive(Clone, Debug)]
pub(crate) struct SketchFile {
    pub(crate) form: SketchForm,
    pub(crate) path: PathBuf,
}

/// A form that a measurement can be written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SketchForm {
    Sketch,
    Apache,
    Hll,
}

impl FromStr for SketchFile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "write sketch:PATH, apache:PATH or hll:PATH".to_owned();
        let (form, path) =
            text.split_once(':').filter(|(_, path)| !path.is_empty()).ok_or_else(wrong)?;
        let form = match form {
            "sketch" => SketchForm::Sketch,
            "apache" => SketchForm::Apache,
            "hll" => SketchForm::Hll,
            _ => return Err(wrong()),
        };
        Ok(Self { form, path: path.into() })
    }
}
