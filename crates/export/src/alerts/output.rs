//! Where alerts go, as given by the user.

use std::fmt;
use std::hash::Hasher;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::place::host_and_port;

/// The socket of the local syslog daemon.
const LOCAL: &str = "/dev/log";

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
    place: Place,
}

/// A place for alerts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// JSON lines; `-` is standard output.
    File(PathBuf),
    /// A syslog receiver.
    Syslog(SyslogPlace),
    /// An HTTP server.
    Webhook(Url),
    /// A program that is run for each alert.
    Program(PathBuf),
}

/// A syslog receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SyslogPlace {
    /// A local socket.
    Local(PathBuf),
    /// Datagrams.
    Udp(String, u16),
    /// A connection.
    Tcp(String, u16),
    /// An encrypted connection.
    Tls(String, u16),
}

/// A URL with the scheme http or https.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Url {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) is_encrypted: bool,
    /// Path and query; begins with `/`.
    pub(crate) target: String,
}

/// An invalid output for alerts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidAlertOutput {
    /// The scheme is missing or unknown.
    #[error(
        "unknown place for alerts {0:?}: use stderr, json:PATH, syslog:HOST, syslog: (this host), syslog+tcp://HOST, \
         syslog+tls://HOST, http://…, https://… or exec:PROGRAM"
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
    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    /// Returns true if its connections are encrypted.
    pub(crate) fn is_encrypted(&self) -> bool {
        match &self.place {
            Place::Webhook(url) => url.is_encrypted,
            Place::Syslog(place) => matches!(place, SyslogPlace::Tls(..)),
            Place::File(_) | Place::Program(_) => false,
        }
    }

    /// The path, if it is a file; `-` is standard output.
    pub fn path(&self) -> Option<&Path> {
        match &self.place {
            Place::File(path) => Some(path),
            _ => None,
        }
    }

    /// Whether both are the same place, however it is written.
    pub fn has_place_of(&self, other: &Self) -> bool {
        self.place == other.place
    }

    /// The program, if it is one.
    pub fn program(&self) -> Option<&Path> {
        match &self.place {
            Place::Program(path) => Some(path),
            _ => None,
        }
    }
}

impl Url {
    fn parse(is_encrypted: bool, rest: &str) -> Option<Self> {
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(end);
        let (host, port) = host_and_port(authority, Some(if is_encrypted { 443 } else { 80 }))?;
        // A fragment stays with the client (RFC 9110, section 7.1).
        let target = target.split('#').next().unwrap_or_default();
        let is_valid = |byte: u8| byte.is_ascii_graphic();
        let target = if target.starts_with('/') { target.into() } else { format!("/{target}") };
        target.bytes().all(is_valid).then_some(Self { host, port, is_encrypted, target })
    }

    /// The host, with the port if it is not the usual one; for names and the field `Host`.
    pub(crate) fn authority(&self) -> String {
        let host =
            if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        let usual = if self.is_encrypted { 443 } else { 80 };
        if self.port == usual { host } else { format!("{host}:{}", self.port) }
    }

    /// Without its path, which may be a secret; a few digits of a hash distinguish paths.
    fn name(&self) -> String {
        let scheme = if self.is_encrypted { "https" } else { "http" };
        let path = if self.target == "/" {
            String::new()
        } else {
            #[expect(deprecated, reason = "a hash that is equal in every build")]
            let mut hasher = std::hash::SipHasher::new();
            hasher.write(self.target.as_bytes());
            format!("…{:04x}", hasher.finish() & 0xffff)
        };
        format!("{scheme}://{}/{path}", self.authority())
    }
}

impl FromStr for AlertOutput {
    type Err = InvalidAlertOutput;

    fn from_str(text: &str) -> Result<Self, InvalidAlertOutput> {
        let unknown = || InvalidAlertOutput::Scheme(text.to_owned());
        let invalid = |example| InvalidAlertOutput::Place { text: text.to_owned(), example };
        let (scheme, rest) = text.split_once(':').ok_or_else(unknown)?;
        let is_encrypted = matches!(scheme, "https" | "syslog+tls");
        if is_encrypted && cfg!(not(feature = "tls")) {
            return Err(InvalidAlertOutput::NotBuilt);
        }
        let mut name = text.to_owned();
        let place = match scheme {
            "json" if rest.is_empty() => return Err(invalid("json:PATH, as in json:alerts.json")),
            "json" => Place::File(rest.into()),
            "exec" if rest.is_empty() => {
                return Err(invalid("exec:PROGRAM, as in exec:/usr/local/bin/notify"));
            }
            "exec" => Place::Program(rest.into()),
            "syslog" if rest.is_empty() => Place::Syslog(SyslogPlace::Local(LOCAL.into())),
            "syslog" if rest.starts_with('/') && !rest.starts_with("//") => {
                Place::Syslog(SyslogPlace::Local(rest.into()))
            }
            "syslog" => {
                let place = rest.strip_prefix("//").unwrap_or(rest);
                let example = "syslog:HOST or syslog:HOST:PORT, as in syslog:[2001:db8::1]:514";
                let place = host_and_port(place, Some(SYSLOG_PORT));
                let (host, port) = place.ok_or_else(|| invalid(example))?;
                Place::Syslog(SyslogPlace::Udp(host, port))
            }
            "syslog+tcp" | "syslog+tls" => {
                let default = if is_encrypted { SYSLOG_TLS_PORT } else { SYSLOG_PORT };
                let place =
                    rest.strip_prefix("//").and_then(|rest| host_and_port(rest, Some(default)));
                let example = "syslog+tcp://HOST:PORT or syslog+tls://HOST:PORT";
                let (host, port) = place.ok_or_else(|| invalid(example))?;
                Place::Syslog(match is_encrypted {
                    true => SyslogPlace::Tls(host, port),
                    false => SyslogPlace::Tcp(host, port),
                })
            }
            "http" | "https" => {
                let url = rest.strip_prefix("//").and_then(|rest| Url::parse(is_encrypted, rest));
                let example =
                    "http://HOST:PORT/PATH or https://HOST/PATH, without a user or spaces";
                let url = url.ok_or_else(|| invalid(example))?;
                name = url.name();
                Place::Webhook(url)
            }
            _ => return Err(unknown()),
        };
        Ok(Self { name, place })
    }
}

impl fmt::Display for AlertOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_a_scheme() {
        let udp = |host: &str, port| Place::Syslog(SyslogPlace::Udp(host.into(), port));
        let local = |path: &str| Place::Syslog(SyslogPlace::Local(path.into()));
        for (text, place) in [
            ("json:a:b", Place::File("a:b".into())),
            ("json:-", Place::File("-".into())),
            ("exec:./notify", Place::Program("./notify".into())),
            ("syslog:", local("/dev/log")),
            ("syslog:/run/log", local("/run/log")),
            ("syslog:logs.example", udp("logs.example", 514)),
            ("syslog://[::1]:1514", udp("::1", 1514)),
            ("syslog+tcp://h:1", Place::Syslog(SyslogPlace::Tcp("h".into(), 1))),
        ] {
            let output: AlertOutput = text.parse().unwrap();
            assert_eq!((output.place(), output.to_string()), (&place, text.into()));
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
            let Place::Webhook(url) = output.place() else { panic!("{text}") };
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
            ("syslog:h:port", "syslog:HOST:PORT"),
            ("syslog+tcp:h", "syslog+tcp://HOST:PORT"),
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
