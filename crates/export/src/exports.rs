//! All outputs of a run: preparing, starting, watching and ending them.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;

use ringtap_flow::{RecordSink, Sinks};

use crate::alerts::Alerts;
use crate::launch::{BoxedSinks, Collected, Launch, Ready, Started};
use crate::output::Output;
use crate::settings::Settings;
use crate::shared::Shared;
use crate::states::States;
use crate::store::Store;
use crate::summary::{Status, Summary};

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
    settings: Settings,
}

/// The outputs of a run, for their owner.
pub struct Exports {
    outputs: Vec<Started>,
    /// The sinks of outputs for states.
    states: States,
    /// The sending ends of outputs for alerts.
    alerts: Alerts,
    /// The sending ends of outputs for totals.
    totals: Alerts,
}

/// A prepared output.
struct Start {
    name: String,
    joins_parts: bool,
    ready: Ready,
}

/// A handle for other threads: to watch, renew and interrupt the outputs.
#[derive(Clone)]
pub struct Handle(Arc<[Arc<Shared>]>);

/// All outputs of one worker for items of one type.
struct Several<I>(Vec<Box<dyn RecordSink<I>>>);

impl<I> Several<I> {
    /// The outputs as one; `None` if there are none.
    fn joined(mut self) -> Option<Box<dyn RecordSink<I>>>
    where
        I: 'static,
    {
        if self.0.len() > 1 { Some(Box::new(self)) } else { self.0.pop() }
    }
}

impl<I> RecordSink<I> for Several<I> {
    fn take(&mut self, item: &I) {
        self.0.iter_mut().for_each(|sink| sink.take(item));
    }

    fn time(&mut self, time_ns: u64) {
        self.0.iter_mut().for_each(|sink| sink.time(time_ns));
    }

    fn mark(&mut self) {
        self.0.iter_mut().for_each(|sink| sink.mark());
    }

    fn ending(&mut self) {
        self.0.iter_mut().for_each(|sink| sink.ending());
    }

    fn finish(&mut self) {
        self.0.iter_mut().for_each(|sink| sink.finish());
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
            Ok(ready) => {
                Ok(Start { name: output.to_string(), joins_parts: output.joins_parts(), ready })
            }
            Err(error) => Err(StartError { output: output.to_string(), error }),
        };
        let outputs = outputs.iter().map(prepare).collect::<Result<_, _>>()?;
        Ok(Self { outputs, programs: Vec::new(), settings })
    }

    /// With connections to the helpers that run programs for alerts, in the order of these outputs. A helper reads
    /// [`Request`](crate::Request)s and answers each with a [`Reply`](crate::Reply).
    pub fn with_programs(self, programs: Vec<UnixStream>) -> Self {
        Self { programs, ..self }
    }

    /// Opens files with `open` and starts a writer for each output. Returns the sinks of each of the `workers`.
    ///
    /// # Errors
    /// A file that cannot be written, a thread that cannot be started.
    pub fn start(
        self,
        workers: usize,
        mut open: impl FnMut(&Path) -> io::Result<Box<dyn Store>>,
    ) -> Result<(Vec<Sinks>, Exports), StartError> {
        let (mut sinks, mut programs) = (Collected::default(), self.programs.into_iter());
        // If one of them cannot start, those before are cancelled as this is dropped, before their sinks.
        let outputs = Vec::with_capacity(self.outputs.len());
        let (states, alerts, totals) = Default::default();
        let mut exports = Exports { outputs, states, alerts, totals };
        for (number, Start { name, joins_parts, ready }) in (1..).zip(self.outputs) {
            let mut launch = Launch {
                number,
                workers,
                settings: &self.settings,
                name: name.clone(),
                joins_parts,
                open: &mut open,
                programs: &mut programs,
                sinks: &mut sinks,
            };
            let started = ready(&mut launch);
            exports.outputs.push(started.map_err(|error| StartError { output: name, error })?);
        }
        let Collected { records, events, states, alerts, totals } = sinks;
        exports.states = States::new(states);
        (exports.alerts, exports.totals) = (Alerts::new(alerts), Alerts::new(totals));
        let mut records = by_worker(records, workers);
        let mut events = by_worker(events, workers);
        let of_worker = |_| Sinks {
            records: records.next().flatten(),
            events: events.next().flatten(),
            ..Sinks::default()
        };
        Ok(((0..workers).map(of_worker).collect(), exports))
    }
}

/// The sinks of each worker as one; `None` without outputs for such items.
fn by_worker<I: 'static>(
    outputs: Vec<BoxedSinks<I>>,
    workers: usize,
) -> impl Iterator<Item = Option<Box<dyn RecordSink<I>>>> {
    let mut all: Vec<_> = (0..workers).map(|_| Several(Vec::new())).collect();
    for sinks in outputs {
        all.iter_mut().zip(sinks).for_each(|(own, sink)| own.0.push(sink));
    }
    all.into_iter().map(Several::joined)
}

impl Exports {
    /// For monitoring the outputs.
    pub fn handle(&self) -> Handle {
        Handle(self.outputs.iter().map(|one| Arc::clone(&one.shared)).collect())
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
        drop(self.take_alerts());
        drop(self.take_totals());
        self.outputs.iter().for_each(|one| one.shared.end());
        self.outputs.iter_mut().map(Started::end).collect()
    }
}

impl Drop for Exports {
    fn drop(&mut self) {
        // After `finish` there are no threads left.
        let running = self.outputs.iter().filter(|one| one.is_running());
        running.for_each(|one| one.shared.cancel());
        self.end();
    }
}

impl Handle {
    /// Returns true if there are no outputs.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Finishes files and starts new ones with the same names, and tries again what failed. Does not wait.
    pub fn renew(&self) {
        self.0.iter().for_each(|shared| shared.request_renewal());
    }

    /// The user wants to end the run: outputs that accept nothing are not waited for. Does not wait.
    pub fn interrupt(&self) {
        self.0.iter().for_each(|shared| shared.interrupt());
    }

    /// The state of all outputs, in the order of the command line.
    pub fn status(&self) -> Vec<Status> {
        self.0.iter().map(|shared| shared.status()).collect()
    }
}
