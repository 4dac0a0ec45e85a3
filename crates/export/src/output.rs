//! Outputs, as given by the user: a collector's URL, or the format and path of a file.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::formats::{Format, UnknownFormat};

#[cfg(feature = "parquet")]
use crate::rows::FILE_BYTES;
use crate::{Collector, Transport};

/// One output of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// A collector, or an IPFIX file.
    Collector(Collector),
    /// A file of records.
    File(FileOutput),
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

/// An invalid output.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidFile {
    /// The format or the path is missing.
    #[error("invalid output {0:?}: use FORMAT:PATH, as in json:flows.json or csv:-")]
    Incomplete(String),
    /// There is no such format.
    #[error(transparent)]
    Format(#[from] UnknownFormat),
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
        }
    }

    /// Returns true if it is standard output.
    pub fn is_stdout(&self) -> bool {
        self.path().is_some_and(|path| path.as_os_str() == "-")
    }

    /// Bytes of memory besides the blocks.
    pub fn fixed_bytes(&self) -> u64 {
        match self {
            #[cfg(feature = "parquet")]
            Self::File(FileOutput { format: Format::Parquet, .. }) => FILE_BYTES as u64,
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
        }
    }
}
