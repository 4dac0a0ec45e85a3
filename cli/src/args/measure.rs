//! Flags of `ringtap measure` and `ringtap merge`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::NonEmptyStringValueParser;
use clap::{ArgGroup, Args, ValueEnum};
use ringtap_measure::run::Design;
use ringtap_measure::{CountBy, Kind, State, Weight};
use ringtap_monitor::TOP_MOST;

use super::{Capture, Inputs, Threads};
use crate::units;

/// The most workers of any design.
const WORKERS_MOST: usize = 512;

const AFTER: &str = "\
Structures: cms, cms-cu (counters without keys: heavy keys need --check), cms-keys, sht, rs,
rs-modular (single IPv4 addresses), mv, mg, ss, exact. With --state shared: cms, sht, rs.
Exit codes: 0 success; 1 reading or writing failed; 2 usage error; 3 packets or intervals were lost,
with --fail-on-drop; 130 interrupted before the end of the captures, or twice. Signals: INT and TERM stop reading and print the report.";

#[derive(Args)]
#[command(after_help = AFTER)]
#[command(group(ArgGroup::new("from").required(true).args(["read", "interface", "profile"])))]
pub(crate) struct MeasureArgs {
    #[command(flatten, next_help_heading = "Source")]
    pub(crate) inputs: Inputs,
    /// Capture on this interface, until an interrupt or for --duration
    #[arg(short, long, value_name = "IFACE", value_parser = NonEmptyStringValueParser::new(), help_heading = "Source")]
    pub(crate) interface: Vec<String>,
    /// Measure the traffic of a profile or a profile file, generated in memory as by 'ringtap
    /// generate'
    #[arg(long, value_name = "NAME|FILE", value_parser = NonEmptyStringValueParser::new(), conflicts_with = "duration",
        help_heading = "Source")]
    pub(crate) profile: Option<String>,
    /// Offer this many packets per second: the first 2 M of the source, repeated; a full queue
    /// drops them [default: as fast as they are handled]
    #[arg(long, value_name = "N", value_parser = units::positive_count, conflicts_with = "interface",
        help_heading = "Source")]
    pub(crate) rate: Option<u64>,
    /// Offer this many packets; for a capture only with --rate [default: all of the source]
    #[arg(long, value_name = "N", value_parser = units::positive_count, conflicts_with = "interface",
        help_heading = "Source")]
    pub(crate) packets: Option<u64>,
    /// Capture method: auto, af-packet, af-xdp or dpdk
    #[arg(
        long,
        value_name = "METHOD",
        default_value = "auto",
        hide_possible_values = true,
        conflicts_with_all = ["read", "profile"],
        help_heading = "Source"
    )]
    pub(crate) capture: Capture,

    /// Count by this key: five-tuple, source (src), destination (dst), pair, prefix:N (of the
    /// source) or destination-prefix:N [default: five-tuple]
    #[arg(long, value_name = "KEY", help_heading = "Measurement")]
    pub(crate) key: Option<CountBy>,
    /// Weight of a packet: packets (1) or octets (of its IP packet) [default: packets]
    #[arg(long, value_name = "WEIGHT", help_heading = "Measurement")]
    pub(crate) weight: Option<Weight>,
    /// List this many keys, those with the largest estimates [default: 10; all of them with
    /// --threshold]
    #[arg(long, value_name = "N", value_parser = units::number_in(0..=TOP_MOST), help_heading = "Measurement")]
    pub(crate) top: Option<usize>,
    /// List only keys with at least this share of the total [default: any key of the --top]
    #[arg(long, value_name = "SHARE", value_parser = units::share, help_heading = "Measurement")]
    pub(crate) threshold: Option<f64>,
    /// Measure each interval of this length in packet time by itself, and print it when it ends; the
    /// first begins at a multiple of the length since 1970 [default: the whole run]
    #[arg(long, value_name = "TIME", value_parser = units::positive_duration_ns,
        conflicts_with_all = ["profile", "rate", "packets", "advise", "write"], help_heading = "Measurement")]
    pub(crate) interval: Option<u64>,
    /// Use this structure (see below) [default: mg]
    #[arg(long, value_name = "NAME", help_heading = "Measurement")]
    pub(crate) structure: Option<Kind>,
    /// Memory of one structure, for each IP version and worker; with --interval there are up to
    /// three [default: 1M; for exact 256M, together at most a quarter of the machine's]
    #[arg(long, value_name = "SIZE", value_parser = units::positive_bytes, help_heading = "Measurement")]
    pub(crate) memory: Option<u64>,
    /// Also compute the exact answer, and report the structure's error
    #[arg(long, help_heading = "Measurement")]
    pub(crate) check: bool,
    /// Estimate the number of distinct keys
    #[arg(long, help_heading = "Measurement")]
    pub(crate) distinct: bool,

    /// Distribute packets by sync (a master waits for all workers), async (a master and a ring per
    /// worker), rss (a queue per worker) or sequential (one thread) [default: rss]
    #[arg(long, value_name = "NAME", help_heading = "Design")]
    pub(crate) design: Option<Design>,
    /// Use one structure per worker, merged at the end (separate), or one for all (shared)
    /// [default: separate]
    #[arg(long, value_name = "NAME", help_heading = "Design")]
    pub(crate) state: Option<State>,
    /// Use this many workers [default: by the number of free cores]
    #[arg(short, long, value_name = "N", value_parser = units::number_in(1..=WORKERS_MOST), help_heading = "Design")]
    pub(crate) workers: Option<usize>,
    #[command(flatten, next_help_heading = "Design")]
    pub(crate) threads: Threads,
    /// Seed of the hash functions; use the same one on all machines whose measurements are merged
    /// [default: random]
    #[arg(long, value_name = "N", value_parser = units::number_in(0..=u64::MAX), help_heading = "Design")]
    pub(crate) seed: Option<u64>,
    /// Measure the designs on a sample of this traffic and recommend one
    #[arg(long, conflicts_with_all = ["check", "write", "dry_run", "rate"], help_heading = "Design")]
    pub(crate) advise: bool,

    /// Print the report as text, json or csv (the keys); with --interval json is a line and csv are
    /// rows for each interval
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "text",
        hide_possible_values = true,
        help_heading = "Output"
    )]
    pub(crate) report: MeasureForm,
    /// Write the measurement: sketch:PATH for 'ringtap merge'; for Apache DataSketches, apache:PATH
    /// (frequent items; needs mg) and hll:PATH (distinct keys)
    #[arg(long, value_name = "FORMAT:PATH", help_heading = "Output")]
    pub(crate) write: Vec<SketchFile>,
    /// Replace files that exist [default: an error; on interfaces the next free name, as in
    /// heavy.1.sketch]
    #[arg(long, help_heading = "Output")]
    pub(crate) force: bool,
    /// Exit with 3 if packets were dropped, or intervals not printed
    #[arg(long, help_heading = "Output")]
    pub(crate) fail_on_drop: bool,
}

/// How a measurement is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MeasureForm {
    /// For people.
    Text,
    /// For programs: a document, or a line for each interval.
    Json,
    /// The keys alone.
    Csv,
}

/// An output of a measurement, `FORMAT:PATH`.
#[derive(Clone, Debug)]
pub(crate) struct SketchFile {
    pub(crate) form: SketchForm,
    pub(crate) path: PathBuf,
}

/// The form of a written measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SketchForm {
    Sketch,
    Apache,
    Hll,
}

impl FromStr for SketchFile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("invalid output {text:?}: use sketch:PATH, apache:PATH or hll:PATH");
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
