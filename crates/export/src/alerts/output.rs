//! Where alerts go, as given by the user.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::file::FileTarget;
use super::packets::Packets;
use super::program::Program;
use super::syslog::Syslog;
use super::url::Url;
use super::webhook::Webhook;
use super::{ALERT_BYTES, AlertSender, AlertSink, NoticeEncoder, Target};
use crate::launch::{Launch, Ready, Started};
use crate::place::Place;
use crate::settings::Settings;
use crate::shared::WaitPolicy;
use crate::summary::Items;
use crate::transports::{self, Route, Transport};

/// The socket of the local syslog daemon.
const DEV_LOG: &str = "/dev/log";

/// Ports of syslog over UDP (RFC 5426) and over TLS (RFC 5425). Over TCP there is no assigned one (RFC 6587); 514 is usual.
const SYSLOG_PORT: u16 = 514;
const SYSLOG_TLS_PORT: u16 = 6514;

/// An output for alerts.
///
/// ```
/// use ringtap_export::AlertOutput;
///
/// let output: AlertOutput = "https://hooks.example:8443/ringtap".parse()?;
/// assert!(output.to_string().starts_with("https://hooks.example:8443/…"), "paths may be secret");
/// # Ok::<(), ringtap_export::InvalidAlertOutput>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlertOutput {
    /// As shown; without the path of a URL, which may be secret.
    name: String,
    to: To,
}

/// Where alerts go.
#[derive(Clone, Debug, PartialEq, Eq)]
enum To {
    /// JSON lines; `-` is standard output.
    File(PathBuf),
    /// A syslog receiver.
    Syslog(Route),
    /// An HTTP server.
    Webhook(Url),
    /// A program that is run for each alert.
    Program(PathBuf),
    /// A folder for files with the packets of each alert.
    Packets(PathBuf),
}

/// An invalid output for alerts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidAlertOutput {
    /// The scheme is missing or unknown.
    #[error(
        "unknown place for alerts {0:?}: use stderr, json:PATH, syslog:HOST, syslog: (this host), syslog+tcp://HOST, \
         syslog+tls://HOST, http://…, https://…, exec:PROGRAM or packets:FOLDER"
    )]
    Scheme(String),
    /// The part behind the scheme is invalid.
    #[error("invalid place for alerts {text:?}: use {example}")]
    Place {
        /// As given.
        text: String,
        /// A valid one.
        example: &'static str,
    },
    /// Not built in.
    #[error("this program was built without the feature tls, so alerts are not sent by TLS")]
    NotBuilt,
}

impl AlertOutput {
    /// JSON lines in a file.
    pub fn to_file(path: PathBuf) -> Self {
        Self { name: format!("json:{}", path.display()), to: To::File(path) }
    }

    /// The path, if it is a file; `-` is standard output.
    pub fn path(&self) -> Option<&Path> {
        match &self.to {
            To::File(path) => Some(path),
            _ => None,
        }
    }

    /// Whether both are the same place, however it is written.
    pub fn has_place_of(&self, other: &Self) -> bool {
        self.to == other.to
    }

    /// The program, if it is one.
    pub fn program(&self) -> Option<&Path> {
        match &self.to {
            To::Program(path) => Some(path),
            _ => None,
        }
    }

    /// The folder, if it gets packets.
    pub fn packets(&self) -> Option<&Path> {
        match &self.to {
            To::Packets(folder) => Some(folder),
            _ => None,
        }
    }
}

/// A receiver of syslog by a transport; `None` if the transport has no such address.
fn syslog(transport: &'static Transport, place: &str) -> Option<To> {
    let port = if transport.is_encrypted { SYSLOG_TLS_PORT } else { SYSLOG_PORT };
    Route::new(transport, place, Some(port)).map(To::Syslog)
}

impl FromStr for AlertOutput {
    type Err = InvalidAlertOutput;

    fn from_str(text: &str) -> Result<Self, InvalidAlertOutput> {
        let unknown = || InvalidAlertOutput::Scheme(text.to_owned());
        let invalid = |example| InvalidAlertOutput::Place { text: text.to_owned(), example };
        let (scheme, rest) = text.split_once(':').ok_or_else(unknown)?;
        let is_encrypted = scheme == "https";
        if is_encrypted && cfg!(not(feature = "tls")) {
            return Err(InvalidAlertOutput::NotBuilt);
        }
        let mut name = text.to_owned();
        let to = match scheme {
            "json" if rest.is_empty() => return Err(invalid("json:PATH, as in json:alerts.json")),
            "json" => To::File(rest.into()),
            "exec" if rest.is_empty() => {
                return Err(invalid("exec:PROGRAM, as in exec:/usr/local/bin/notify"));
            }
            "exec" => To::Program(rest.into()),
            "packets" if rest.is_empty() => {
                return Err(invalid("packets:FOLDER, as in packets:/var/lib/ringtap/packets"));
            }
            "packets" => To::Packets(rest.into()),
            "syslog" if rest.is_empty() => {
                syslog(&transports::LOCAL, DEV_LOG).ok_or_else(unknown)?
            }
            "syslog" if rest.starts_with('/') && !rest.starts_with("//") => {
                syslog(&transports::LOCAL, rest).ok_or_else(unknown)?
            }
            "syslog" => {
                let example = "syslog:HOST or syslog:HOST:PORT, as in syslog:[2001:db8::1]:514";
                let to = syslog(&transports::UDP, rest.strip_prefix("//").unwrap_or(rest));
                to.ok_or_else(|| invalid(example))?
            }
            "http" | "https" => {
                let url = rest.strip_prefix("//").and_then(|rest| Url::parse(is_encrypted, rest));
                let example =
                    "http://HOST:PORT/PATH or https://HOST/PATH, without a user or spaces";
                let url = url.ok_or_else(|| invalid(example))?;
                name = url.name();
                To::Webhook(url)
            }
            _ => {
                let transport = scheme.strip_prefix("syslog+").and_then(transports::named);
                // Datagrams have names of their own.
                let transport = transport.filter(|one| one.is_stream).ok_or_else(unknown)?;
                if !transport.is_built {
                    return Err(InvalidAlertOutput::NotBuilt);
                }
                let to = rest.strip_prefix("//").and_then(|rest| syslog(transport, rest));
                to.ok_or_else(|| invalid("syslog+tcp://HOST:PORT or syslog+tls://HOST:PORT"))?
            }
        };
        Ok(Self { name, to })
    }
}

impl fmt::Display for AlertOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.name)
    }
}

impl Place for AlertOutput {
    fn name(&self) -> String {
        format!("alerts to {self}")
    }

    fn path(&self) -> Option<&Path> {
        Self::path(self)
    }

    fn is_encrypted(&self) -> bool {
        match &self.to {
            To::Webhook(url) => url.is_encrypted,
            To::Syslog(route) => route.transport.is_encrypted,
            To::File(_) | To::Program(_) | To::Packets(_) => false,
        }
    }

    fn fixed_bytes(&self) -> u64 {
        ALERT_BYTES
    }

    fn items(&self) -> Items {
        Items::Alerts
    }

    fn prepare(&self, settings: &Settings) -> io::Result<Ready> {
        Ok(match &self.to {
            To::Syslog(route) => ready(Syslog::new(route, &settings.tls)?),
            To::Webhook(url) => ready(Webhook::new(url, &settings.tls)?),
            To::File(path) => {
                let path = path.clone();
                Box::new(move |launch| {
                    let (store, wait_policy) = launch.store(&path)?;
                    let is_other = path.metadata().is_ok_and(|data| !data.is_file());
                    let wait_policy = match store.may_abandon() || is_other {
                        true => WaitPolicy::Collector,
                        false => wait_policy,
                    };
                    let every_ns = launch.file_period(wait_policy);
                    start(FileTarget::new(store, every_ns), wait_policy, launch)
                })
            }
            To::Program(_) => Box::new(|launch| {
                let missing = || io::Error::other("alerts cannot run programs here");
                let stream = launch.programs.next().ok_or_else(missing)?;
                start(Program::new(stream)?, WaitPolicy::Collector, launch)
            }),
            To::Packets(_) => Box::new(|launch| {
                let missing = || io::Error::other("packets of alerts cannot be written here");
                let writer = launch.packets.next().ok_or_else(missing)?;
                start(Packets::new(writer), WaitPolicy::File, launch)
            }),
        })
    }
}

/// The start of a target that needs nothing more.
fn ready(target: impl Target + 'static) -> Ready {
    Box::new(|launch| start(target, WaitPolicy::Collector, launch))
}

fn start(
    target: impl Target + 'static,
    wait_policy: WaitPolicy,
    launch: &mut Launch<'_>,
) -> io::Result<Started> {
    let (sender, started) = start_lines(target, wait_policy, Items::Alerts, launch)?;
    launch.sinks.alerts.push((launch.number, sender));
    Ok(started)
}

/// Starts the writer of a target; returns the end that sends to it.
pub(crate) fn start_lines(
    target: impl Target + 'static,
    wait_policy: WaitPolicy,
    items: Items,
    launch: &Launch<'_>,
) -> io::Result<(AlertSender, Started)> {
    let shared = launch.shared(wait_policy, items);
    let sink = AlertSink::new(Box::new(target));
    let (own, started) = launch.single(&shared, AlertSender::ROOM, NoticeEncoder, sink)?;
    Ok((AlertSender::new(Box::new(own), shared), started))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transports::Address;

    #[test]
    fn a_place_has_a_scheme() {
        let to = |transport, host: &str, port| {
            let address = Address { host: host.into(), port };
            To::Syslog(Route { transport: transports::named(transport).unwrap(), address })
        };
        let (udp, local) = (|host, port| to("udp", host, port), |path| to("local", path, 0));
        for (text, place) in [
            ("json:a:b", To::File("a:b".into())),
            ("json:-", To::File("-".into())),
            ("exec:./notify", To::Program("./notify".into())),
            ("packets:a/b", To::Packets("a/b".into())),
            ("syslog:", local("/dev/log")),
            ("syslog:/run/log", local("/run/log")),
            ("syslog:logs.example", udp("logs.example", 514)),
            ("syslog://[::1]:1514", udp("::1", 1514)),
            ("syslog+tcp://h:1", to("tcp", "h", 1)),
        ] {
            let output: AlertOutput = text.parse().unwrap();
            assert_eq!((&output.to, output.to_string()), (&place, text.into()));
        }
    }

    #[test]
    fn a_place_may_be_written_in_several_ways() {
        let output = |text: &str| text.parse::<AlertOutput>().unwrap();
        for (one, other, same) in [
            ("syslog:", "syslog:/dev/log", true),
            ("syslog:h", "syslog://h:514", true),
            ("http://h", "http://h:80/", true),
            ("syslog:h", "syslog+tcp://h", false),
            ("http://h/a", "http://h/b", false),
        ] {
            assert_eq!(output(one).has_place_of(&output(other)), same, "{one} {other}");
        }
    }

    #[test]
    fn the_path_of_a_url_is_not_shown() {
        let url = |text: &str| -> (Url, String) {
            let output: AlertOutput = text.parse().unwrap();
            let To::Webhook(url) = &output.to else { panic!("{text}") };
            (url.clone(), output.to_string())
        };
        let (plain, name) = url("http://h");
        assert_eq!((plain.port, &plain.target[..], &name[..]), (80, "/", "http://h/"));
        let (own, name) = url("http://[::1]:8080/T0/secret?x=1#part");
        assert_eq!((own.port, &own.target[..]), (8080, "/T0/secret?x=1"));
        assert_eq!(own.authority(), "[::1]:8080");
        assert!(name.starts_with("http://[::1]:8080/…") && !name.contains("secret"), "{name}");
        assert_ne!(url("http://h/a").1, url("http://h/b").1);
        assert_eq!(url("http://h?x").0.target, "/?x");
    }

    #[test]
    fn invalid_places_are_errors_with_advice() {
        for (text, advice) in [
            ("", "use stderr, json:PATH"),
            ("stdout", "exec:PROGRAM"),
            ("csv:a", "json:PATH"),
            ("json:", "json:alerts.json"),
            ("exec:", "exec:PROGRAM"),
            ("packets:", "packets:FOLDER"),
            ("syslog:h:port", "syslog:HOST:PORT"),
            ("syslog+tcp:h", "syslog+tcp://HOST:PORT"),
            ("syslog+udp://h", "use stderr"),
            ("syslog+local:///dev/log", "use stderr"),
            ("http:h", "http://HOST:PORT/PATH"),
            ("http://", "http://HOST:PORT/PATH"),
            ("http://user@h/", "without a user"),
            ("http://h/a b", "spaces"),
            ("http://h/\r\nX: y", "spaces"),
        ] {
            let error = text.parse::<AlertOutput>().unwrap_err().to_string();
            assert!(error.contains(advice), "{text}: {error}");
        }
    }
}
