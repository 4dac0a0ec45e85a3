//! The outputs of a run for flow records, events and states: files and collectors.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ringtap_export::Summary as Exported;
use ringtap_export::{
    AlertOutput, Alerts, Changer, EventOutput, Exports, FileOutput, Handle, Items, Output,
    Prepared, Protocol, Reason, States, Store,
};
use ringtap_flow::Sinks;

use crate::alerts::find_program;

use ringtap_program::atomic_file::Part;
use ringtap_program::leftovers;
use ringtap_store::{
    AppendedFile, FileNames, FileRules, FreeSpace, OpenFile, OutputFiles, RecordFile,
    Store as Stored, StoreFile, Trace,
};
use ringtap_terminal::Usage;
use ringtap_terminal::numbers::count;

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

/// The path of an output, if it is a file; with its fields, if it has some.
///
/// # Errors
/// A field that is unknown.
pub(crate) fn written_path(output: &Output) -> anyhow::Result<Option<PathBuf>> {
    let Some(path) = output.path() else { return Ok(None) };
    let names = FileNames::new(path, None);
    let names = names.map_err(|error| Usage::of(format!("{output}: {error}")))?;
    Ok(Some(names.path().to_owned()))
}

/// The path whose folder gets the packets of alerts, if the output is one for them.
pub(crate) fn packets_path(output: &Output) -> Option<PathBuf> {
    match output {
        Output::Alerts(output) => Some(output.packets()?.join("alert.pcapng")),
        _ => None,
    }
}

/// Whether one of these receives states.
pub(crate) fn takes_states(exported: &[Output]) -> bool {
    exported.iter().any(|output| output.items() == Items::States)
}

/// Whether one of these names the probe: Kafka, IPFIX.
pub(crate) fn has_probe(exported: &[Output]) -> bool {
    exported.iter().any(|output| match output {
        Output::Collector(collector) => collector.protocol() == Protocol::Ipfix,
        Output::Topic(_) | Output::IpfixFile(_) => true,
        _ => false,
    })
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
    /// The names of those of `--export`.
    collectors: Names,
    parts: Parts,
    traces: Traces,
    space: Arc<FreeSpace>,
}

type Names = Arc<Mutex<HashSet<String>>>;

/// Files that are written under a temporary name.
type Parts = Arc<Mutex<Vec<Part>>>;

/// What files of alerts leave if they are empty, by the path of the output.
type Traces = Arc<Mutex<HashMap<PathBuf, Trace>>>;

/// The effects of signals on outputs. No call waits.
#[derive(Clone)]
pub(crate) struct Control {
    handle: Handle,
    parts: Parts,
}

/// Changes the outputs while the run goes on.
pub(crate) struct Changes {
    changer: Changer,
    collectors: Names,
    parts: Parts,
    traces: Traces,
    space: Arc<FreeSpace>,
    rules: FileRules,
}

/// What was opened for outputs.
#[derive(Default)]
struct OpenFiles {
    parts: Vec<Part>,
    traces: HashMap<PathBuf, Trace>,
}

/// Opens the files of outputs.
struct Files<'a> {
    named: &'a [Output],
    rules: FileRules,
    store: Option<&'a Arc<Stored>>,
    space: &'a Arc<FreeSpace>,
    /// The files of these outputs, for the space.
    own: Vec<Arc<OutputFiles>>,
}

impl<'a> Files<'a> {
    /// Before, finishes what processes that ended early left of the `named` outputs.
    fn new(
        named: &'a [Output],
        rules: FileRules,
        store: Option<&'a Arc<Stored>>,
        space: &'a Arc<FreeSpace>,
    ) -> anyhow::Result<Self> {
        let stored = |path: &Path| store.and_then(|store| Some((store, store.kind_of(path)?)));
        for output in named {
            if let (Some(path), Some(cut)) = (output.path(), output.cut())
                && stored(path).is_none()
            {
                let names = FileNames::new(path, rules.rotate_ns)?;
                leftovers::finish(
                    names.path(),
                    |file| cut.finish(file),
                    |time| names.at_clock(time),
                );
            }
        }
        let mut files = Vec::new();
        for output in named.iter().filter(|output| !output.is_stdout()) {
            let Some(path) = output.path() else { continue };
            if let Some((store, kind)) = stored(path) {
                files.push((store.file_names(kind)?, true, Some(Arc::clone(store))));
                continue;
            }
            let names = FileNames::new(path, rules.rotate_ns)?;
            // A file of alerts that is continued for ever has no old ones.
            let has_old = output.items() != Items::Alerts || names.are_several();
            files.push((names, has_old, None));
        }
        let own = space.add(files);
        Ok(Self { named, rules, store, space, own })
    }

    fn open(&self, path: &Path, opened: &mut OpenFiles) -> io::Result<Box<dyn Store>> {
        let Self { named, rules, space, own, .. } = self;
        let stored = self.store.and_then(|store| Some((store, store.kind_of(path)?)));
        if let Some((store, kind)) = stored {
            let names = store.file_names(kind)?;
            let file = StoreFile::open(Arc::clone(store), kind)?;
            return Ok(space.watch(own, names.path(), Box::new(file)));
        }
        let names = FileNames::new(path, rules.rotate_ns).map_err(io::Error::other)?;
        let path_given = names.path().to_owned();
        let is_here = |output: &&Output| output.path() == Some(path);
        let is_of_alerts = |output: &Output| output.items() == Items::Alerts;
        let store: Box<dyn Store> = if named.iter().filter(is_here).any(is_of_alerts) {
            let file = AppendedFile::open(names, rules.keep)?;
            opened.traces.insert(path.to_owned(), file.trace());
            Box::new(file)
        } else if named.iter().filter(is_here).any(Output::is_open) {
            Box::new(OpenFile::open(names, rules.keep)?)
        } else {
            let file = RecordFile::open(names, *rules)?;
            opened.parts.push(file.part());
            Box::new(file)
        };
        Ok(space.watch(own, &path_given, store))
    }
}

impl Outputs {
    /// Opens the files and starts the writers; returns a sink for each of the `workers`.
    pub(crate) fn start(
        named: &[Output],
        prepared: Prepared,
        workers: usize,
        collectors: &[Output],
        rules: FileRules,
        store: Option<&Arc<Stored>>,
    ) -> anyhow::Result<(Self, Vec<Sinks>)> {
        let space = Arc::new(FreeSpace::new(rules.keep_free));
        let files = Files::new(named, rules, store, &space)?;
        let mut opened = OpenFiles::default();
        let (sinks, exports) = prepared.start(workers, |path| files.open(path, &mut opened))?;
        drop(files);
        let collectors = collectors.iter().map(Output::to_string).collect();
        let collectors = Arc::new(Mutex::new(collectors));
        let OpenFiles { parts, traces } = opened;
        let (parts, traces) = (Arc::new(Mutex::new(parts)), Arc::new(Mutex::new(traces)));
        Ok((Self { exports, collectors, parts, traces, space }, sinks))
    }

    /// For changing them; it must be dropped before they end.
    pub(crate) fn changes(&self, rules: FileRules) -> Changes {
        Changes {
            changer: self.exports.changer(),
            collectors: Arc::clone(&self.collectors),
            parts: Arc::clone(&self.parts),
            traces: Arc::clone(&self.traces),
            space: Arc::clone(&self.space),
            rules,
        }
    }

    pub(crate) fn control(&self) -> Control {
        Control { handle: self.exports.handle(), parts: Arc::clone(&self.parts) }
    }

    /// Removes these, too, if the program exits early.
    pub(crate) fn extend_parts(&self, parts: Vec<Part>) {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner).extend(parts);
    }

    /// Removes the outputs for states, for the thread that makes states.
    pub(crate) fn take_states(&mut self) -> States {
        self.exports.take_states()
    }

    /// Removes the outputs for alerts, for the merger.
    pub(crate) fn take_alerts(&mut self) -> Alerts {
        self.exports.take_alerts()
    }

    /// Removes the outputs for totals, for the merger.
    pub(crate) fn take_totals(&mut self) -> Alerts {
        self.exports.take_totals()
    }

    /// Waits until everything is written or abandoned. Returns the counters of the collectors and
    /// of the files.
    pub(crate) fn finish(self) -> (Vec<Exported>, Vec<Exported>) {
        let all = self.exports.finish();
        let collectors = self.collectors.lock().unwrap_or_else(PoisonError::into_inner);
        all.into_iter().partition(|one| collectors.contains(&one.output))
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
        self.parts.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(Part::remove);
    }
}

impl Changes {
    /// Starts outputs, `collectors` among them, and ends others. Does not wait for these.
    pub(crate) fn change(
        &self,
        ending: &[Output],
        named: &[Output],
        collectors: &[Output],
        prepared: Prepared,
    ) -> anyhow::Result<()> {
        let files = Files::new(named, self.rules, None, &self.space)?;
        let mut opened = OpenFiles::default();
        let mut traces = self.traces.lock().unwrap_or_else(PoisonError::into_inner);
        let paths = ending.iter().filter_map(Output::path);
        let leaving: Vec<_> = paths.filter_map(|path| traces.remove_entry(path)).collect();
        leaving.iter().for_each(|(_, trace)| trace.remove_empty(true));
        let changed = self.changer.change(ending, prepared, |path| {
            let store = files.open(path, &mut opened)?;
            // Unless all can be opened.
            opened.traces.values().for_each(|trace| trace.remove_empty(true));
            Ok(store)
        });
        if let Err(error) = changed {
            leaving.iter().for_each(|(_, trace)| trace.remove_empty(false));
            traces.extend(leaving);
            self.space.take_back(&files.own);
            return Err(error.into());
        }
        opened.traces.values().for_each(|trace| trace.remove_empty(false));
        traces.extend(opened.traces);
        drop(traces);
        let names = collectors.iter().map(Output::to_string);
        self.collectors.lock().unwrap_or_else(PoisonError::into_inner).extend(names);
        let mut all = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(Part::is_open);
        all.extend(opened.parts);
        Ok(())
    }

    /// The outputs that run, also those that are ending.
    pub(crate) fn running(&self) -> Vec<Output> {
        self.changer.running()
    }

    /// Removes outputs that have ended from the list.
    pub(crate) fn reap(&self) {
        self.changer.reap();
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

/// Memory of all outputs that have packets, besides the frames: the decoder of a file, and a frame that is written.
pub(crate) fn packet_bytes(outputs: &[Output]) -> u64 {
    let each = ringtap_wire::Decoder::BYTES + ringtap_engine::LONGEST_FRAME as u64;
    outputs.iter().filter_map(packets_path).count() as u64 * each
}
