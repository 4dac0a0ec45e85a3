//! Flags of `ringtap ndn`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Subcommand};
use ringtap_ndn::packets::{NameBuf, UDP_PORT};
use ringtap_traffic::Popularity;

use super::{Moved, Output};
use crate::units;

const AFTER: &str = "\
URLs: udp://HOST[:PORT] (port 6363 unless said), unix:PATH. Names: /text/of/names, %41 for other
bytes. Exit codes: 0 success; 1 nothing came back, or something failed; 2 usage.
Signals: INT, TERM end it and it reports.";

#[derive(Args)]
#[command(after_help = AFTER)]
pub(crate) struct NdnArgs {
    #[command(subcommand)]
    pub(crate) action: NdnAction,
}

#[derive(Subcommand)]
pub(crate) enum NdnAction {
    /// Asks for NAME/ping/1, NAME/ping/2, … and says how long the answers take
    Ping(PingArgs),
    /// Answers every Interest under PREFIX with a Data of its name
    Server(ServerArgs),
    /// Asks as fast as it may, and says what came back, and when
    Load(LoadArgs),
    /// It is ringtap-lab ndn
    #[command(hide = true, disable_help_flag = true)]
    Bench(Moved),
}

#[derive(Args)]
#[command(after_help = AFTER)]
pub(crate) struct PingArgs {
    /// What is asked for, without 'ping' and the number
    pub(crate) name: NameBuf,
    /// Who is asked: a forwarder or a server
    #[arg(long, value_name = "URL", default_value = "udp://127.0.0.1:6363")]
    pub(crate) to: Url,
    /// Interests to send [default: until an interrupt]
    #[arg(short, long, value_name = "N", value_parser = units::count)]
    pub(crate) count: Option<u64>,
    /// Time between two of them
    #[arg(short, long, value_name = "TIME", default_value = "1s", value_parser = units::duration_ns)]
    pub(crate) interval: u64,
    /// An answer that takes longer is lost; the Interests' lifetime
    #[arg(short = 'W', long, value_name = "TIME", default_value = "4s", value_parser = units::duration_ns)]
    pub(crate) timeout: u64,
    /// No line for each answer
    #[arg(short, long)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Args)]
#[command(after_help = AFTER)]
pub(crate) struct ServerArgs {
    /// The names that are answered begin with this
    pub(crate) prefix: NameBuf,
    /// Where Interests are awaited: udp://ADDRESS or udp://ADDRESS:PORT [default: udp://127.0.0.1:6363]
    #[arg(long, value_name = "URL", conflicts_with = "to")]
    pub(crate) listen: Option<Url>,
    /// The forwarder that sends them; with unix:PATH the prefix is registered there
    #[arg(long, value_name = "URL")]
    pub(crate) to: Option<Url>,
    /// Register the prefix also over UDP (at /localhop/nfd), where the forwarder allows it
    #[arg(long, requires = "to")]
    pub(crate) register: bool,
    /// Bytes of content in each Data
    #[arg(long, value_name = "SIZE", default_value = "1000", value_parser = units::bytes)]
    pub(crate) payload: u64,
    /// For how long a Data is fresh
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = units::duration_ns)]
    pub(crate) freshness: u64,
    /// End after so many answers
    #[arg(short, long, value_name = "N", value_parser = units::count)]
    pub(crate) count: Option<u64>,
    /// End after so long
    #[arg(long, value_name = "TIME", value_parser = units::duration_ns)]
    pub(crate) duration: Option<u64>,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Args)]
#[command(after_help = AFTER)]
pub(crate) struct LoadArgs {
    /// What is asked for begins with this, and ends with a number
    pub(crate) prefix: NameBuf,
    /// Who is asked: a forwarder or a server
    #[arg(long, value_name = "URL", default_value = "udp://127.0.0.1:6363")]
    pub(crate) to: Url,
    /// Which names: unique (each once), uniform, zipf:S or one-hot
    #[arg(long, value_name = "HOW", default_value = "unique", value_parser = names)]
    pub(crate) names: Names,
    /// How many names there are; of unique, no matter
    #[arg(long, value_name = "N", default_value = "1M", value_parser = units::count)]
    pub(crate) population: u64,
    /// Interests on their way at a time; with --rate, at the most [default: 64; with --rate 65536]
    #[arg(short, long, value_name = "N", value_parser = units::index_count)]
    pub(crate) window: Option<usize>,
    /// Interests a second, whatever comes back [default: as the window allows]
    #[arg(long, value_name = "N", value_parser = units::count)]
    pub(crate) rate: Option<u64>,
    /// End after so many Interests
    #[arg(short, long, value_name = "N", value_parser = units::count)]
    pub(crate) count: Option<u64>,
    /// End after so long [default: 10s, unless there is a count]
    #[arg(long, value_name = "TIME", value_parser = units::duration_ns)]
    pub(crate) duration: Option<u64>,
    /// An answer that takes longer is lost; the Interests' lifetime
    #[arg(short = 'W', long, value_name = "TIME", default_value = "4s", value_parser = units::duration_ns)]
    pub(crate) timeout: u64,
    /// Only what is fresh answers
    #[arg(long)]
    pub(crate) must_be_fresh: bool,
    /// Of the names drawn
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// Which names are asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Names {
    Unique,
    Drawn(Popularity),
}

fn names(text: &str) -> Result<Names, String> {
    match text {
        "unique" => Ok(Names::Unique),
        _ => text.parse().map(Names::Drawn).map_err(|_| {
            format!(
                "{text:?} is no way to choose names; there are unique, uniform, zipf:S, one-hot"
            )
        }),
    }
}

/// The other end of a link.
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
            format!("{text:?} is no way to a forwarder; write udp://HOST:{UDP_PORT} or unix:PATH")
        };
        if let Some(path) = text.strip_prefix("unix:") {
            // As in unix:///run/nfd.sock, which is a URL, too.
            let path = path.strip_prefix("//").unwrap_or(path);
            return if path.is_empty() { Err(wrong()) } else { Ok(Self::Unix(path.into())) };
        }
        let at = text.strip_prefix("udp://").ok_or_else(wrong)?;
        let (host, port) = match at.rsplit_once(':') {
            // A colon within brackets is IPv6's own.
            Some((host, port)) if !port.ends_with(']') => {
                (host, port.parse().ok().filter(|&port| port > 0).ok_or_else(wrong)?)
            }
            _ => (at, UDP_PORT),
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
    fn urls_are_read_and_shown() {
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
