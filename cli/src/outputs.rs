//! Flow records on their way to files and stdout.
//!
//! A file is written under another name and gets its own when it is whole, so that nobody reads
//! half of one. Pipes and devices are written as they are.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Mutex, MutexGuard};

use crate::usage::Usage;
use anyhow::Context;
use ringtap_flow::{Format, RecordWriter};
use ringtap_plan::FlowRecord;

/// `FORMAT:PATH` as given on the command line.
#[derive(Clone, Debug)]
pub(crate) struct Destination {
    format: Format,
    path: PathBuf,
}

impl Destination {
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

/// All destinations of a run. Records come from the merger, orders from the attendant.
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
        let State { open, failure } = &mut *self.state();
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

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(|poison| poison.into_inner())
    }
}

struct Output {
    to: Destination,
    writer: Box<dyn RecordWriter>,
    /// Where a regular file lies until it is whole.
    part: Option<PathBuf>,
    /// Files finished under this name.
    finished: usize,
}

impl Output {
    fn open(to: Destination) -> anyhow::Result<Self> {
        let opened = begin(&to).with_context(|| format!("writing {}", to.path.display()));
        let (writer, part) = opened?;
        Ok(Self { to, writer, part, finished: 0 })
    }

    fn doing(&self) -> String {
        format!("writing flow records to {}", self.to.path.display())
    }

    fn reopen(&mut self) -> io::Result<()> {
        self.finish()?;
        if self.finished > 0 {
            (self.writer, self.part) = begin(&self.to)?;
        }
        Ok(())
    }

    /// Writes what was held back and gives the file its name.
    fn finish(&mut self) -> io::Result<()> {
        self.writer.finish()?;
        if let Some(part) = &self.part {
            std::fs::rename(part, self.name())?;
            self.part = None;
            self.finished += 1;
        }
        Ok(())
    }

    /// The first file replaces one of an earlier run; later ones replace nothing.
    fn name(&self) -> PathBuf {
        let mut name = self.to.path.clone();
        let mut number = 1;
        while self.finished > 0 && name.exists() {
            name = self.to.path.clone();
            name.as_mut_os_string().push(format!(".{number}"));
            number += 1;
        }
        name
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Some(part) = &self.part {
            // It is not whole and never will be; if it stays, it stays under its own name.
            let _ = std::fs::remove_file(part);
        }
    }
}

fn begin(to: &Destination) -> io::Result<(Box<dyn RecordWriter>, Option<PathBuf>)> {
    let (out, part): (Box<dyn Write + Send>, _) = if to.is_stdout() {
        (Box::new(io::stdout()), None)
    } else if std::fs::metadata(&to.path).is_ok_and(|data| !data.is_file()) {
        (Box::new(File::options().write(true).open(&to.path)?), None)
    } else {
        let part = part(&to.path);
        (Box::new(File::create(&part)?), Some(part))
    };
    Ok((to.format.writer(out), part))
}

/// `flows.json` is `.flows.json.PID.part` beside it until it is whole.
fn part(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.part", std::process::id()));
    path.with_file_name(name)
}
