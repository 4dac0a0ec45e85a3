//! Flow records on their way to files and stdout.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Mutex, MutexGuard};

use crate::usage::Usage;
use crate::whole::Whole;
use anyhow::Context;
use ringtap_plan::FlowRecord;
use ringtap_records::{Format, RecordWriter};

/// `FORMAT:PATH` as given on the command line.
#[derive(Clone, Debug)]
pub(crate) struct Destination {
    format: Format,
    path: PathBuf,
}

impl Destination {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn is_stdout(&self) -> bool {
        self.path.as_os_str() == "-"
    }
}

impl FromStr for Destination {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some((format, path)) if !path.is_empty() => Ok(Self {
                format: format.parse::<Format>().map_err(|error| error.to_string())?,
                path: path.into(),
            }),
            _ => Err("write FORMAT:PATH, as in json:flows.json or csv:-".into()),
        }
    }
}

/// All destinations of a run. Records come from the workers, orders from the attendant.
pub(crate) struct Records(Mutex<State>);

struct State {
    open: Vec<Output>,
    /// The first thing that went wrong; its destination gets no more records.
    failure: Option<anyhow::Error>,
}

impl Records {
    /// Opens them all, or none.
    pub(crate) fn open(destinations: &[Destination]) -> anyhow::Result<Self> {
        for (number, one) in destinations.iter().enumerate() {
            if destinations[..number].iter().any(|other| other.path == one.path) {
                let path = one.path.display();
                return Err(Usage::of(format!("--write names {path} twice")));
            }
        }
        let open = destinations.iter().cloned().map(Output::open);
        let open = open.collect::<anyhow::Result<Vec<_>>>()?;
        Ok(Self(Mutex::new(State { open, failure: None })))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.state().open.is_empty()
    }

    /// Takes a record.
    pub(crate) fn write(&self, record: &FlowRecord) {
        self.each(|output| output.writer.write(record));
    }

    /// Finishes the files and begins new ones under the same names.
    pub(crate) fn reopen(&self) {
        self.each(Output::reopen);
    }

    /// Shows whoever reads along what was held back; not while a record is being written.
    pub(crate) fn show(&self) {
        if let Ok(mut state) = self.0.try_lock() {
            state.each(
                |output| if output.file.is_regular() { Ok(()) } else { output.writer.flush() },
            );
        }
    }

    /// Finishes the files; what went wrong, now or before.
    pub(crate) fn finish(&self) -> anyhow::Result<()> {
        self.each(Output::finish);
        self.state().failure.take().map_or(Ok(()), Err)
    }

    /// Removes what is half done, if nobody is writing this moment.
    pub(crate) fn abandon(&self) {
        if let Ok(mut state) = self.0.try_lock() {
            state.open.clear();
        }
    }

    fn each(&self, act: impl Fn(&mut Output) -> io::Result<()>) {
        self.state().each(act);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(|poison| poison.into_inner())
    }
}

impl State {
    fn each(&mut self, act: impl Fn(&mut Output) -> io::Result<()>) {
        let Self { open, failure } = self;
        open.retain_mut(|output| match act(output) {
            Ok(()) => true,
            // A reader of stdout that has seen enough is no failure.
            Err(error) if output.to.is_stdout() && error.kind() == ErrorKind::BrokenPipe => false,
            Err(error) => {
                let error = Err::<(), _>(error).with_context(|| output.doing());
                *failure = failure.take().or(error.err());
                false
            }
        });
    }
}

struct Output {
    to: Destination,
    writer: Box<dyn RecordWriter>,
    file: Whole,
}

impl Output {
    fn open(to: Destination) -> anyhow::Result<Self> {
        let mut file = Whole::new(to.path.clone());
        let out = file.begin().with_context(|| format!("writing {}", to.path.display()))?;
        Ok(Self { writer: to.format.writer(out), to, file })
    }

    fn doing(&self) -> String {
        format!("writing flow records to {}", self.to.path.display())
    }

    /// A pipe or a device goes on as it is, with no end in the middle of it.
    fn reopen(&mut self) -> io::Result<()> {
        if !self.file.is_regular() {
            return self.writer.flush();
        }
        self.finish()?;
        self.writer = self.to.format.writer(self.file.begin()?);
        Ok(())
    }

    /// Writes what was held back and gives the file its name.
    fn finish(&mut self) -> io::Result<()> {
        self.writer.finish()?;
        self.file.finish().map(drop)
    }
}
