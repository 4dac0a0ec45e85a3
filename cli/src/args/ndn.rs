//! Flags of `ringtap ndn`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Subcommand, ValueEnum, ValueHint};
use ringtap_ndn::packets::signature::SignatureType;
use ringtap_ndn::packets::{NameBuf, UDP_PORT};
use ringtap_traffic::Popularity;

use super::Output;
use crate::units;

const AFTER: &str = "\
URLs: udp://HOST[:PORT] (default port 6363), unix:PATH. Names: /text/of/names, with %41 for other
bytes. Exit codes: 0 success; 1 no Data arrived, or failure; 2 usage error.
Signals: INT and TERM end the run and print the report.";

#[derive(Args)]
#[command(after_help = AFTER)]
pub(crate) struct NdnArgs {
    #[command(subcommand)]
    pub(crate) action: NdnAction,
}

#[derive(Subcommand)]
pub(crate) enum NdnAction {
    /// Send Interests for NAME/ping/NUMBER and print the time of each answer
    Ping(PingArgs),
    /// Answer each Interest under PREFIX with a Data of the same name
    Server(ServerArgs),
    /// Send many Interests and report answers, losses and latency
    Load(LoadArgs),
    /// Create keys for signed commands
    Key(KeyArgs),
}

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

/// The key of commands.
#[derive(Args)]
pub(crate) struct SigningArgs {
    /// Sign commands with this private key or secret; its type is that of the file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) key: Option<PathBuf>,
    /// Name of the key in signatures, by which the forwarder finds its [[anchor]]
    #[arg(long, value_name = "NAME", value_parser = key_name, requires = "key")]
    pub(crate) key_name: Option<NameBuf>,
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

fn key_name(text: &str) -> Result<NameBuf, String> {
    if text.is_empty() {
        return Err("the name of the key is empty: use one as /owner/KEY/1".into());
    }
    text.parse().map_err(|error| format!("{error}"))
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

/// The address of a forwarder, a server or a listening socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Url {
    /// Host and port.
    Udp(String, u16),
    Unix(PathBuf),
}

impl FromStr for Url {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!("invalid forwarder address {text:?}: use udp://HOST:{UDP_PORT} or unix:PATH")
        };
        if let Some(path) = text.strip_prefix("unix:") {
            // Also accepts the URL form unix:///run/nfd.sock.
            let path = path.strip_prefix("//").unwrap_or(path);
            return if path.is_empty() { Err(wrong()) } else { Ok(Self::Unix(path.into())) };
        }
        let address = text.strip_prefix("udp://").ok_or_else(wrong)?;
        let (host, port) = match address.rsplit_once(':') {
            // A colon within brackets belongs to IPv6.
            Some((host, port)) if !port.ends_with(']') => {
                (host, port.parse().ok().filter(|&port| port > 0).ok_or_else(wrong)?)
            }
            _ => (address, UDP_PORT),
        };
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        if host.is_empty() { Err(wrong()) } else { Ok(Self::Udp(host.into(), port)) }
    }
}

impl std::fmt::Display for Url {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Udp(host, port) if host.contains(':') => write!(f, "udp://[{host}]:{port}"),
            Self::Udp(host, port) => write!(f, "udp://{host}:{port}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_parsed_and_formatted() {
        for (text, shown) in [
            ("udp://127.0.0.1", "udp://127.0.0.1:6363"),
            ("udp://host.example:7", "udp://host.example:7"),
            ("udp://[::1]:7", "udp://[::1]:7"),
            ("udp://[::1]", "udp://[::1]:6363"),
            ("unix:/run/f.sock", "unix:/run/f.sock"),
            ("unix:///run/f.sock", "unix:/run/f.sock"),
        ] {
            assert_eq!(text.parse::<Url>().unwrap().to_string(), shown);
        }
        for wrong in ["", "udp://", "udp://:7", "udp://h:0", "udp://h:x", "unix:", "tcp://h:1", "h"]
        {
            assert!(wrong.parse::<Url>().unwrap_err().contains("unix:PATH"), "{wrong}");
        }
    }
}
