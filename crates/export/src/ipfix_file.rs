//! An IPFIX file (RFC 5655): the messages, one after another.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::collector::start;
use crate::cut::Cut;
use crate::file_link::FileLink;
use crate::launch::Ready;
use crate::place::Place;
use crate::protocol::Protocol;
use crate::settings::Settings;

/// An IPFIX file: `ipfix-file:PATH`, where the path `-` is standard output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IpfixFile(PathBuf);

impl IpfixFile {
    /// The file at this path; `None` if it is empty.
    pub(crate) fn named(path: &str) -> Option<Self> {
        (!path.is_empty()).then(|| Self(path.into()))
    }
}

impl Place for IpfixFile {
    fn path(&self) -> Option<&Path> {
        Some(&self.0)
    }

    fn cut(&self) -> Option<Cut> {
        Some(Cut::Message)
    }

    fn prepare(&self, _: &Settings) -> io::Result<Ready> {
        let path = self.0.clone();
        Ok(Box::new(move |launch| {
            let (store, wait_policy) = launch.store(&path)?;
            start(launch, Protocol::Ipfix, Box::new(FileLink::new(store)), wait_policy)
        }))
    }
}

impl fmt::Display for IpfixFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ipfix-file:{}", self.0.display())
    }
}
