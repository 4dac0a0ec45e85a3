//! A topic of Kafka, given as a URL: `kafka://BROKER[,BROKER…]/TOPIC[?NAME=VALUE[&…]]`.
//!
//! | parameter | value |
//! |---|---|
//! | `format` | `json` (default), `protobuf`, `state` |
//! | `compression` | `none` (default), `gzip`, `snappy` |
//! | `tls` | `true`, `false` (default) |
//! | `ca` | a PEM file with the trusted authorities |
//! | `sasl` | `plain`, `scram-sha-256`, `scram-sha-512` |
//! | `user`, `password-file` | the user, and a file with the password |
//!
//! A password is never part of the URL, because other users of the machine can read command lines.

use std::fmt;
use std::path::PathBuf;

use crate::transports::host_and_port;

/// The default port of brokers.
const PORT: u16 = 9092;

/// Most characters of a topic's name.
const NAME_MAX: usize = 249;

/// A topic, and how to connect to its brokers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KafkaTopic {
    /// As given.
    url: String,
    /// What its messages are.
    pub contents: Contents,
    /// `HOST:PORT` of the brokers that are asked for all others.
    pub brokers: Vec<String>,
    /// The name.
    pub name: String,
    /// How brokers compress messages.
    pub compression: Compression,
    /// True if connections are encrypted.
    pub tls: bool,
    /// A PEM file with the authorities that may sign the brokers' certificates.
    pub authorities: Option<PathBuf>,
    /// The login, if brokers require one.
    pub login: Option<Login>,
}

/// What the messages of a topic are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Contents {
    /// Flow records as JSON.
    #[default]
    Json,
    /// Protobuf messages with the fields of goflow2's `FlowMessage`.
    FlowMessages,
    /// States of the run.
    States,
}

/// The compression of a batch of messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// None.
    #[default]
    None,
    /// Gzip.
    Gzip,
    /// Snappy.
    Snappy,
}

/// A login by SASL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    /// The mechanism.
    pub mechanism: Mechanism,
    /// The user's name.
    pub user: String,
    /// A file with the password in its first line.
    pub password_file: PathBuf,
}

/// A mechanism of SASL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// RFC 4616: the password itself is sent.
    Plain,
    /// RFC 7677.
    ScramSha256,
    /// RFC 7677 with SHA-512.
    ScramSha512,
}

/// An invalid URL of a topic.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTopic {
    /// The broker or the topic is missing.
    #[error("use kafka://BROKER/TOPIC, as in kafka://broker.example:9092/flows?format=protobuf")]
    Incomplete,
    /// Not a host and a port.
    #[error("invalid broker {0:?}: use HOST or HOST:PORT, with commas between several")]
    Broker(String),
    /// Not a name of a topic.
    #[error(
        "invalid topic {0:?}: names have up to 249 letters, digits, dots, underscores and hyphens"
    )]
    Name(String),
    /// There is no such parameter.
    #[error("unknown parameter {0:?}: use format, compression, tls, ca, sasl, user, password-file")]
    Parameter(String),
    /// A parameter is given twice.
    #[error("{0} is given twice: omit one")]
    Twice(String),
    /// There is no such value.
    #[error("invalid {name}={value}: use {choices}")]
    Value {
        /// The parameter.
        name: &'static str,
        /// Its value.
        value: String,
        /// The valid values.
        choices: &'static str,
    },
    /// A password in the URL.
    #[error("other users can read a password in a URL: use password-file=FILE")]
    Password,
    /// A part of the login is missing.
    #[error("sasl=MECHANISM, user=NAME and password-file=FILE belong together")]
    Login,
    /// Authorities without TLS.
    #[error("ca=FILE needs tls=true")]
    NoTls,
    /// Not built in.
    #[error("this program was built without the feature {0}, so it does not support such URLs")]
    NotBuilt(&'static str),
}

const FORMATS: &[(&str, Contents)] =
    &[("json", Contents::Json), ("protobuf", Contents::FlowMessages), ("state", Contents::States)];
const COMPRESSIONS: &[(&str, Compression)] =
    &[("none", Compression::None), ("gzip", Compression::Gzip), ("snappy", Compression::Snappy)];
const SWITCH: &[(&str, bool)] = &[("true", true), ("false", false)];
const MECHANISMS: &[(&str, Mechanism)] = &[
    ("plain", Mechanism::Plain),
    ("scram-sha-256", Mechanism::ScramSha256),
    ("scram-sha-512", Mechanism::ScramSha512),
];

impl KafkaTopic {
    /// Reads the part of a URL after `kafka://`.
    pub(crate) fn parse(place: &str) -> Result<Self, InvalidTopic> {
        if cfg!(not(feature = "kafka")) {
            return Err(InvalidTopic::NotBuilt("kafka"));
        }
        let url = format!("kafka://{place}");
        let (place, query) = place.split_once('?').unwrap_or((place, ""));
        let (brokers, name) = place.split_once('/').ok_or(InvalidTopic::Incomplete)?;
        if brokers.is_empty() || name.is_empty() {
            return Err(InvalidTopic::Incomplete);
        }
        if !is_name(name) {
            return Err(InvalidTopic::Name(name.to_owned()));
        }
        let brokers = brokers.split(',').map(broker).collect::<Result<_, _>>()?;
        let parameters = Parameters::read(query)?;

        let tls = parameters.choice("tls", "true or false", SWITCH)?.unwrap_or(false);
        let authorities = parameters.text("ca").map(PathBuf::from);
        if tls && cfg!(not(feature = "tls")) {
            return Err(InvalidTopic::NotBuilt("tls"));
        }
        if authorities.is_some() && !tls {
            return Err(InvalidTopic::NoTls);
        }
        let mechanisms = "plain, scram-sha-256 or scram-sha-512";
        let mechanism = parameters.choice("sasl", mechanisms, MECHANISMS)?;
        let login = match (mechanism, parameters.text("user"), parameters.text("password-file")) {
            (None, None, None) => None,
            (Some(mechanism), Some(user), Some(file)) => {
                Some(Login { mechanism, user: user.to_owned(), password_file: file.into() })
            }
            _ => return Err(InvalidTopic::Login),
        };
        let compressions = "none, gzip or snappy";
        let compression = parameters.choice("compression", compressions, COMPRESSIONS)?;
        let compression = compression.unwrap_or_default();
        let contents = parameters.choice("format", "json, protobuf or state", FORMATS)?;
        let (contents, name) = (contents.unwrap_or_default(), name.to_owned());
        Ok(Self { url, contents, brokers, name, compression, tls, authorities, login })
    }
}

impl fmt::Display for KafkaTopic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.url)
    }
}

/// The broker as `HOST:PORT`.
fn broker(text: &str) -> Result<String, InvalidTopic> {
    let address = host_and_port(text, Some(PORT));
    let (host, port) = address.ok_or_else(|| InvalidTopic::Broker(text.to_owned()))?;
    Ok(if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") })
}

fn is_name(name: &str) -> bool {
    let is_valid = |letter: u8| letter.is_ascii_alphanumeric() || b"._-".contains(&letter);
    name.len() <= NAME_MAX && name != "." && name != ".." && name.bytes().all(is_valid)
}

/// Names and values after the question mark.
struct Parameters<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Parameters<'a> {
    const NAMES: [&'static str; 7] =
        ["format", "compression", "tls", "ca", "sasl", "user", "password-file"];

    fn read(query: &'a str) -> Result<Self, InvalidTopic> {
        let mut all: Vec<(&str, &str)> = Vec::new();
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            if name == "password" {
                return Err(InvalidTopic::Password);
            }
            if value.is_empty() || !Self::NAMES.contains(&name) {
                return Err(InvalidTopic::Parameter(parameter.to_owned()));
            }
            if all.iter().any(|(other, _)| *other == name) {
                return Err(InvalidTopic::Twice(name.to_owned()));
            }
            all.push((name, value));
        }
        Ok(Self(all))
    }

    fn text(&self, name: &str) -> Option<&'a str> {
        self.0.iter().find(|(other, _)| *other == name).map(|(_, value)| *value)
    }

    /// The choice that a parameter names, if it is given.
    fn choice<T: Copy>(
        &self,
        name: &'static str,
        choices: &'static str,
        values: &[(&str, T)],
    ) -> Result<Option<T>, InvalidTopic> {
        let Some(value) = self.text(name) else { return Ok(None) };
        let found = values.iter().find(|(known, _)| *known == value);
        let unknown = || InvalidTopic::Value { name, value: value.to_owned(), choices };
        found.map(|(_, choice)| Some(*choice)).ok_or_else(unknown)
    }
}

#[cfg(all(test, feature = "kafka"))]
mod tests {
    use super::*;

    fn topic(url: &str) -> KafkaTopic {
        KafkaTopic::parse(url).unwrap_or_else(|error| panic!("{url}: {error}"))
    }

    #[test]
    fn a_url_has_brokers_topic_and_format() {
        let plain = topic("broker.example/flows");
        assert_eq!(plain.contents, Contents::Json);
        assert_eq!(
            (&plain.brokers[..], plain.name.as_str()),
            (&["broker.example:9092".into()][..], "flows")
        );
        assert_eq!((plain.tls, &plain.login, plain.compression), (false, &None, Compression::None));

        let several = topic("a:1,[::1]:2,10.0.0.3/a.b_c-D?format=protobuf&compression=gzip");
        assert_eq!(several.contents, Contents::FlowMessages);
        assert_eq!(several.brokers, ["a:1", "[::1]:2", "10.0.0.3:9092"]);
        assert_eq!((several.name.as_str(), several.compression), ("a.b_c-D", Compression::Gzip));
        assert_eq!(topic("b/t?format=state").contents, Contents::States);
    }

    #[test]
    #[cfg(feature = "tls")]
    fn a_url_has_authorities_and_login() {
        for (name, mechanism) in MECHANISMS {
            let url = format!("b/t?tls=true&ca=/a/ca.pem&sasl={name}&user=probe&password-file=p=w");
            let topic = topic(&url);
            assert_eq!((topic.tls, topic.authorities), (true, Some("/a/ca.pem".into())));
            let login =
                Login { mechanism: *mechanism, user: "probe".into(), password_file: "p=w".into() };
            assert_eq!(topic.login, Some(login));
        }
    }

    #[test]
    fn invalid_urls_are_errors_with_advice() {
        let long = format!("b/{}", "x".repeat(250));
        for (url, words) in [
            ("", "kafka://BROKER/TOPIC"),
            ("broker", "kafka://BROKER/TOPIC"),
            ("broker/", "kafka://BROKER/TOPIC"),
            ("/topic", "kafka://BROKER/TOPIC"),
            ("b:port/t", "HOST:PORT"),
            ("b:0/t", "HOST:PORT"),
            ("b,/t", "HOST:PORT"),
            ("user@b/t", "HOST:PORT"),
            ("b/a/b", "invalid topic"),
            ("b/..", "invalid topic"),
            ("b/flow records", "invalid topic"),
            (&long, "invalid topic"),
            ("b/t?format=avro", "use json, protobuf or state"),
            ("b/t?compression=zstd", "none, gzip or snappy"),
            ("b/t?tls=yes", "true or false"),
            ("b/t?ca=file", "needs tls=true"),
            ("b/t?formats=json", "unknown parameter"),
            ("b/t?format", "unknown parameter"),
            ("b/t?format=json&format=json", "twice"),
            ("b/t?sasl=plain&user=u&password=secret", "password-file"),
            ("b/t?sasl=plain&user=u", "belong together"),
            ("b/t?user=u&password-file=f", "belong together"),
            ("b/t?sasl=gssapi&user=u&password-file=f", "scram-sha-512"),
        ] {
            let error = KafkaTopic::parse(url).unwrap_err().to_string();
            assert!(error.contains(words), "{url}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
