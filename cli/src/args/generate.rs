//! Flags of `ringtap generate`.

use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{ArgGroup, Args, ValueEnum, ValueHint};

use super::Form;
use crate::generate::{Mac, Rate};
use crate::units;

const AFTER: &str = "\
Rates: 250k or 1M (packets per second); 100Mbit, 1Gbit (bits per second of the frames, without frame
check sequence, preamble and gap); recorded, 2x, 0.5x (by the timestamps of the frames, scaled).
Exit codes: 0 success; 1 reading, writing or sending failed; 2 usage error; 130 interrupted before the end of a
file, or twice. Signals: INT and TERM stop sending and print the report; an incomplete file is
removed.";

#[derive(Args)]
#[command(after_help = AFTER)]
#[command(group(ArgGroup::new("to").required(true).args(["write", "interface"])))]
pub(crate) struct GenerateArgs {
    /// Write a capture file; - is stdout
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Destination")]
    pub(crate) write: Option<PathBuf>,
    /// Replace files that exist
    #[arg(long, help_heading = "Destination")]
    pub(crate) force: bool,
    /// Send on this interface
    #[arg(short, long, value_name = "IFACE", value_parser = NonEmptyStringValueParser::new(), help_heading = "Destination")]
    pub(crate) interface: Vec<String>,
    /// Send method: af-packet, af-xdp (one queue) or live (the kernel copies the first frame;
    /// fastest) [default: af-packet]
    #[arg(long, value_name = "METHOD", hide_possible_values = true, help_heading = "Destination")]
    pub(crate) method: Option<SendMethod>,
    /// Send on this hardware queue with af-xdp [default: 0]
    #[arg(long, value_name = "N", value_parser = units::number_in(0..=u32::MAX), help_heading = "Destination")]
    pub(crate) queue: Option<u32>,
    /// Send at this rate: packets per second, bits per second or by timestamps (see below) [default:
    /// as fast as possible]. With -w: packets per second of packet time [default: the profile's].
    /// Packets per second also set the timestamps of sent frames, so that -i and -w make the same
    /// frames
    #[arg(long, value_name = "RATE", help_heading = "Destination")]
    pub(crate) rate: Option<Rate>,

    /// Generate a named profile (w1, w2, w3, mix, scans, steady, flood, applications) or the profile in a TOML or
    /// JSON file [default: mix]
    #[arg(long, value_name = "NAME|FILE", value_parser = NonEmptyStringValueParser::new(), help_heading = "Traffic")]
    pub(crate) profile: Option<String>,
    /// Number of frames
    #[arg(long, value_name = "N", value_parser = units::positive_count, help_heading = "Traffic")]
    pub(crate) packets: Option<u64>,
    /// Background conversations; with --method live distinct flows, a power of two [default: 65536]
    #[arg(long, value_name = "N", value_parser = units::count, help_heading = "Traffic")]
    pub(crate) flows: Option<u64>,
    /// Exponent of the Zipf distribution of flow sizes, 0 (all equal) to 10
    #[arg(long, value_name = "S", value_parser = units::exponent, help_heading = "Traffic")]
    pub(crate) zipf: Option<f64>,
    /// Size on the wire of frames with data, in bytes: 64 to 9018, or imix
    #[arg(long, value_name = "N|imix", help_heading = "Traffic")]
    pub(crate) size: Option<ringtap_traffic::Size>,
    /// Seed of the generator; the same seed and profile give the same bytes
    #[arg(long, value_name = "N", value_parser = units::number_in(0..=u64::MAX), default_value_t = 1, help_heading = "Traffic")]
    pub(crate) seed: u64,
    /// Send the frames of capture files (pcap, pcapng; also compressed with gzip or zstd); - is
    /// stdin
    #[arg(short, long, value_name = "FILE", num_args = 1..,
        conflicts_with_all = ["profile", "zipf", "size", "seed", "truth"],
        value_hint = ValueHint::FilePath, help_heading = "Traffic")]
    pub(crate) read: Vec<PathBuf>,
    /// Send the captures this many times; 0 repeats without end [default: 1]
    #[arg(long = "loop", value_name = "N", requires = "read", conflicts_with = "profile", value_parser = units::count,
        help_heading = "Traffic")]
    pub(crate) rounds: Option<u64>,

    /// Set the source MAC address of all frames
    #[arg(long, value_name = "MAC", help_heading = "Frame changes")]
    pub(crate) src_mac: Option<Mac>,
    /// Set the destination MAC address of all frames
    #[arg(long, value_name = "MAC", help_heading = "Frame changes")]
    pub(crate) dst_mac: Option<Mac>,
    /// Write a number and the send time into the payload of each frame, for 'ringtap check' at the
    /// receiver
    #[arg(long, help_heading = "Frame changes")]
    pub(crate) stamp: bool,

    /// Write the ground truth of this traffic as JSON; - is stdout
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub(crate) truth: Option<PathBuf>,
    /// Print the report as text (on stderr) or json (on stdout) [default: text]
    #[arg(long, value_name = "FORMAT", hide_possible_values = true, help_heading = "Output")]
    pub(crate) report: Option<Form>,
}

/// A send method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SendMethod {
    AfPacket,
    AfXdp,
    Live,
}

impl SendMethod {
    /// The name in the flag.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::AfPacket => "af-packet",
            Self::AfXdp => "af-xdp",
            Self::Live => "live",
        }
    }
}
