//! Flags of the tools.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};
use ringtap_ndn::packets::NameBuf;
use ringtap_ndn::packets::signature::SignatureType;
use ringtap_traffic::Popularity;

use super::{SigningArgs, Url};
use ringtap_terminal::{Output, units};

const AFTER: &str = "\
URLs: udp://HOST[:PORT] (default port 6363), unix:PATH. Names: /text/of/names, with %41 for other
bytes. Exit codes: 0 success; 1 no Data arrived, or failure; 2 usage error.
Signals: INT and TERM end the run and print the report.";

#[derive(Args)]
#[command(after_help = AFTER)]
pub(crate) struct PingArgs {
    /// Name to ping; /ping/NUMBER is appended
    pub(crate) name: NameBuf,
    /// Send to this forwarder or server
    #[arg(long, value_name = "URL", default_value = "udp://127.0.0.1:6363")]
    pub(crate) to: Url,
    /// Send this many Interests [default: until an interrupt]
    #[arg(short, long, value_name = "N", value_parser = units::positive_count)]
    pub(crate) count: Option<u64>,
    /// Time between Interests
    #[arg(short, long, value_name = "TIME", default_value = "1s", value_parser = units::positive_duration_ns)]
    pub(crate) interval: u64,
    /// Lifetime of the Interests; later answers count as lost
    #[arg(short = 'W', long, value_name = "TIME", default_value = "4s", value_parser = units::positive_duration_ns)]
    pub(crate) timeout: u64,
    /// Do not print a line for each answer
    #[arg(short, long)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Args)]
#[command(after_help = AFTER)]
pub(crate) struct ServerArgs {
    /// Prefix of the names to answer
    pub(crate) prefix: NameBuf,
    /// Listen for Interests: udp://ADDRESS or udp://ADDRESS:PORT [default: udp://127.0.0.1:6363]
    #[arg(long, value_name = "URL", conflicts_with = "to")]
    pub(crate) listen: Option<Url>,
    /// Receive Interests from this forwarder; with unix:PATH, register the prefix there
    #[arg(long, value_name = "URL")]
    pub(crate) to: Option<Url>,
    /// Also register the prefix over UDP (at /localhop/nfd), if the forwarder allows it
    #[arg(long, requires = "to", conflicts_with = "listen")]
    pub(crate) register: bool,
    #[command(flatten)]
    pub(crate) signing: SigningArgs,
    /// Bytes of content in each Data
    #[arg(long, value_name = "SIZE", default_value = "1000", value_parser = units::bytes)]
    pub(crate) payload: u64,
    /// Freshness period of each Data
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = units::duration_ns)]
    pub(crate) freshness: u64,
    /// Stop after this number of answers
    #[arg(short, long, value_name = "N", value_parser = units::positive_count)]
    pub(crate) count: Option<u64>,
    /// Stop after this time
    #[arg(long, value_name = "TIME", value_parser = units::positive_duration_ns)]
    pub(crate) duration: Option<u64>,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Args)]
#[command(after_help = AFTER)]
pub(crate) struct LoadArgs {
    /// Prefix of the names; a number is appended
    pub(crate) prefix: NameBuf,
    /// Send to this forwarder or server
    #[arg(long, value_name = "URL", default_value = "udp://127.0.0.1:6363")]
    pub(crate) to: Url,
    /// Distribution of the names: unique (each once), uniform, zipf:S or one-hot (a single name)
    #[arg(long, value_name = "CHOICE", default_value = "unique", value_parser = names)]
    pub(crate) names: Names,
    /// Number of names to choose from; ignored with unique
    #[arg(long, value_name = "N", default_value = "1M", value_parser = units::positive_count)]
    pub(crate) population: u64,
    /// Keep at most this many Interests in flight [default: 64; with --rate 65536]
    #[arg(short, long, value_name = "N", value_parser = units::index_count)]
    pub(crate) window: Option<usize>,
    /// Send this many Interests per second [default: as the window allows]
    #[arg(long, value_name = "N", value_parser = units::positive_count)]
    pub(crate) rate: Option<u64>,
    /// Stop after this number of Interests
    #[arg(short, long, value_name = "N", value_parser = units::positive_count)]
    pub(crate) count: Option<u64>,
    /// Stop after this time [default: 10s, unless --count is given]
    #[arg(long, value_name = "TIME", value_parser = units::positive_duration_ns)]
    pub(crate) duration: Option<u64>,
    /// Lifetime of the Interests; later answers count as lost
    #[arg(short = 'W', long, value_name = "TIME", default_value = "4s", value_parser = units::positive_duration_ns)]
    pub(crate) timeout: u64,
    /// Set MustBeFresh in the Interests
    #[arg(long)]
    pub(crate) must_be_fresh: bool,
    /// Seed of the names
    #[arg(long, value_name = "N", value_parser = units::number_in(0..=u64::MAX), default_value_t = 1)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Args)]
pub(crate) struct KeyArgs {
    #[command(subcommand)]
    pub(crate) action: KeyAction,
}

#[derive(Subcommand)]
pub(crate) enum KeyAction {
    /// Write a new key to PREFIX.key and its certificate to PREFIX.cert; print its [[anchor]]
    Generate(GenerateKeyArgs),
}

#[derive(Args)]
pub(crate) struct GenerateKeyArgs {
    /// Name of the owner, to which KEY and a random component are appended, or of the key
    pub(crate) name: NameBuf,
    /// Type of the key
    #[arg(long = "type", value_name = "TYPE", default_value = "ed25519")]
    pub(crate) kind: KeyType,
    /// Path of the files, without .key and .cert
    #[arg(long, value_name = "PREFIX", value_hint = ValueHint::FilePath)]
    pub(crate) out: PathBuf,
}

/// The type of a new key.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum KeyType {
    Ed25519,
    Ecdsa,
    Hmac,
}

impl KeyType {
    pub(crate) fn signature_type(self) -> SignatureType {
        match self {
            Self::Ed25519 => SignatureType::Ed25519,
            Self::Ecdsa => SignatureType::Ecdsa,
            Self::Hmac => SignatureType::Hmac,
        }
    }
}

/// The distribution of names.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Names {
    /// Each name once, in order of its number.
    Unique,
    /// Random names.
    Drawn(Popularity),
}

fn names(text: &str) -> Result<Names, String> {
    match text {
        "unique" => Ok(Names::Unique),
        _ => text.parse().map(Names::Drawn).map_err(|_| {
            format!(
                "unknown distribution of names {text:?}: use unique, uniform, zipf:S or one-hot"
            )
        }),
    }
}
