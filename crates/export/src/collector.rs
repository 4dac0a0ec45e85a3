//! Collectors, given as URLs.
//!
//! | URL | meaning |
//! |---|---|
//! | `ipfix://HOST:PORT` | IPFIX over UDP; without a port 4739 |
//! | `ipfix+tcp://HOST:PORT` | IPFIX over TCP; without a port 4739 |
//! | `ipfix+tls://HOST:PORT` | IPFIX over TLS; without a port 4740 |
//! | `json+tcp://HOST:PORT` | lines of JSON over TCP; also `csv` and `eve`; with `+tls` over TLS |
//! | `netflow9://HOST:PORT` | NetFlow v9 over UDP |
//! | `netflow5://HOST:PORT` | NetFlow v5 over UDP, IPv4 flows only |
//! | `ipfix+local:///PATH` | IPFIX in datagrams to a local socket; also `netflow9`, `netflow5` |

use std::fmt;
use std::io;
use std::str::FromStr;

use crate::encode::{Encoder, Ipfix, Lines, NetFlow5, NetFlow9, STREAM_LIMIT, UDP_LIMIT};
use crate::exporter::Exporter;
use crate::fields::Columns;
use crate::launch::{Launch, Ready, Started};
use crate::messages::MessageEncoder;
use crate::place::Place;
use crate::protocol::Protocol;
use crate::sampling::Sampling;
use crate::settings::Settings;
use crate::shared::WaitPolicy;
use crate::topic::InvalidTopic;
use crate::transports::{self, Link, Route, Transport};

/// A collector: protocol and address.
///
/// ```
/// use ringtap_export::{Collector, Protocol};
///
/// let collector: Collector = "netflow9://[::1]:2055".parse()?;
/// assert_eq!(collector.protocol(), Protocol::NetFlow9);
/// assert_eq!(collector.to_string(), "netflow9://[::1]:2055");
/// # Ok::<(), ringtap_export::UnknownCollector>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collector {
    url: String,
    protocol: Protocol,
    route: Route,
}

/// An invalid collector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownCollector {
    /// The scheme is missing or unknown.
    #[error(
        "unknown collector {0:?}: use ipfix://HOST:PORT (UDP), ipfix+tcp://HOST:PORT, \
         ipfix+tls://HOST:PORT, ipfix-file:PATH, netflow9://HOST:PORT, netflow5://HOST:PORT, \
         json+tcp://HOST:PORT (also csv, eve; +tls), ipfix+local:///PATH, or kafka://BROKER/TOPIC"
    )]
    Scheme(String),
    /// The part behind the scheme is not a valid address.
    #[error("invalid collector {url:?}: use {form}")]
    Place {
        /// The URL.
        url: String,
        /// What an address of its transport is.
        form: &'static str,
    },
    /// Not built in.
    #[error("this program was built without the feature {0}, so it does not export by {0}")]
    NotBuilt(&'static str),
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
}

impl FromStr for Collector {
    type Err = UnknownCollector;

    fn from_str(url: &str) -> Result<Self, UnknownCollector> {
        let unknown = || UnknownCollector::Scheme(url.to_owned());
        let (scheme, place) = url.split_once("://").ok_or_else(unknown)?;
        let (name, transport) = scheme.split_once('+').unwrap_or((scheme, "udp"));
        let (protocol, over_datagrams, ports) = Protocol::named(name).ok_or_else(unknown)?;
        let carries = |transport: &&Transport| match transport.is_stream {
            true => protocol.over_streams(),
            false => over_datagrams,
        };
        let transport = transports::named(transport).filter(carries).ok_or_else(unknown)?;
        if !transport.is_built {
            return Err(UnknownCollector::NotBuilt(transport.name));
        }
        let route = Route::new(transport, place, ports[usize::from(transport.is_encrypted)]);
        let route = route
            .ok_or_else(|| UnknownCollector::Place { url: url.to_owned(), form: transport.form })?;
        Ok(Self { url: url.to_owned(), protocol, route })
    }
}

impl fmt::Display for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.url)
    }
}

impl Place for Collector {
    fn is_encrypted(&self) -> bool {
        self.route.transport.is_encrypted
    }

    fn joins_parts(&self) -> bool {
        self.protocol == Protocol::Ipfix
    }

    fn prepare(&self, settings: &Settings) -> io::Result<Ready> {
        let protocol = self.protocol;
        if protocol == Protocol::NetFlow5
            && settings.sampling.is_some_and(|one| one.of() > Sampling::NETFLOW5_MOST)
        {
            let most = Sampling::NETFLOW5_MOST;
            return Err(io::Error::other(format!("NetFlow v5 announces sampling up to 1:{most}")));
        }
        let link = self.route.link(&settings.tls)?;
        Ok(Box::new(move |launch| start(launch, protocol, link, WaitPolicy::Collector)))
    }
}

/// Starts an output of messages over a link.
pub(crate) fn start(
    launch: &mut Launch<'_>,
    protocol: Protocol,
    link: Box<dyn Link>,
    wait_policy: WaitPolicy,
) -> io::Result<Started> {
    let (number, settings) = (launch.number, launch.settings);
    let limit = if link.repeats_templates() { UDP_LIMIT } else { STREAM_LIMIT };
    let (domain, sampling) = (settings.observation_domain, settings.sampling);
    let interfaces = &settings.interfaces;
    let Columns { ingress, parts, statistics, entropy, .. } = interfaces.columns();
    let output = Unstarted { launch, protocol, link, wait_policy };
    match protocol {
        Protocol::Ipfix => output.start(|| {
            let encoder = Ipfix::new(domain, number, limit).sampled(sampling);
            let encoder = encoder.keyed_by_vlans(settings.vlan_in_key).with_parts(parts);
            let encoder = encoder.with_domain_name(settings.domain_name.as_deref());
            let encoder = encoder.with_statistics(statistics).with_entropy(entropy);
            encoder.with_ingress(ingress).with_names_of(interfaces)
        }),
        Protocol::NetFlow9 => {
            let clock = NetFlow9::new(domain, limit);
            output.start(|| {
                let encoder = NetFlow9::new(domain, limit).with_clock_of(&clock);
                encoder.sampled(sampling).with_ingress(ingress).with_names_of(interfaces)
            })
        }
        Protocol::NetFlow5 => {
            let clock = NetFlow5::new(domain as u16, limit);
            output.start(|| {
                let encoder = NetFlow5::new(domain as u16, limit).with_clock_of(&clock);
                encoder.sampled(sampling)
            })
        }
        Protocol::Lines(format) => {
            let text = format.text().ok_or_else(|| io::Error::other("the format has no lines"))?;
            output.start(|| Lines::new(text, interfaces.clone(), limit))
        }
    }
}

/// An output of messages that is to be started.
struct Unstarted<'a, 'b> {
    launch: &'a mut Launch<'b>,
    protocol: Protocol,
    link: Box<dyn Link>,
    wait_policy: WaitPolicy,
}

impl Unstarted<'_, '_> {
    /// Starts it with these encoders.
    fn start<E: Encoder + 'static>(self, encoder: impl Fn() -> E) -> io::Result<Started> {
        let Self { launch, protocol, link, wait_policy } = self;
        let settings = launch.settings;
        let sink = Exporter::new(Box::new(encoder()), link, settings);
        let period_ns = match wait_policy {
            WaitPolicy::Collector => settings.statistics_ns.filter(|_| protocol.has_statistics()),
            WaitPolicy::File | WaitPolicy::Pipe => launch.file_period(wait_policy),
        };
        let encoder = || MessageEncoder { encoder: encoder(), protocol };
        launch.records_in(period_ns, wait_policy, encoder, sink)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::Format;

    #[test]
    fn urls_contain_protocol_and_address() {
        for (url, protocol, transport, host, port) in [
            ("ipfix://10.0.0.1:9995", Protocol::Ipfix, "udp", "10.0.0.1", 9995),
            ("ipfix://collector.example", Protocol::Ipfix, "udp", "collector.example", 4739),
            ("ipfix://[2001:db8::1]", Protocol::Ipfix, "udp", "2001:db8::1", 4739),
            ("netflow9://h:2055/", Protocol::NetFlow9, "udp", "h", 2055),
            ("netflow5://[::1]:2055", Protocol::NetFlow5, "udp", "::1", 2055),
            ("ipfix+tcp://h:1", Protocol::Ipfix, "tcp", "h", 1),
            ("ipfix+tls://h", Protocol::Ipfix, "tls", "h", 4740),
            ("json+tcp://h:1", Protocol::Lines(Format::Json), "tcp", "h", 1),
        ] {
            if cfg!(not(feature = "tls")) && transport == "tls" {
                continue;
            }
            let collector: Collector = url.parse().unwrap();
            let Route { transport: own, address } = &collector.route;
            assert_eq!((collector.protocol(), own.name), (protocol, transport));
            assert_eq!((address.host.as_str(), address.port), (host, port));
            assert_eq!(collector.to_string(), url);
        }
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
            ("ipfix+local://h", "an absolute path"),
            ("json://h:1", "json+tcp"),
            ("zeek+tcp://h:1", "json+tcp"),
            ("parquet+tcp://h:1", "json+tcp"),
            ("netflow9+tcp://h:1", "json+tcp"),
            ("json+tcp://h", "HOST:PORT"),
        ] {
            if cfg!(not(feature = "tls")) && url.starts_with("ipfix+tls") {
                continue;
            }
            let error = url.parse::<Collector>().unwrap_err().to_string();
            assert!(error.contains(words), "{url}: {error}");
        }
    }
}
