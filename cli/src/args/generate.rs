//! Flags of `ringtap generate`.

use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum, ValueHint};

use super::Form;
use crate::generate::{Mac, Rate};
use crate::units;

const AFTER: &str = "\
Rates: 250k or 1M (packets a second); 100Mbit, 1Gbit (bits a second of the frames, without check
sequence, preamble and gap); recorded, 2x, 0.5x (by the times of the frames, so much faster).
Exit codes: 0 success; 1 something could not be read, written or sent; 2 usage; 130 interrupted
twice. Signals: INT, TERM stop sending and it reports; a file that is not complete is removed, which
is a failure.";

#[derive(Args)]
#[command(after_help = AFTER)]
#[command(group(ArgGroup::new("to").required(true).args(["write", "interface"])))]
pub(crate) struct GenerateArgs {
    /// Capture file to write; - is stdout
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Where to")]
    pub(crate) write: Option<PathBuf>,
    /// Interface to send by
    #[arg(short, long, value_name = "IFACE", help_heading = "Where to")]
    pub(crate) interface: Vec<String>,
    /// How to send: af-packet, af-xdp (one queue), or live (the kernel makes copies of the first
    /// frame; the fastest) [default: af-packet]
    #[arg(long, value_name = "HOW", hide_possible_values = true, help_heading = "Where to")]
    pub(crate) method: Option<SendMethod>,
    /// The hardware queue that af-xdp sends by [default: 0]
    #[arg(long, value_name = "N", help_heading = "Where to")]
    pub(crate) queue: Option<u32>,
    /// When frames leave: so many packets or bits a second, or by their times (see below)
    /// [default: as fast as it goes]. To a file: packets a second of packet time [default: by the
    /// profile]. Packets a second set both, so that the same flags make the same frames
    #[arg(long, value_name = "RATE", help_heading = "Where to")]
    pub(crate) rate: Option<Rate>,

    /// A named profile (w1, w2, w3, mix, scans, steady, flood) or a file, TOML or JSON
    /// [default: mix]
    #[arg(long, value_name = "NAME|FILE", help_heading = "Traffic")]
    pub(crate) profile: Option<String>,
    /// Frames in all
    #[arg(long, value_name = "N", value_parser = units::count, help_heading = "Traffic")]
    pub(crate) packets: Option<u64>,
    /// Background conversations; with --method live distinct flows, a power of two [default: 65536]
    #[arg(long, value_name = "N", value_parser = units::count, help_heading = "Traffic")]
    pub(crate) flows: Option<u64>,
    /// Exponent of the Zipf law of the flows' sizes, 0 (all equal) to 10
    #[arg(long, value_name = "S", help_heading = "Traffic")]
    pub(crate) zipf: Option<f64>,
    /// Bytes of frames with data on the wire: 64 to 9018, or imix
    #[arg(long, value_name = "N|imix", help_heading = "Traffic")]
    pub(crate) size: Option<ringtap_traffic::Size>,
    /// The same seed and profile give the same bytes
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Traffic")]
    pub(crate) seed: u64,
    /// Send what these capture files hold instead (pcap, pcapng, also packed; - is standard input)
    #[arg(short, long, value_name = "FILE", num_args = 1..,
        conflicts_with_all = ["profile", "zipf", "size", "seed", "truth"],
        value_hint = ValueHint::FilePath, help_heading = "Traffic")]
    pub(crate) read: Vec<PathBuf>,
    /// Send the captures so many times; 0 is without end [default: 1]
    #[arg(long = "loop", value_name = "N", requires = "read", value_parser = units::count,
        help_heading = "Traffic")]
    pub(crate) rounds: Option<u64>,

    /// Source MAC address of all frames
    #[arg(long, value_name = "MAC", help_heading = "Changes")]
    pub(crate) src_mac: Option<Mac>,
    /// Destination MAC address of all frames
    #[arg(long, value_name = "MAC", help_heading = "Changes")]
    pub(crate) dst_mac: Option<Mac>,
    /// Number the frames and tell the time in their payloads, for 'ringtap check' at the other end
    #[arg(long, help_heading = "Changes")]
    pub(crate) stamp: bool,

    /// Write what is true of this traffic, as JSON; - is stdout
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub(crate) truth: Option<PathBuf>,
    /// The report of what was sent: text (on stderr) or json (on stdout) [default: text]
    #[arg(long, value_name = "FORM", hide_possible_values = true, help_heading = "Output")]
    pub(crate) report: Option<Form>,
}

/// A way of sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SendMethod {
    AfPacket,
    AfXdp,
    Live,
}

impl SendMethod {
    /// As the flag spells it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::AfPacket => "af-packet",
            Self::AfXdp => "af-xdp",
            Self::Live => "live",
        }
    }
}
