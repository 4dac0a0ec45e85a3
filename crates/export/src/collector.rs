//! Collectors, given as URLs.
//!
//! | URL | meaning |
//! |---|---|
//! | `ipfix://HOST:PORT` | IPFIX over UDP; without a port 4739 |
//! | `ipfix+tcp://HOST:PORT` | IPFIX over TCP; without a port 4739 |
//! | `ipfix+tls://HOST:PORT` | IPFIX over TLS; without a port 4740 |
//! | `json+tcp://HOST:PORT` | lines of JSON over TCP; also `csv` and `eve`; with `+tls` over TLS |
//! | `ipfix-file:PATH` | an IPFIX file; `-` is stdout |
//! | `netflow9://HOST:PORT` | NetFlow v9 over UDP |
//! | `netflow5://HOST:PORT` | NetFlow v5 over UDP, IPv4 flows only |
//! | `kafka://BROKER/TOPIC` | messages of a Kafka topic ([`KafkaTopic`]) |

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::place::host_and_port;
use crate::{InvalidTopic, KafkaTopic, Protocol};

/// A collector: protocol and address.
///
/// ```
/// use ringtap_export::{Collector, Protocol, Transport};
///
/// let collector: Collector = "netflow9://[::1]:2055".parse()?;
/// assert_eq!(collector.protocol(), Protocol::NetFlow9);
/// assert_eq!(collector.transport(), &Transport::Udp { host: "::1".into(), port: 2055 });
/// assert_eq!(collector.to_string(), "netflow9://[::1]:2055");
/// # Ok::<(), ringtap_export::UnknownCollector>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collector {
    url: String,
    protocol: Protocol,
    transport: Transport,
}

/// The transport to a collector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Datagrams.
    Udp {
        /// Name or address.
        host: String,
        /// Port.
        port: u16,
    },
    /// A connection.
    Tcp {
        /// Name or address.
        host: String,
        /// Port.
        port: u16,
    },
    /// An encrypted connection to a collector with a certificate.
    Tls {
        /// Name or address, which must be in the collector's certificate.
        host: String,
        /// Port.
        port: u16,
    },
    /// A file.
    File(PathBuf),
    /// A topic of Kafka.
    Kafka(KafkaTopic),
}

/// An invalid collector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownCollector {
    /// The scheme is missing or unknown.
    #[error(
        "unknown collector {0:?}: use ipfix://HOST:PORT (UDP), ipfix+tcp://HOST:PORT, \
         ipfix+tls://HOST:PORT, ipfix-file:PATH, netflow9://HOST:PORT, netflow5://HOST:PORT, \
         json+tcp://HOST:PORT (also csv, eve; +tls), or kafka://BROKER/TOPIC"
    )]
    Scheme(String),
    /// The part behind the scheme is not a valid address.
    #[error(
        "invalid collector {0:?}: use HOST:PORT, as in ipfix://collector.example:4739 or netflow9://[::1]:2055"
    )]
    Place(String),
    /// Not built in.
    #[error("this program was built without the feature tls, so it does not export by TLS")]
    NotBuilt,
    /// Not a topic of Kafka.
    #[error("invalid collector {url:?}: {why}")]
    Kafka {
        /// The URL.
        url: String,
        /// What is wrong.
        why: InvalidTopic,
    },
    /// A file without a name.
    #[error("ipfix-file:PATH names a file, as in ipfix-file:flows.ipfix; - is stdout")]
    NoPath,
}

impl Collector {
    /// The protocol.
    pub const fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// The transport.
    pub const fn transport(&self) -> &Transport {
        &self.transport
    }

    /// Returns true if messages go to standard output.
    pub fn is_stdout(&self) -> bool {
        matches!(&self.transport, Transport::File(path) if path.as_os_str() == "-")
    }
}

impl FromStr for Collector {
    type Err = UnknownCollector;

    fn from_str(url: &str) -> Result<Self, UnknownCollector> {
        let (protocol, transport) = if let Some(path) = url.strip_prefix("ipfix-file:") {
            if path.is_empty() {
                return Err(UnknownCollector::NoPath);
            }
            (Protocol::Ipfix, Transport::File(path.into()))
        } else if let Some(place) = url.strip_prefix("kafka://") {
            let wrong = |why| UnknownCollector::Kafka { url: url.to_owned(), why };
            let (topic, protocol) = KafkaTopic::parse(place).map_err(wrong)?;
            (protocol, Transport::Kafka(topic))
        } else {
            let unknown = || UnknownCollector::Scheme(url.to_owned());
            let (scheme, place) = url.split_once("://").ok_or_else(unknown)?;
            let wrong = || UnknownCollector::Place(url.to_owned());
            let place = |default| host_and_port(place, default).ok_or_else(wrong);
            let (name, transport) = scheme.split_once('+').unwrap_or((scheme, "udp"));
            let (protocol, udp, [port, tls_port]) = Protocol::named(name).ok_or_else(unknown)?;
            let transport = match transport {
                "udp" if udp => place(port).map(|(host, port)| Transport::Udp { host, port })?,
                "tcp" if protocol.over_streams() => {
                    place(port).map(|(host, port)| Transport::Tcp { host, port })?
                }
                "tls" if protocol.over_streams() => {
                    if cfg!(not(feature = "tls")) {
                        return Err(UnknownCollector::NotBuilt);
                    }
                    place(tls_port).map(|(host, port)| Transport::Tls { host, port })?
                }
                _ => return Err(unknown()),
            };
            (protocol, transport)
        };
        Ok(Self { url: url.to_owned(), protocol, transport })
    }
}

impl fmt::Display for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::Format;

    #[test]
    fn urls_contain_protocol_and_address() {
        let udp = |host: &str, port| Transport::Udp { host: host.into(), port };
        for (url, protocol, transport) in [
            ("ipfix://10.0.0.1:9995", Protocol::Ipfix, udp("10.0.0.1", 9995)),
            ("ipfix://collector.example", Protocol::Ipfix, udp("collector.example", 4739)),
            ("ipfix://[2001:db8::1]", Protocol::Ipfix, udp("2001:db8::1", 4739)),
            ("netflow9://h:2055/", Protocol::NetFlow9, udp("h", 2055)),
            ("netflow5://[::1]:2055", Protocol::NetFlow5, udp("::1", 2055)),
            ("ipfix+tcp://h:1", Protocol::Ipfix, Transport::Tcp { host: "h".into(), port: 1 }),
            ("ipfix+tls://h", Protocol::Ipfix, Transport::Tls { host: "h".into(), port: 4740 }),
            (
                "json+tcp://h:1",
                Protocol::Lines(Format::Json),
                Transport::Tcp { host: "h".into(), port: 1 },
            ),
            ("ipfix-file:a:b", Protocol::Ipfix, Transport::File("a:b".into())),
        ] {
            if cfg!(not(feature = "tls")) && url.starts_with("ipfix+tls") {
                continue;
            }
            let collector: Collector = url.parse().unwrap();
            assert_eq!((collector.protocol(), collector.transport()), (protocol, &transport));
            assert_eq!(collector.to_string(), url);
        }
    }

    #[test]
    fn a_topic_is_a_collector_if_it_is_built_in() {
        let url = "kafka://h/t?format=protobuf";
        let collector = url.parse::<Collector>();
        if cfg!(feature = "kafka") {
            let collector = collector.unwrap();
            assert_eq!(
                (collector.protocol(), collector.to_string()),
                (Protocol::FlowMessages, url.into())
            );
            assert!(matches!(collector.transport(), Transport::Kafka(topic) if topic.name == "t"));
        } else {
            let error = collector.unwrap_err().to_string();
            assert!(error.contains(url) && error.contains("without the feature kafka"), "{error}");
        }
        assert!("kafka://h".parse::<Collector>().is_err());
    }

    #[test]
    fn invalid_urls_are_errors_with_advice() {
        for (url, words) in [
            ("", "ipfix://HOST:PORT"),
            ("127.0.0.1:2055", "netflow9://HOST:PORT"),
            ("http://h:1", "ipfix+tcp"),
            ("netflow7://h:1", "netflow5"),
            ("ipfix+tls://", "HOST:PORT"),
            ("netflow9://h", "HOST:PORT"),
            ("netflow9://:2055", "HOST:PORT"),
            ("ipfix://h:0", "HOST:PORT"),
            ("ipfix://h:65536", "HOST:PORT"),
            ("ipfix://h:port", "HOST:PORT"),
            ("ipfix://::1:4739", "HOST:PORT"),
            ("ipfix://[::1", "HOST:PORT"),
            ("ipfix://[::1]4739", "HOST:PORT"),
            ("ipfix://h:1/path", "HOST:PORT"),
            ("json://h:1", "json+tcp"),
            ("zeek+tcp://h:1", "json+tcp"),
            ("parquet+tcp://h:1", "json+tcp"),
            ("netflow9+tcp://h:1", "json+tcp"),
            ("json+tcp://h", "HOST:PORT"),
            ("ipfix-file:", "flows.ipfix"),
        ] {
            if cfg!(not(feature = "tls")) && url.starts_with("ipfix+tls") {
                continue;
            }
            let error = url.parse::<Collector>().unwrap_err().to_string();
            assert!(error.contains(words), "{url}: {error}");
        }
    }
}
