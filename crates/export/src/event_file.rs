//! A file of events in one of the formats of `events/`.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::cut::Cut;
use crate::events::EventFormat;
use crate::file::{InvalidFile, OPEN, opened};
use crate::launch::{Launch, Ready, Started};
use crate::place::Place;
use crate::settings::Settings;
use crate::summary::Items;
use crate::text::{LineEncoder, LineSink};

/// A file of events: `FORMAT:PATH`, where the path `-` is standard output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventOutput {
    /// Format of the events.
    pub format: EventFormat,
    /// Path of the file.
    pub path: PathBuf,
    /// The file has its name while it is written.
    pub open: bool,
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
        let (path, open) = opened(text, path)?;
        let formats = EventFormat::named(name)?;
        if formats.len() > 1 && !Path::new(path).is_dir() {
            return Err(InvalidFile::NoFolder { name: name.into(), path: path.into() });
        }
        let path_of = |format: EventFormat| match format.file_name() {
            Some(file) => Path::new(path).join(file),
            None => path.into(),
        };
        Ok(formats.iter().map(|&format| Self { format, path: path_of(format), open }).collect())
    }
}

impl fmt::Display for EventOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let open = if self.open { OPEN } else { "" };
        write!(f, "events in {}:{}{open}", self.format.name(), self.path.display())
    }
}

impl Place for EventOutput {
    fn path(&self) -> Option<&Path> {
        Some(&self.path)
    }

    fn is_open(&self) -> bool {
        self.open
    }

    fn cut(&self) -> Option<Cut> {
        Some(Cut::Line)
    }

    fn items(&self) -> Items {
        Items::Events
    }

    fn prepare(&self, _: &Settings) -> io::Result<Ready> {
        let Self { format, path, .. } = self.clone();
        Ok(Box::new(move |launch| start(format, &path, launch)))
    }
}

fn start(format: EventFormat, path: &Path, launch: &mut Launch<'_>) -> io::Result<Started> {
    let (store, wait_policy) = launch.store(path)?;
    let (format, interfaces) = (format.text(), &launch.settings.interfaces);
    let sink = LineSink::new(format, interfaces.clone(), store);
    launch.events(wait_policy, || LineEncoder { format, interfaces: interfaces.clone() }, sink)
}
