//! A file of flow records in one of the formats of `formats/`.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::cut::Cut;
use crate::events::UnknownEventFormat;
#[cfg(feature = "parquet")]
use crate::formats::Columns;
use crate::formats::{Format, UnknownFormat};
use crate::launch::{Launch, Ready, Started};
use crate::place::Place;
#[cfg(feature = "parquet")]
use crate::rows::{FILE_BYTES, KEPT_BYTES, RowEncoder, RowSink};
use crate::settings::Settings;
use crate::text::{LineEncoder, LineSink};

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
    /// The file has its name while it is written.
    pub open: bool,
    /// Columns alone: the store gets sums of the records, by intervals of this many seconds, and no file without records.
    pub sums_s: Option<u64>,
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
    /// The format cannot be read before its end.
    #[error("{0}: parquet cannot be read before its end: omit ,open")]
    OpenParquet(String),
    /// Standard output has no name.
    #[error("{0}: stdout is written at once: omit ,open")]
    OpenStdout(String),
    /// There is no such format.
    #[error(transparent)]
    Format(#[from] UnknownFormat),
    /// There is no such format of events.
    #[error(transparent)]
    EventFormat(#[from] UnknownEventFormat),
}

impl FileOutput {
    /// Returns true if it is standard output.
    pub fn is_stdout(&self) -> bool {
        self.path.as_os_str() == "-"
    }
}

/// The end of the path of a file that has its name while it is written.
pub(crate) const OPEN: &str = ",open";

/// The path without [`OPEN`], and whether it had that. `text` is the whole output.
pub(crate) fn opened<'a>(text: &str, path: &'a str) -> Result<(&'a str, bool), InvalidFile> {
    match path.strip_suffix(OPEN) {
        Some("-") => Err(InvalidFile::OpenStdout(text.to_owned())),
        Some(path) if !path.is_empty() => Ok((path, true)),
        _ => Ok((path, false)),
    }
}

impl FromStr for FileOutput {
    type Err = InvalidFile;

    fn from_str(text: &str) -> Result<Self, InvalidFile> {
        match text.split_once(':') {
            Some((format, path)) if !path.is_empty() => {
                let (path, open) = opened(text, path)?;
                let format: Format = format.parse()?;
                if open && format.text().is_none() {
                    return Err(InvalidFile::OpenParquet(text.to_owned()));
                }
                Ok(Self { format, path: path.into(), open, sums_s: None })
            }
            _ => Err(InvalidFile::Incomplete(text.to_owned())),
        }
    }
}

impl fmt::Display for FileOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let open = if self.open { OPEN } else { "" };
        write!(f, "{}:{}{open}", self.format, self.path.display())
    }
}

impl Place for FileOutput {
    fn path(&self) -> Option<&Path> {
        Some(&self.path)
    }

    fn is_open(&self) -> bool {
        self.open
    }

    fn cut(&self) -> Option<Cut> {
        match self.format.text() {
            Some(_) => Some(Cut::Line),
            #[cfg(feature = "parquet")]
            None => Some(Cut::RowGroup),
            #[cfg(not(feature = "parquet"))]
            None => None,
        }
    }

    #[cfg(feature = "parquet")]
    fn fixed_bytes(&self) -> u64 {
        match (self.format.text(), self.sums_s) {
            (Some(_), _) => 0,
            (None, None) => FILE_BYTES as u64,
            (None, Some(_)) => (FILE_BYTES + KEPT_BYTES) as u64,
        }
    }

    fn joins_parts(&self) -> bool {
        !matches!(self.format, Format::Eve | Format::Zeek)
    }

    fn prepare(&self, _: &Settings) -> io::Result<Ready> {
        let own = self.clone();
        Ok(Box::new(move |launch| start(&own, launch)))
    }
}

fn start(own: &FileOutput, launch: &mut Launch<'_>) -> io::Result<Started> {
    let (store, wait_policy) = launch.store(&own.path)?;
    let interfaces = &launch.settings.interfaces;
    match own.format.text() {
        Some(format) => {
            let sink = LineSink::new(format, interfaces.clone(), store);
            let encoder = || LineEncoder { format, interfaces: interfaces.clone() };
            launch.records(wait_policy, encoder, sink)
        }
        #[cfg(feature = "parquet")]
        None => {
            let sums_s = own.sums_s;
            let columns = Columns { stored: sums_s.is_some(), ..interfaces.columns() };
            let sink = RowSink::new(columns, sums_s.is_some(), store);
            launch.records(wait_policy, || RowEncoder::new(columns, sums_s), sink)
        }
        #[cfg(not(feature = "parquet"))]
        None => Err(io::Error::other(UnknownFormat::NotBuilt(own.format))),
    }
}
