//! The start of an output: its writer, and the sinks of all workers.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use ringtap_flow::{Event, FlowRecord, RecordSink};

use crate::alerts::{AlertSender, WritePackets};
use crate::block::{Encode, Inbox, Room, Sender, lane};
use crate::settings::Settings;
use crate::shared::{Shared, WaitPolicy, now};
use crate::states::TakeState;
use crate::store::{Store, wait_policy};
use crate::summary::{Items, Summary};
use crate::writer::{self, Rotation, Sink};

/// Time for a writer to notice its deadline. A writer that does not is blocked in a write, and its thread is abandoned.
const NOTICE: Duration = Duration::from_millis(200);

/// A prepared output: starts its writer, and adds its sinks to those of the run.
pub(crate) type Ready = Box<dyn FnOnce(&mut Launch<'_>) -> io::Result<Started> + Send>;

/// The sinks of an output, one for each worker.
pub(crate) type BoxedSinks<I> = Vec<Box<dyn RecordSink<I>>>;

/// The sinks of all outputs, with their numbers.
#[derive(Default)]
pub(crate) struct Collected {
    pub(crate) records: Vec<(u32, BoxedSinks<FlowRecord>)>,
    pub(crate) events: Vec<(u32, BoxedSinks<Event>)>,
    /// Of the thread that makes states.
    pub(crate) states: Vec<Box<dyn TakeState>>,
    /// Of the merger.
    pub(crate) alerts: Vec<(u32, AlertSender)>,
    /// Of the merger, too.
    pub(crate) totals: Vec<(u32, AlertSender)>,
}

/// What an output needs to start.
pub(crate) struct Launch<'a> {
    /// The number of the output, from 1.
    pub(crate) number: u32,
    pub(crate) workers: usize,
    pub(crate) settings: &'a Settings,
    pub(crate) name: String,
    /// As in [`crate::place::Place::joins_parts`].
    pub(crate) joins_parts: bool,
    /// Opens files.
    pub(crate) open: &'a mut dyn FnMut(&Path) -> io::Result<Box<dyn Store>>,
    /// Connections to the helpers that run programs, in the order of the outputs.
    pub(crate) programs: &'a mut dyn Iterator<Item = UnixStream>,
    /// The writers of packets of alerts, in the order of the outputs.
    pub(crate) packets: &'a mut dyn Iterator<Item = Box<dyn WritePackets>>,
    pub(crate) sinks: &'a mut Collected,
}

/// A running output.
pub(crate) struct Started {
    pub(crate) shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// Passes on the parts of flows that have packets, for outputs whose records do not say which part they are.
struct WithPackets(Box<dyn RecordSink>);

impl RecordSink for WithPackets {
    fn take(&mut self, record: &FlowRecord) {
        if record.packets != [0; 2] {
            self.0.take(record);
        }
    }

    fn mark(&mut self) {
        self.0.mark();
    }

    fn ending(&mut self) {
        self.0.ending();
    }

    fn finish(&mut self) {
        self.0.finish();
    }
}

impl Launch<'_> {
    /// Opens a file, and returns how long the end of the run waits for it.
    pub(crate) fn store(&mut self, path: &Path) -> io::Result<(Box<dyn Store>, WaitPolicy)> {
        let store = (self.open)(path)?;
        let wait_policy = wait_policy(&*store);
        Ok((store, wait_policy))
    }

    /// Starts the writer of an output for flow records; each worker has an encoder.
    pub(crate) fn records<E: Encode<Item = FlowRecord>, S: Sink<Payload = E::Payload>>(
        &mut self,
        wait_policy: WaitPolicy,
        encoder: impl Fn() -> E,
        sink: S,
    ) -> io::Result<Started> {
        self.records_in(self.file_period(wait_policy), wait_policy, encoder, sink)
    }

    /// As [`Self::records`], in periods of this length.
    pub(crate) fn records_in<E: Encode<Item = FlowRecord>, S: Sink<Payload = E::Payload>>(
        &mut self,
        period_ns: Option<u64>,
        wait_policy: WaitPolicy,
        encoder: impl Fn() -> E,
        sink: S,
    ) -> io::Result<Started> {
        let (mut sinks, started) = self.run(period_ns, wait_policy, Items::Flows, encoder, sink)?;
        if self.settings.interfaces.has_parts() && !self.joins_parts {
            sinks = sinks.into_iter().map(|sink| Box::new(WithPackets(sink)) as _).collect();
        }
        self.sinks.records.push((self.number, sinks));
        Ok(started)
    }

    /// Starts the writer of an output for events; each worker has an encoder.
    pub(crate) fn events<E: Encode<Item = Event>, S: Sink<Payload = E::Payload>>(
        &mut self,
        wait_policy: WaitPolicy,
        encoder: impl Fn() -> E,
        sink: S,
    ) -> io::Result<Started> {
        let period_ns = self.file_period(wait_policy);
        let (sinks, started) = self.run(period_ns, wait_policy, Items::Events, encoder, sink)?;
        self.sinks.events.push((self.number, sinks));
        Ok(started)
    }

    /// The length of the periods that have a file each.
    pub(crate) fn file_period(&self, wait_policy: WaitPolicy) -> Option<u64> {
        self.settings.rotate_ns.filter(|_| wait_policy == WaitPolicy::File)
    }

    fn run<E: Encode, S: Sink<Payload = E::Payload>>(
        &self,
        period_ns: Option<u64>,
        wait_policy: WaitPolicy,
        items: Items,
        encoder: impl Fn() -> E,
        sink: S,
    ) -> io::Result<(BoxedSinks<E::Item>, Started)> {
        let Settings { buffer_bytes, live, prompt, .. } = *self.settings;
        let room = Room { period_ns, ..Room::new(buffer_bytes, self.workers, !live, prompt) };
        let shared = self.shared(wait_policy, items);
        let (mut sinks, mut inboxes): (BoxedSinks<E::Item>, _) = (Vec::new(), Vec::new());
        for _ in 0..self.workers {
            let (sender, inbox) = lane_of(encoder(), room, &shared)?;
            sinks.push(Box::new(sender));
            inboxes.push(inbox);
        }
        let rotation = Rotation::new(period_ns, live);
        Ok((sinks, self.write(shared, inboxes, sink, rotation)?))
    }

    /// Starts the writer of an output whose items come from one thread.
    pub(crate) fn single<E: Encode, S: Sink<Payload = E::Payload>>(
        &self,
        shared: &Arc<Shared>,
        room: Room,
        encoder: E,
        sink: S,
    ) -> io::Result<(Sender<E>, Started)> {
        let (sender, inbox) = lane_of(encoder, room, shared)?;
        let rotation = Rotation::new(None, self.settings.live);
        Ok((sender, self.write(Arc::clone(shared), vec![inbox], sink, rotation)?))
    }

    pub(crate) fn shared(&self, wait_policy: WaitPolicy, items: Items) -> Arc<Shared> {
        Arc::new(Shared::new(self.name.clone(), wait_policy, self.settings.live).of(items))
    }

    fn write<S: Sink>(
        &self,
        shared: Arc<Shared>,
        inboxes: Vec<Inbox<S::Payload>>,
        sink: S,
        rotation: Rotation,
    ) -> io::Result<Started> {
        let own = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name(format!("output {}", self.number));
        let thread = thread.spawn(move || writer::run(sink, inboxes, own, rotation))?;
        shared.set_writer(thread.thread().clone());
        Ok(Started { shared, thread: Some(thread) })
    }
}

/// The two ends between a sender and the writer.
fn lane_of<E: Encode>(
    encoder: E,
    room: Room,
    shared: &Arc<Shared>,
) -> io::Result<(Sender<E>, Inbox<E::Payload>)> {
    lane(encoder, room, Arc::clone(shared)).map_err(io::Error::other)
}

impl Started {
    /// Whether the writer was not waited for yet.
    pub(crate) fn is_running(&self) -> bool {
        self.thread.is_some()
    }

    /// Whether its thread has ended.
    pub(crate) fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits for the writer. If its thread is abandoned, later actions of it do not change the summary.
    pub(crate) fn end(&mut self) -> Summary {
        let Self { shared, thread } = self;
        let Some(thread) = thread.take() else { return shared.summary() };
        let mut over_since = None;
        while !thread.is_finished() {
            if !shared.over() {
                over_since = None;
            } else if over_since.get_or_insert_with(now).elapsed() >= NOTICE {
                return shared.abandon("it accepts no data");
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        match thread.join() {
            Ok(()) => shared.summary(),
            Err(_) => shared.abandon("its writer panicked"),
        }
    }
}
