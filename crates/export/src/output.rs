//! Outputs, as given by the user: a collector's URL, or the format and path of a file.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::events::{EventFormat, UnknownEventFormat};
use crate::formats::{Format, UnknownFormat};

use crate::alerts::ALERT_BYTES;
#[cfg(feature = "arrow")]
use crate::batches::Batches;
#[cfg(feature = "kafka")]
use crate::kafka::WRITER_BYTES;
#[cfg(feature = "parquet")]
use crate::rows::FILE_BYTES;
use crate::{AlertOutput, Collector, Cut, Transport};

/// One output of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// A collector, or an IPFIX file.
    Collector(Collector),
    /// A file of records.
    File(FileOutput),
    /// A file of events.
    Events(EventOutput),
    /// A place for alerts.
    Alerts(AlertOutput),
    /// Record batches in memory.
    #[cfg(feature = "arrow")]
    Batches(Batches),
}

/// A file of records: `FORMAT:PATH`, where the path `-` is standard output.
///
/// ```
/// use ringtap_export::FileOutput;
///
/// let file: FileOutput = "json:flows.json".parse()?;
/// assert_eq!((file.to_string().as_str(), file.is_stdout()), ("json:flows.json", false));
/// # Ok::<(), ringtap_export::InvalidFile>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileOutput {
    /// Format of the records.
    pub format: Format,
    /// Path of the file.
    pub path: PathBuf,
}

/// A file of events: `FORMAT:PATH`, where the path `-` is standard output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventOutput {
    /// Format of the events.
    pub format: EventFormat,
    /// Path of the file.
    pub path: PathBuf,
}

impl EventOutput {
    /// The outputs that `FORMAT:PATH` names: one, or for `zeek:FOLDER` one for each log.
    ///
    /// # Errors
    /// The format is unknown, or the path is missing.
    pub fn named(text: &str) -> Result<Vec<Self>, InvalidFile> {
        let incomplete = || InvalidFile::IncompleteEvents(text.to_owned());
        let (name, path) = text.split_once(':').ok_or_else(incomplete)?;
        if path.is_empty() {
            return Err(incomplete());
        }
        let formats = EventFormat::named(name)?;
        if formats.len() > 1 && !Path::new(path).is_dir() {
            return Err(InvalidFile::NoFolder { name: name.into(), path: path.into() });
        }
        let path_of = |format: EventFormat| match format.file_name() {
            Some(file) => Path::new(path).join(file),
            None => path.into(),
        };
        Ok(formats.iter().map(|&format| Self { format, path: path_of(format) }).collect())
    }
}

impl fmt::Display for EventOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "events in {}:{}", self.format.name(), self.path.display())
    }
}

/// An invalid output.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidFile {
    /// The format or the path is missing.
    #[error("invalid output {0:?}: use FORMAT:PATH, as in json:flows.json or csv:-")]
    Incomplete(String),
    /// The format or the path of a file of events is missing.
    #[error("invalid output {0:?}: use FORMAT:PATH, as in json:events.json or zeek:FOLDER")]
    IncompleteEvents(String),
    /// A format of several files needs a folder.
    #[error("{path:?} is not a folder: create it, or use another for the files of {name}")]
    NoFolder {
        /// The format.
        name: String,
        /// The path.
        path: String,
    },
    /// There is no such format.
    #[error(transparent)]
    Format(#[from] UnknownFormat),
    /// There is no such format of events.
    #[error(transparent)]
    EventFormat(#[from] UnknownEventFormat),
}

impl Output {
    /// The path, if the output is a file; `-` is standard output.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Collector(collector) => match collector.transport() {
                Transport::File(path) => Some(path),
                _ => None,
            },
            Self::File(file) => Some(&file.path),
            Self::Events(file) => Some(&file.path),
            Self::Alerts(output) => output.path(),
            #[cfg(feature = "arrow")]
            Self::Batches(_) => None,
        }
    }

    /// Where a file can be cut whose process ended early; `None` if the output is appended to in place, or not a file.
    pub fn cut(&self) -> Option<Cut> {
        match self {
            Self::Collector(collector) => match collector.transport() {
                Transport::File(_) => Some(Cut::Message),
                _ => None,
            },
            Self::File(file) if file.format.text().is_some() => Some(Cut::Line),
            #[cfg(feature = "parquet")]
            Self::File(_) => Some(Cut::RowGroup),
            #[cfg(not(feature = "parquet"))]
            Self::File(_) => None,
            Self::Events(_) => Some(Cut::Line),
            Self::Alerts(_) => None,
            #[cfg(feature = "arrow")]
            Self::Batches(_) => None,
        }
    }

    /// Returns true if it is standard output.
    pub fn is_stdout(&self) -> bool {
        self.path().is_some_and(|path| path.as_os_str() == "-")
    }

    /// Returns true if its connections are encrypted.
    pub fn is_encrypted(&self) -> bool {
        match self {
            Self::Collector(collector) => match collector.transport() {
                Transport::Tls { .. } => true,
                Transport::Kafka(topic) => topic.tls,
                _ => false,
            },
            Self::Alerts(output) => output.is_encrypted(),
            _ => false,
        }
    }

    /// Bytes of memory besides the blocks.
    pub fn fixed_bytes(&self) -> u64 {
        match self {
            #[cfg(feature = "parquet")]
            Self::File(FileOutput { format: Format::Parquet, .. }) => FILE_BYTES as u64,
            #[cfg(feature = "kafka")]
            Self::Collector(collector) if matches!(collector.transport(), Transport::Kafka(_)) => {
                WRITER_BYTES as u64
            }
            Self::Alerts(_) => ALERT_BYTES,
            _ => 0,
        }
    }
}

impl FileOutput {
    /// Returns true if it is standard output.
    pub fn is_stdout(&self) -> bool {
        self.path.as_os_str() == "-"
    }
}

impl FromStr for FileOutput {
    type Err = InvalidFile;

    fn from_str(text: &str) -> Result<Self, InvalidFile> {
        match text.split_once(':') {
            Some((format, path)) if !path.is_empty() => {
                Ok(Self { format: format.parse()?, path: path.into() })
            }
            _ => Err(InvalidFile::Incomplete(text.to_owned())),
        }
    }
}

impl fmt::Display for FileOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.format, self.path.display())
    }
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Collector(collector) => collector.fmt(f),
            Self::File(file) => file.fmt(f),
            Self::Events(file) => file.fmt(f),
            Self::Alerts(output) => write!(f, "alerts to {output}"),
            #[cfg(feature = "arrow")]
            Self::Batches(_) => f.write_str("flow records in memory"),
        }
    }
}
