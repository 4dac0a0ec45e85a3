//! All outputs of a run: preparing, starting, watching, changing and ending them.
//!
//! ```text
//! Changer ─ a sink that begins, the number of one that ends ─▶ Mail ─▶ Several, of a worker: before its next item or mark
//! ```
//!
//! Outputs that stay are not touched: their connections, templates and sequence numbers go on.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use ringtap_flow::{Event, FlowRecord, RecordSink, Sinks};

use crate::alerts::{Alerts, WritePackets};
use crate::launch::{BoxedSinks, Collected, Launch, Ready, Started};
use crate::output::Output;
use crate::settings::Settings;
use crate::shared::Shared;
use crate::states::States;
use crate::store::Store;
use crate::summary::{Items, Status, Summary};

/// An output that cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("opening the output {output}")]
pub struct StartError {
    output: String,
    #[source]
    error: io::Error,
}

/// Outputs before the run: hosts are resolved, certificates are read and sockets are opened, but files are not. So a
/// program can drop privileges before it opens files.
pub struct Prepared {
    /// Their names, and how they start.
    outputs: Vec<Start>,
    /// To the helpers of alert programs, in the order of the outputs.
    programs: Vec<UnixStream>,
    /// The writers of packets of alerts, in the order of the outputs.
    packets: Vec<Box<dyn WritePackets>>,
    settings: Settings,
    changes: bool,
}

/// The outputs of a run, for their owner.
pub struct Exports {
    all: Arc<Mutex<Outputs>>,
    handle: Handle,
    /// The sinks of outputs for states.
    states: States,
    /// The sending ends of outputs for alerts.
    alerts: Alerts,
    /// The sending ends of outputs for totals.
    totals: Alerts,
    changer: Changer,
}

/// Changes the outputs of a run while it goes on.
#[derive(Clone)]
pub struct Changer {
    all: Arc<Mutex<Outputs>>,
    handle: Handle,
    records: Arc<[Mail<FlowRecord>]>,
    events: Arc<[Mail<Event>]>,
    alerts: Alerts,
    workers: usize,
}

/// Why outputs do not change. Those before go on.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// One cannot be opened.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The run began without an output for such items, so workers do not make them.
    #[error("the run has no output for {0}, and cannot begin one")]
    NoSuchItems(&'static str),
    /// The run has ended.
    #[error("the run has ended")]
    Ended,
}

/// The running outputs, in their order, and what those that have ended sent and lost.
#[derive(Default)]
struct Outputs {
    running: Vec<Running>,
    ended: BTreeMap<String, Summary>,
    /// The number of the last one.
    last: u32,
    over: bool,
}

/// A running output.
struct Running {
    number: u32,
    output: Output,
    started: Started,
    /// Whether it ends as soon as all workers have finished their sinks.
    leaves: bool,
}

/// A prepared output.
struct Start {
    output: Output,
    ready: Ready,
}

/// A handle for other threads: to watch, renew and interrupt the outputs.
#[derive(Clone, Default)]
pub struct Handle(Arc<Watched>);

#[derive(Default)]
struct Watched {
    all: RwLock<Vec<Arc<Shared>>>,
    interrupted: AtomicBool,
}

/// The sinks of a worker that begin and end while it runs.
struct Mail<I>(Arc<Letters<I>>);

struct Letters<I> {
    waiting: AtomicBool,
    letters: Mutex<Vec<Letter<I>>>,
}

enum Letter<I> {
    Begin(u32, Box<dyn RecordSink<I>>),
    /// The number of an output.
    End(u32),
}

impl<I> Mail<I> {
    fn new() -> Self {
        let letters = Mutex::new(Vec::new());
        Self(Arc::new(Letters { waiting: AtomicBool::new(false), letters }))
    }

    fn letters(&self) -> MutexGuard<'_, Vec<Letter<I>>> {
        self.0.letters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The worker takes all of these at once, so that a record goes to an output or to its successor.
    fn send(&self, letters: impl Iterator<Item = Letter<I>>) {
        self.letters().extend(letters);
        // Relaxed: the lock orders the letter.
        self.0.waiting.store(true, Ordering::Relaxed);
    }

    /// What was sent since the last call.
    fn take(&self) -> Vec<Letter<I>> {
        let mut letters = self.letters();
        self.0.waiting.store(false, Ordering::Relaxed);
        std::mem::take(&mut *letters)
    }
}

impl<I> Clone for Mail<I> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// All outputs of one worker for items of one type.
struct Several<I> {
    sinks: Vec<(u32, Box<dyn RecordSink<I>>)>,
    /// For outputs that change.
    mail: Option<Mail<I>>,
    /// The time that it was given last.
    time_ns: Option<u64>,
}

impl<I> Several<I> {
    /// The outputs as one; `None` if there are none.
    fn joined(mut self) -> Joined<I>
    where
        I: 'static,
    {
        match (self.sinks.len(), &self.mail) {
            (0, _) => None,
            (1, None) => self.sinks.pop().map(|(_, sink)| sink),
            _ => Some(Box::new(self)),
        }
    }

    fn each(&mut self, work: impl FnMut(&mut Box<dyn RecordSink<I>>)) {
        self.sinks.iter_mut().map(|(_, sink)| sink).for_each(work);
    }

    /// Begins and ends sinks.
    #[inline]
    fn change(&mut self) {
        if let Some(mail) = &self.mail
            && mail.0.waiting.load(Ordering::Relaxed)
        {
            let letters = mail.take();
            letters.into_iter().for_each(|letter| self.open(letter));
        }
    }

    #[cold]
    fn open(&mut self, letter: Letter<I>) {
        match letter {
            Letter::Begin(number, mut sink) => {
                self.time_ns.iter().for_each(|time_ns| sink.time(*time_ns));
                self.sinks.push((number, sink));
            }
            Letter::End(number) => {
                let ending = self.sinks.extract_if(.., |(own, _)| *own == number);
                ending.for_each(|(_, mut sink)| sink.finish());
            }
        }
    }
}

impl<I> RecordSink<I> for Several<I> {
    fn take(&mut self, item: &I) {
        self.change();
        self.each(|sink| sink.take(item));
    }

    fn time(&mut self, time_ns: u64) {
        self.time_ns = Some(time_ns);
        self.each(|sink| sink.time(time_ns));
    }

    fn mark(&mut self) {
        self.change();
        self.each(|sink| sink.mark());
    }

    fn ending(&mut self) {
        self.change();
        self.each(|sink| sink.ending());
    }

    fn finish(&mut self) {
        self.change();
        self.each(|sink| sink.finish());
    }
}

impl Prepared {
    /// Prepares outputs.
    ///
    /// # Errors
    /// A host without an address, certificates or a password that cannot be read, sampling that the protocol cannot
    /// represent, a socket that cannot be opened. A collector that is down is not an error: connecting is tried again and again.
    pub fn new(outputs: &[Output], settings: Settings) -> Result<Self, StartError> {
        let prepare = |output: &Output| match output.prepare(&settings) {
            Ok(ready) => Ok(Start { output: output.clone(), ready }),
            Err(error) => Err(StartError { output: output.to_string(), error }),
        };
        let outputs = outputs.iter().map(prepare).collect::<Result<_, _>>()?;
        let (programs, packets) = (Vec::new(), Vec::new());
        Ok(Self { outputs, programs, packets, settings, changes: false })
    }

    /// As the first outputs of a run whose outputs change ([`Changer`]).
    pub fn changing(self, changes: bool) -> Self {
        Self { changes, ..self }
    }

    /// With connections to the helpers that run programs for alerts, in the order of these outputs. A helper reads
    /// [`Request`](crate::Request)s and answers each with a [`Reply`](crate::Reply).
    pub fn with_programs(self, programs: Vec<UnixStream>) -> Self {
        Self { programs, ..self }
    }

    /// With writers of the packets of alerts, in the order of these outputs.
    pub fn with_packets(self, packets: Vec<Box<dyn WritePackets>>) -> Self {
        Self { packets, ..self }
    }

    /// Opens files with `open` and starts a writer for each output. Returns the sinks of each of the `workers`.
    ///
    /// # Errors
    /// A file that cannot be written, a thread that cannot be started.
    pub fn start(
        self,
        workers: usize,
        open: impl FnMut(&Path) -> io::Result<Box<dyn Store>>,
    ) -> Result<(Vec<Sinks>, Exports), StartError> {
        // If one of them cannot start, those before are cancelled as this is dropped, before their sinks.
        let (mut exports, change) = (Exports::new(workers), self.changes);
        let Collected { records, events, states, alerts, totals } =
            self.launch(workers, &exports.all, open)?;
        exports.states = States::new(states);
        exports.alerts.extend(alerts);
        exports.totals.extend(totals);
        exports.handle.update(&exports.all);
        let (mut records, record_mail) = by_worker(records, workers, change);
        let (mut events, event_mail) = by_worker(events, workers, change);
        let changer = &mut exports.changer;
        (changer.records, changer.events) = (record_mail, event_mail);
        let of_worker = |_| Sinks {
            records: records.next().flatten(),
            events: events.next().flatten(),
            ..Sinks::default()
        };
        Ok(((0..workers).map(of_worker).collect(), exports))
    }

    /// Starts the writers, as the last of `all`.
    fn launch(
        self,
        workers: usize,
        all: &Mutex<Outputs>,
        mut open: impl FnMut(&Path) -> io::Result<Box<dyn Store>>,
    ) -> Result<Collected, StartError> {
        let (mut sinks, mut programs) = (Collected::default(), self.programs.into_iter());
        let mut packets = self.packets.into_iter();
        let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
        for Start { output, ready } in self.outputs {
            let (number, name) = (all.last + 1, output.to_string());
            let mut launch = Launch {
                number,
                workers,
                settings: &self.settings,
                name: name.clone(),
                joins_parts: output.joins_parts(),
                open: &mut open,
                programs: &mut programs,
                packets: &mut packets,
                sinks: &mut sinks,
            };
            let started = ready(&mut launch);
            let started = started.map_err(|error| StartError { output: name, error })?;
            all.last = number;
            all.running.push(Running { number, output, started, leaves: false });
        }
        Ok(sinks)
    }
}

/// The sinks of a worker as one.
type Joined<I> = Option<Box<dyn RecordSink<I>>>;

/// The sinks of each worker as one, `None` without outputs for such items; and how they change.
fn by_worker<I: 'static>(
    outputs: Vec<(u32, BoxedSinks<I>)>,
    workers: usize,
    change: bool,
) -> (impl Iterator<Item = Joined<I>>, Arc<[Mail<I>]>) {
    let changes = change && !outputs.is_empty();
    let mail: Vec<_> = (0..workers).filter(|_| changes).map(|_| Mail::new()).collect();
    let own = |worker: usize| Several {
        sinks: Vec::new(),
        mail: mail.get(worker).cloned(),
        time_ns: None,
    };
    let mut all: Vec<_> = (0..workers).map(own).collect();
    for (number, sinks) in outputs {
        all.iter_mut().zip(sinks).for_each(|(own, sink)| own.sinks.push((number, sink)));
    }
    (all.into_iter().map(Several::joined), mail.into())
}

impl Outputs {
    /// Removes outputs that have ended; waits for those that end if `waits`.
    fn reap(&mut self, waits: bool) {
        let ended =
            self.running.extract_if(.., |one| one.leaves && (waits || one.started.is_finished()));
        for mut one in ended {
            add(&mut self.ended, one.started.end());
        }
    }

    /// Waits until all have ended. Returns what each sent and lost, in their order, then those that ended before.
    fn end(&mut self) -> Vec<Summary> {
        self.over = true;
        self.running.iter().for_each(|one| one.started.shared.end());
        self.reap(true);
        let mut all = Vec::new();
        for mut one in std::mem::take(&mut self.running) {
            let mut summary = one.started.end();
            // It ended, and began again.
            if let Some(before) = self.ended.remove(&summary.output) {
                summary.add(before);
            }
            all.push(summary);
        }
        all.extend(std::mem::take(&mut self.ended).into_values());
        all
    }
}

/// Adds a summary to those of the same name.
fn add(all: &mut BTreeMap<String, Summary>, summary: Summary) {
    match all.get_mut(&summary.output) {
        Some(own) => own.add(summary),
        None => {
            all.insert(summary.output.clone(), summary);
        }
    }
}

impl Changer {
    /// Starts outputs, opening files with `open`, and ends those that are equal to one of `ending`. Workers use the new
    /// ones, and finish the others, before their next record or mark. Does not wait for them.
    ///
    /// # Errors
    /// If an output cannot be started, none is started and none ends.
    pub fn change(
        &self,
        ending: &[Output],
        beginning: Prepared,
        open: impl FnMut(&Path) -> io::Result<Box<dyn Store>>,
    ) -> Result<(), ChangeError> {
        for Start { output, .. } in &beginning.outputs {
            let has_sinks = match output.items() {
                Items::Flows => !self.records.is_empty(),
                Items::Events => !self.events.is_empty(),
                Items::Alerts => true,
                Items::States | Items::Totals => false,
            };
            if !has_sinks {
                return Err(ChangeError::NoSuchItems(output.items().name()));
            }
        }
        let first = self.all().last + 1;
        let launched = beginning.launch(self.workers, &self.all, open);
        let mut all = self.all();
        let Collected { records, events, alerts, .. } = match launched {
            Ok(sinks) if !all.over => sinks,
            failed => {
                let started = all.running.extract_if(.., |one| one.number >= first);
                started.for_each(|one| one.started.shared.cancel());
                return Err(failed.err().map_or(ChangeError::Ended, ChangeError::Start));
            }
        };
        let mut leaving = Vec::new();
        for one in all.running.iter_mut().filter(|one| one.number < first && !one.leaves) {
            one.leaves = ending.contains(&one.output);
            if one.leaves {
                leaving.push(one.number);
                self.alerts.remove(one.number);
                one.started.shared.end();
                // A full disk is not waited for longer than a collector.
                if one.output.path().is_some() {
                    one.started.shared.interrupt();
                }
            }
        }
        deliver(&self.records, &leaving, records);
        deliver(&self.events, &leaving, events);
        self.alerts.extend(alerts);
        drop(all);
        self.reap();
        Ok(())
    }

    /// Removes outputs that have ended from the list.
    pub fn reap(&self) {
        self.all().reap(false);
        self.handle.update(&self.all);
    }

    fn all(&self) -> MutexGuard<'_, Outputs> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The outputs that run, also those that are ending.
    pub fn running(&self) -> Vec<Output> {
        self.all().running.iter().map(|one| one.output.clone()).collect()
    }
}

/// Leaves for each worker the numbers of outputs that end, and its sinks of those that begin.
fn deliver<I>(mail: &[Mail<I>], leaving: &[u32], outputs: Vec<(u32, BoxedSinks<I>)>) {
    let mut outputs: Vec<_> =
        outputs.into_iter().map(|(number, sinks)| (number, sinks.into_iter())).collect();
    for mail in mail {
        let begin = outputs
            .iter_mut()
            .filter_map(|(number, sinks)| Some(Letter::Begin(*number, sinks.next()?)));
        mail.send(leaving.iter().map(|number| Letter::End(*number)).chain(begin));
    }
}

impl Exports {
    fn new(workers: usize) -> Self {
        let (all, handle) = (Arc::<Mutex<Outputs>>::default(), Handle::default());
        let alerts = Alerts::default();
        let changer = Changer {
            all: Arc::clone(&all),
            handle: handle.clone(),
            records: Arc::new([]),
            events: Arc::new([]),
            alerts: alerts.clone(),
            workers,
        };
        let (states, totals) = Default::default();
        Self { all, handle, states, alerts, totals, changer }
    }

    /// For monitoring the outputs.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// For changing them; it must be dropped before they end.
    pub fn changer(&self) -> Changer {
        self.changer.clone()
    }

    /// Removes the sinks of outputs for states, for the thread that makes states.
    pub fn take_states(&mut self) -> States {
        std::mem::take(&mut self.states)
    }

    /// Removes the sending ends of outputs for alerts, for the merger.
    pub fn take_alerts(&mut self) -> Alerts {
        std::mem::take(&mut self.alerts)
    }

    /// Removes the sending ends of outputs for totals, for the merger.
    pub fn take_totals(&mut self) -> Alerts {
        std::mem::take(&mut self.totals)
    }

    /// Waits until all records are written or dropped, and returns the summaries. All sinks must be dropped or
    /// finished.
    pub fn finish(mut self) -> Vec<Summary> {
        self.end()
    }

    fn end(&mut self) -> Vec<Summary> {
        drop(self.take_states());
        self.alerts.close();
        self.changer.alerts.close();
        self.totals.close();
        // Sinks that no worker has taken.
        self.changer.records.iter().for_each(|mail| drop(mail.take()));
        self.changer.events.iter().for_each(|mail| drop(mail.take()));
        self.all.lock().unwrap_or_else(PoisonError::into_inner).end()
    }
}

impl Drop for Exports {
    fn drop(&mut self) {
        // After `finish` there are no threads left.
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let running = all.running.iter().filter(|one| one.started.is_running());
        running.for_each(|one| one.started.shared.cancel());
        drop(all);
        self.end();
    }
}

impl Handle {
    fn each(&self) -> Vec<Arc<Shared>> {
        self.0.all.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Watches the outputs that run now.
    fn update(&self, all: &Mutex<Outputs>) {
        let all = all.lock().unwrap_or_else(PoisonError::into_inner);
        let running = all.running.iter().map(|one| Arc::clone(&one.started.shared));
        *self.0.all.write().unwrap_or_else(PoisonError::into_inner) = running.collect();
        drop(all);
        // One that began at the same time, or later.
        if self.0.interrupted.load(Ordering::SeqCst) {
            self.each().iter().for_each(|shared| shared.interrupt());
        }
    }

    /// Returns true if there are no outputs.
    pub fn is_empty(&self) -> bool {
        self.each().is_empty()
    }

    /// Finishes files and starts new ones with the same names, and tries again what failed. Does not wait.
    pub fn renew(&self) {
        self.each().iter().for_each(|shared| shared.request_renewal());
    }

    /// The user wants to end the run: outputs that accept nothing are not waited for. Does not wait.
    pub fn interrupt(&self) {
        self.0.interrupted.store(true, Ordering::SeqCst);
        self.each().iter().for_each(|shared| shared.interrupt());
    }

    /// The state of all outputs, in the order of the command line; of an output that ends and begins again, of the one that
    /// begins.
    pub fn status(&self) -> Vec<Status> {
        let mut all: Vec<Status> = Vec::new();
        for shared in self.each() {
            let status = shared.status();
            match all.iter_mut().find(|own| own.name == status.name) {
                Some(own) => *own = status,
                None => all.push(status),
            }
        }
        all
    }
}
