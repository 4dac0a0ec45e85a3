//! The outputs of a run for flow records, events and states: files and collectors.

use std::fs::File;
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::Duration;

use ringtap_export::Summary as Exported;
use ringtap_export::{
    AlertOutput, Alerts, EventOutput, Exports, FileOutput, Handle, Items, Output, Prepared, Reason,
    States, Store,
};
use ringtap_flow::Sinks;

use crate::alerts::find_program;
use ringtap_program::atomic_file::{AtomicFile, Existing, Part};
use ringtap_program::leftovers;
use ringtap_terminal::Usage;
use ringtap_terminal::numbers::count;

/// Pause before a full non-blocking pipe is retried.
const PIPE_PAUSE: Duration = Duration::from_millis(1);

/// All outputs that the flags name: `--export` first, then `--write`, `--events` and `--alert-to`. Duplicates are an error.
pub(crate) fn named(
    exported: &[Output],
    files: &[FileOutput],
    events: &[EventOutput],
    alerts: &[AlertOutput],
) -> anyhow::Result<Vec<Output>> {
    let files = files.iter().cloned().map(Output::File);
    let events = events.iter().cloned().map(Output::Events);
    let alerts = alerts.iter().cloned().map(Output::Alerts);
    let all: Vec<_> = exported.iter().cloned().chain(files).chain(events).chain(alerts).collect();
    for (number, one) in all.iter().enumerate() {
        // A collector would count each record twice, and two writers would corrupt a file.
        if all[..number].contains(one) {
            return Err(Usage::of(format!("{one} is given twice: omit one")));
        }
        if let Some(other) = all[..number].iter().find(|other| is_same_place(one, other)) {
            return Err(Usage::of(format!("{other} and {one} are the same place: omit one")));
        }
    }
    Ok(all)
}

/// Whether one of these receives states.
pub(crate) fn takes_states(exported: &[Output]) -> bool {
    exported.iter().any(|output| output.items() == Items::States)
}

/// Whether a topic of Kafka is among these.
pub(crate) fn has_topic(exported: &[Output]) -> bool {
    exported.iter().any(|output| matches!(output, Output::Topic(_)))
}

/// Whether both are the same place for alerts other than a file.
fn is_same_place(one: &Output, other: &Output) -> bool {
    let (Output::Alerts(one), Output::Alerts(other)) = (one, other) else { return false };
    let program = |output: &AlertOutput| find_program(output.program()?).ok()?.canonicalize().ok();
    let is_program = program(one).is_some() && program(one) == program(other);
    is_program || one.path().is_none() && one.has_place_of(other)
}

/// The outputs of a run, started.
pub(crate) struct Outputs {
    exports: Exports,
    /// The number of collectors; files follow.
    collectors: usize,
    parts: Vec<Part>,
}

/// The effects of signals on outputs. No call waits.
#[derive(Clone)]
pub(crate) struct Control {
    handle: Handle,
    parts: Vec<Part>,
}

impl Outputs {
    /// Opens the files and starts the writers; returns a sink for each of the `workers`. Before, finishes what
    /// processes that ended early left of the `named` outputs.
    pub(crate) fn start(
        named: &[Output],
        prepared: Prepared,
        workers: usize,
        collectors: usize,
        existing: Existing,
    ) -> anyhow::Result<(Self, Vec<Sinks>)> {
        for output in named {
            if let (Some(path), Some(cut)) = (output.path(), output.cut()) {
                leftovers::finish(path, |file| cut.finish(file));
            }
        }
        let mut parts = Vec::new();
        let mut open = |path: &Path| -> io::Result<Box<dyn Store>> {
            let file = RecordFile::open(AtomicFile::claim(path.to_owned(), existing)?)?;
            parts.push(file.file.part());
            Ok(Box::new(file))
        };
        let (sinks, exports) = prepared.start(workers, &mut open)?;
        Ok((Self { exports, collectors, parts }, sinks))
    }

    pub(crate) fn control(&self) -> Control {
        Control { handle: self.exports.handle(), parts: self.parts.clone() }
    }

    /// Removes the outputs for states, for the thread that makes states.
    pub(crate) fn take_states(&mut self) -> States {
        self.exports.take_states()
    }

    /// Removes the outputs for alerts, for the merger.
    pub(crate) fn take_alerts(&mut self) -> Alerts {
        self.exports.take_alerts()
    }

    /// Waits until everything is written or abandoned. Returns the counters of the collectors and
    /// of the files.
    pub(crate) fn finish(self) -> (Vec<Exported>, Vec<Exported>) {
        let mut all = self.exports.finish();
        let files = all.split_off(self.collectors);
        (all, files)
    }
}

impl Control {
    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Whether there is nothing to rotate.
    pub(crate) fn is_empty(&self) -> bool {
        self.handle.is_empty()
    }

    /// Finishes files, begins new ones under the same names, and retries failed outputs.
    pub(crate) fn renew(&self) {
        self.handle.renew();
    }

    /// Abandons outputs that accept nothing from now on.
    pub(crate) fn interrupt(&self) {
        self.handle.interrupt();
    }

    /// Removes temporary files.
    pub(crate) fn abandon(&self) {
        self.parts.iter().for_each(Part::remove);
    }
}

/// Messages about failed outputs and lost records at the end, as kind and text.
pub(crate) fn messages(outputs: &[Exported]) -> Vec<(&'static str, String)> {
    let mut all = Vec::new();
    for one in outputs {
        if let Some(failure) = &one.failure {
            all.push(("error", format!("writing to {}: {failure}", one.output)));
        }
        for (reason, flows) in &one.not_sent {
            let Some(what) = Reason::text(reason) else { continue };
            let records = count(flows.records);
            let items = one.items.name();
            let items = if flows.records == 1 { items.trim_end_matches('s') } else { items };
            let text = format!("{}: {records} {items} lost: {what}", one.output);
            all.push(("warning", text));
        }
    }
    all
}

/// A file to which records are appended. A regular file gets its final name when complete.
struct RecordFile {
    file: AtomicFile,
    /// `None` until the next file is begun.
    out: Option<File>,
    /// Bytes of the open file that were written completely.
    len: u64,
    /// A partial write may follow these bytes.
    torn: bool,
}

impl RecordFile {
    fn open(mut file: AtomicFile) -> io::Result<Self> {
        let out = Some(file.begin_file()?);
        Ok(Self { file, out, len: 0, torn: false })
    }

    /// Truncates the file after a partial write.
    fn truncate_torn(&mut self) -> io::Result<()> {
        if let (true, Some(out)) = (self.torn, &mut self.out) {
            out.set_len(self.len)?;
            out.seek(SeekFrom::Start(self.len))?;
            self.torn = false;
        }
        Ok(())
    }
}

impl Store for RecordFile {
    fn write(&mut self, octets: &[u8]) -> io::Result<()> {
        self.truncate_torn()?;
        let out = match &mut self.out {
            Some(out) => out,
            none => {
                self.len = 0;
                none.insert(self.file.begin_file()?)
            }
        };
        let written = write_all(out, octets);
        if written.is_ok() {
            self.len += octets.len() as u64;
        } else if self.file.is_regular() {
            self.torn = true;
            // Truncating at once frees space. If it fails, the next call retries it first.
            let _ = self.truncate_torn();
        }
        written
    }

    fn finish(&mut self) -> io::Result<()> {
        if !self.file.is_regular() || self.out.is_none() {
            return Ok(());
        }
        self.truncate_torn()?;
        self.file.finish_and_claim()?;
        self.out = None;
        Ok(())
    }

    fn is_regular(&self) -> bool {
        self.file.is_regular() || self.out.is_none()
    }

    fn may_abandon(&self) -> bool {
        self.file.is_stdout()
    }
}

/// Like [`Write::write_all`], but stdout may be a pipe that another process made non-blocking.
fn write_all(out: &mut File, mut octets: &[u8]) -> io::Result<()> {
    while !octets.is_empty() {
        match out.write(octets) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => octets = &octets[written..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(PIPE_PAUSE),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_two_files_the_name_is_not_free() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("flows");
        let claim = || AtomicFile::claim(path.clone(), Existing::Next);
        let mut file = RecordFile::open(claim().unwrap()).unwrap();
        for _ in 0..2 {
            file.write(b"record\n").unwrap();
            // The second time there is no record between.
            for _ in 0..2 {
                file.finish().unwrap();
                let error = claim().err().unwrap().to_string();
                assert!(error.contains("is writing it"), "{error}");
            }
        }
        drop(file);
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2);
        assert!(claim().is_ok());
    }

    /// Both the write and the truncation fail; the next call truncates.
    #[test]
    fn a_torn_write_is_truncated_before_the_next_write() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("flows");
        for further in ["", "next\n"] {
            let mut file =
                RecordFile::open(AtomicFile::new(path.clone(), Existing::Replace)).unwrap();
            file.write(b"whole\n").unwrap();
            let part = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
            let part = part.into_iter().find(|name| *name != path).unwrap();
            let mut whole = file.out.replace(File::open(&part).unwrap()).unwrap();
            whole.write_all(b"to").unwrap();
            assert!(file.write(b"torn\n").is_err());
            assert!(file.write(b"torn\n").is_err());
            file.out = Some(whole);
            if !further.is_empty() {
                file.write(further.as_bytes()).unwrap();
            }
            file.finish().unwrap();
            let read = std::fs::read_to_string(&path).unwrap();
            assert_eq!(read, format!("whole\n{further}"));
        }
    }
}
