//! The list of outputs: a new one is a file with a [`Place`], and a line here.

use std::fmt;
use std::io;
use std::path::Path;
use std::str::FromStr;

use ringtap_base::without_secrets;

use crate::alerts::AlertOutput;
#[cfg(feature = "arrow")]
use crate::batches::Batches;
use crate::collector::{Collector, UnknownCollector};
use crate::cut::Cut;
use crate::event_file::EventOutput;
use crate::file::FileOutput;
use crate::ipfix_file::IpfixFile;
use crate::launch::Ready;
use crate::place::Place;
use crate::settings::Settings;
use crate::summary::Items;
use crate::topic::KafkaTopic;
use crate::totals::TotalsOutput;

/// Generates from the list: the enum, and the place of each.
macro_rules! outputs {
    ($($(#[$doc:meta])* $variant:ident($place:ty) $(if $feature:meta)?,)+) => {
        /// One output of a run, as given by the user.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Output {
            $($(#[$doc])* $(#[cfg($feature)])? $variant($place),)+
        }

        impl Output {
            fn place(&self) -> &dyn Place {
                match self {
                    $($(#[cfg($feature)])? Self::$variant(place) => place,)+
                }
            }
        }
    };
}

outputs! {
    /// A file of records.
    File(FileOutput),
    /// A file of events.
    Events(EventOutput),
    /// An IPFIX file.
    IpfixFile(IpfixFile),
    /// A collector.
    Collector(Collector),
    /// A topic of Kafka.
    Topic(KafkaTopic),
    /// A place for alerts.
    Alerts(AlertOutput),
    /// A file of totals.
    Totals(TotalsOutput),
    /// Record batches in memory.
    Batches(Batches) if feature = "arrow",
}

impl Output {
    /// The path, if the output is a file; `-` is standard output.
    pub fn path(&self) -> Option<&Path> {
        self.place().path()
    }

    /// Returns true if it is standard output.
    pub fn is_stdout(&self) -> bool {
        self.path().is_some_and(|path| path.as_os_str() == "-")
    }

    /// Whether it is a file that has its name while it is written.
    pub fn is_open(&self) -> bool {
        self.place().is_open()
    }

    /// Whether a reader of this process takes its records while the run goes on.
    pub fn is_read(&self) -> bool {
        self.place().is_read()
    }

    /// Where a file can be cut whose process ended early; `None` if the output is appended to in place, or not a file.
    pub fn cut(&self) -> Option<Cut> {
        self.place().cut()
    }

    /// Returns true if its connections are encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.place().is_encrypted()
    }

    /// Files of its own that it reads when it begins, besides those of [`Settings`].
    pub fn reads(&self) -> Vec<&Path> {
        self.place().reads()
    }

    /// Returns true for a collector that gets the exporter's counts.
    pub fn has_statistics(&self) -> bool {
        matches!(self, Self::Collector(collector) if collector.protocol().has_statistics())
    }

    /// Bytes of memory besides the blocks.
    pub fn fixed_bytes(&self) -> u64 {
        self.place().fixed_bytes()
    }

    /// What it takes.
    pub fn items(&self) -> Items {
        self.place().items()
    }

    /// Whether its records say which part of a flow they are.
    pub(crate) fn joins_parts(&self) -> bool {
        self.place().joins_parts()
    }

    /// Resolves hosts, reads certificates, opens sockets.
    pub(crate) fn prepare(&self, settings: &Settings) -> io::Result<Ready> {
        self.place().prepare(settings)
    }
}

/// Reads a URL: a collector, an IPFIX file or a topic of Kafka.
impl FromStr for Output {
    type Err = UnknownCollector;

    fn from_str(url: &str) -> Result<Self, UnknownCollector> {
        if let Some(path) = url.strip_prefix("ipfix-file:") {
            IpfixFile::named(path).map(Self::IpfixFile).ok_or(UnknownCollector::NoPath)
        } else if let Some(place) = url.strip_prefix("kafka://") {
            let wrong = |why| UnknownCollector::Kafka { url: url.to_owned(), why };
            KafkaTopic::parse(place).map(Self::Topic).map_err(wrong)
        } else {
            url.parse().map(Self::Collector)
        }
    }
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&without_secrets(&self.place().name()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_a_file_a_topic_or_a_collector() {
        let output = |url: &str| url.parse::<Output>();
        let file = output("ipfix-file:a:b").unwrap();
        assert_eq!(
            (file.path(), file.to_string().as_str()),
            (Some(Path::new("a:b")), "ipfix-file:a:b")
        );
        assert!(output("ipfix-file:-").unwrap().is_stdout());
        assert!(output("ipfix-file:").unwrap_err().to_string().contains("flows.ipfix"));
        assert!(matches!(output("ipfix://h:1"), Ok(Output::Collector(_))));
        assert!(output("kafka://h").is_err());
        let url = "kafka://h/t?format=protobuf";
        let topic = output(url);
        if cfg!(feature = "kafka") {
            assert!(matches!(&topic, Ok(Output::Topic(topic)) if topic.name == "t"));
            assert_eq!(topic.unwrap().to_string(), url);
        } else {
            let error = topic.unwrap_err().to_string();
            assert!(error.contains(url) && error.contains("without the feature kafka"), "{error}");
        }
    }
}
