//! All outputs of a run: preparing, starting, watching and ending them.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use ringtap_flow::{Event, FlowRecord, RecordSink, Sinks};

use crate::alerts::{self, AlertSender, AlertSink, Alerts, NoticeEncoder, Target};
#[cfg(feature = "arrow")]
use crate::batches::BatchSink;
use crate::block::{Encode, Room, Sender, lane};
use crate::encode::{Encoder, Ipfix, Lines, NetFlow5, NetFlow9, STREAM_LIMIT, UDP_LIMIT};
use crate::exporter::Exporter;
use crate::kafka::Access;
#[cfg(feature = "kafka")]
use crate::kafka::{PartEncoder, PartSender, PartSink, RecordEncoder, TopicSink};
use crate::messages::MessageEncoder;
#[cfg(feature = "parquet")]
use crate::rows::{RowEncoder, RowSink};
use crate::shared::{Shared, WaitPolicy, now};
use crate::states::{States, TakeState};
use crate::store::{Store, wait_policy};
use crate::text::{LineEncoder, LineSink};
use crate::transports::{self, FileLink, Link, TcpLink, TlsClient, UdpLink};
use crate::writer::{self, Sink};
use crate::{
    AlertOutput, Collector, EventOutput, FileOutput, Items, Output, Protocol, Sampling, Settings,
    Status, Summary, Transport,
};

/// How long to wait at the end for a collector that accepts nothing.
pub const LINGER: Duration = Duration::from_secs(5);

/// Time for a writer to notice its deadline. A writer that does not is blocked in a write, and its thread is abandoned.
const NOTICE: Duration = Duration::from_millis(200);

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
    outputs: Vec<(Output, Ready)>,
    /// To the helpers of alert programs, in the order of the outputs.
    programs: Vec<UnixStream>,
    settings: Settings,
}

/// The prepared part of an output.
enum Ready {
    /// Nothing: a file is opened later.
    File,
    /// The link to a collector.
    Link(Box<dyn Link>),
    /// The access to a topic of Kafka.
    Topic(Box<Access>),
    /// A place for alerts that is not a file or a program.
    Target(Box<dyn Target>),
}

/// The outputs of a run, for their owner.
pub struct Exports {
    outputs: Vec<Started>,
    /// The sinks of outputs for states.
    states: States,
    /// The sending ends of outputs for alerts.
    alerts: Alerts,
}

/// A handle for other threads: to watch, renew and interrupt the outputs.
#[derive(Clone)]
pub struct Handle(Arc<[Arc<Shared>]>);

struct Started {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

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
        let prepare = |output: &Output| match ready(output, &settings) {
            Ok(ready) => Ok((output.clone(), ready)),
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
        let of_worker = |_| (Several::<FlowRecord>(Vec::new()), Several::<Event>(Vec::new()));
        let mut sinks: Vec<_> = (0..workers).map(of_worker).collect();
        // If one of them cannot start, those before end as this is dropped.
        let outputs = Vec::with_capacity(self.outputs.len());
        let mut exports = Exports { outputs, states: States::default(), alerts: Alerts::default() };
        let (mut states, mut alerts) = (Vec::new(), Vec::new());
        let mut programs = self.programs.into_iter();
        for (number, (output, ready)) in (1..).zip(self.outputs) {
            let name = output.to_string();
            let launch = Launch { number, workers, settings: &self.settings, name: name.clone() };
            let (own, started) = launch
                .output(output, ready, &mut open, &mut programs)
                .map_err(|error| StartError { output: name, error })?;
            match own {
                Own::Records(own) => {
                    sinks.iter_mut().zip(own).for_each(|((records, _), own)| records.0.push(own));
                }
                Own::Events(own) => {
                    sinks.iter_mut().zip(own).for_each(|((_, events), own)| events.0.push(own));
                }
                Own::States(own) => states.push(own),
                Own::Alerts(own) => alerts.push(own),
            }
            exports.outputs.push(started);
        }
        exports.states = States::new(states);
        exports.alerts = Alerts::new(alerts);
        let joined = |(records, events): (Several<_>, Several<_>)| Sinks {
            records: records.joined(),
            events: events.joined(),
        };
        Ok((sinks.into_iter().map(joined).collect(), exports))
    }
}

/// Prepares an output.
fn ready(output: &Output, settings: &Settings) -> io::Result<Ready> {
    let collector = match output {
        Output::Collector(collector) => collector,
        Output::Alerts(output) => {
            return Ok(alerts::prepare(output, settings)?.map_or(Ready::File, Ready::Target));
        }
        _ => return Ok(Ready::File),
    };
    if collector.protocol() == Protocol::NetFlow5
        && settings.sampling.is_some_and(|one| one.of() > Sampling::NETFLOW5_MOST)
    {
        let most = Sampling::NETFLOW5_MOST;
        return Err(io::Error::other(format!("NetFlow v5 announces sampling up to 1:{most}")));
    }
    let link: Box<dyn Link> = match collector.transport() {
        Transport::Udp { host, port } => Box::new(UdpLink::new(transports::resolve(host, *port)?)?),
        Transport::Tcp { host, port } => {
            Box::new(TcpLink::new(transports::resolve(host, *port)?, None))
        }
        Transport::Tls { host, port } => {
            let client = TlsClient::new(host, &settings.tls)?;
            Box::new(TcpLink::new(transports::resolve(host, *port)?, Some(client)))
        }
        Transport::File(_) => return Ok(Ready::File),
        Transport::Kafka(topic) => {
            return Access::new(topic, settings).map(Box::new).map(Ready::Topic);
        }
    };
    Ok(Ready::Link(link))
}

/// The parameters for starting an output.
struct Launch<'a> {
    number: u32,
    workers: usize,
    settings: &'a Settings,
    name: String,
}

/// The sinks of an output, one for each worker.
type BoxedSinks<I> = Vec<Box<dyn RecordSink<I>>>;

enum Own {
    Records(BoxedSinks<FlowRecord>),
    Events(BoxedSinks<Event>),
    /// Workers have none.
    #[cfg_attr(not(feature = "kafka"), expect(dead_code, reason = "of Kafka alone"))]
    States(Box<dyn TakeState>),
    /// Of the merger.
    Alerts(AlertSender),
}

type Launched = (Own, Started);

impl Launch<'_> {
    fn output(
        self,
        output: Output,
        ready: Ready,
        open: &mut dyn FnMut(&Path) -> io::Result<Box<dyn Store>>,
        programs: &mut dyn Iterator<Item = UnixStream>,
    ) -> io::Result<Launched> {
        match output {
            Output::Collector(collector) => match (collector.transport(), ready) {
                (_, Ready::Link(link)) => self.collector(&collector, link, WaitPolicy::Collector),
                (_, Ready::Topic(access)) => self.topic(*access, collector.protocol()),
                (Transport::File(path), Ready::File) => {
                    let store = open(path)?;
                    let wait_policy = wait_policy(&*store);
                    self.collector(&collector, Box::new(FileLink::new(store)), wait_policy)
                }
                (_, Ready::File | Ready::Target(_)) => {
                    unreachable!("every collector but a file was prepared")
                }
            },
            Output::File(FileOutput { format, path }) => {
                let store = open(&path)?;
                let wait_policy = wait_policy(&*store);
                let interfaces = &self.settings.interfaces;
                match format.text() {
                    Some(format) => {
                        let sink = LineSink::new(format, interfaces.clone(), store);
                        let encoder = || LineEncoder { format, interfaces: interfaces.clone() };
                        self.records(wait_policy, encoder, sink)
                    }
                    #[cfg(feature = "parquet")]
                    None => {
                        let columns = interfaces.columns();
                        let sink = RowSink::new(columns, store);
                        self.records(wait_policy, || RowEncoder { columns }, sink)
                    }
                    #[cfg(not(feature = "parquet"))]
                    None => Err(io::Error::other(crate::formats::UnknownFormat::NotBuilt(format))),
                }
            }
            Output::Alerts(output) => {
                let target = match ready {
                    Ready::Target(target) => target,
                    _ => alerts::open(&output, programs)?,
                };
                self.alerts(&output, target)
            }
            #[cfg(feature = "arrow")]
            Output::Batches(batches) => {
                let columns = self.settings.interfaces.columns();
                let sink = BatchSink::new(columns, batches);
                self.records(WaitPolicy::File, || RowEncoder { columns }, sink)
            }
            Output::Events(EventOutput { format, path }) => {
                let store = open(&path)?;
                let wait_policy = wait_policy(&*store);
                let (format, interfaces) = (format.text(), &self.settings.interfaces);
                let sink = LineSink::new(format, interfaces.clone(), store);
                let encoder = || LineEncoder { format, interfaces: interfaces.clone() };
                let (sinks, started) = self.run(wait_policy, Items::Events, encoder, sink)?;
                Ok((Own::Events(sinks), started))
            }
        }
    }

    fn collector(
        self,
        collector: &Collector,
        link: Box<dyn Link>,
        wait_policy: WaitPolicy,
    ) -> io::Result<Launched> {
        let settings = self.settings;
        let limit = if link.repeats_templates() { UDP_LIMIT } else { STREAM_LIMIT };
        let protocol = collector.protocol();
        let mut encoders = encoders(protocol, self.number, settings, limit, self.workers + 1);
        let own = encoders.pop();
        let encoder = || MessageEncoder {
            encoder: encoders.pop().unwrap_or_else(|| unreachable!("one for each worker")),
            protocol,
        };
        let own = own.unwrap_or_else(|| unreachable!("one for the writer"));
        let sink = Exporter::new(own, link, settings);
        self.records(wait_policy, encoder, sink)
    }

    #[cfg(feature = "kafka")]
    fn topic(self, access: Access, protocol: Protocol) -> io::Result<Launched> {
        if protocol == Protocol::States {
            return self.states(access);
        }
        let sampler = access.sampler();
        let sink = TopicSink::new(access, protocol, self.settings)?;
        let encoder = || RecordEncoder::new(protocol, self.settings, sampler);
        self.records(WaitPolicy::Collector, encoder, sink)
    }

    /// Starts the writer of a topic for states.
    #[cfg(feature = "kafka")]
    fn states(self, access: Access) -> io::Result<Launched> {
        let Settings { buffer_bytes, live, .. } = *self.settings;
        let sink = PartSink::new(access)?;
        let shared = self.shared(WaitPolicy::Collector, Items::States);
        let (mut own, started) = self.start(PartSender::ROOM, 1, &shared, || PartEncoder, sink)?;
        let own = own.pop().unwrap_or_else(|| unreachable!("one for one worker"));
        let sender = PartSender::new(own, shared, buffer_bytes, live);
        Ok((Own::States(Box::new(sender)), started))
    }

    #[cfg(not(feature = "kafka"))]
    fn topic(self, access: Access, _protocol: Protocol) -> io::Result<Launched> {
        match access {}
    }

    /// Starts the writer of an output for alerts.
    fn alerts(self, output: &AlertOutput, target: Box<dyn Target>) -> io::Result<Launched> {
        let is_regular =
            output.path().is_some_and(|path| path.metadata().is_ok_and(|data| data.is_file()));
        let wait_policy = if is_regular { WaitPolicy::File } else { WaitPolicy::Collector };
        let shared = self.shared(wait_policy, Items::Alerts);
        let sink = AlertSink::new(target);
        let (mut own, started) =
            self.start(AlertSender::ROOM, 1, &shared, || NoticeEncoder, sink)?;
        let own = own.pop().unwrap_or_else(|| unreachable!("one for one sender"));
        Ok((Own::Alerts(AlertSender::new(own, shared)), started))
    }

    /// Starts the writer of an output for flow records.
    fn records<E: Encode<Item = FlowRecord>, S: Sink<Payload = E::Payload>>(
        &self,
        wait_policy: WaitPolicy,
        encoder: impl FnMut() -> E,
        sink: S,
    ) -> io::Result<Launched> {
        let (sinks, started) = self.run(wait_policy, Items::Flows, encoder, sink)?;
        Ok((Own::Records(sinks), started))
    }

    /// Starts the writer of an output for items of all workers.
    fn run<E: Encode, S: Sink<Payload = E::Payload>>(
        &self,
        wait_policy: WaitPolicy,
        items: Items,
        encoder: impl FnMut() -> E,
        sink: S,
    ) -> io::Result<(BoxedSinks<E::Item>, Started)> {
        let Settings { buffer_bytes, live, prompt, .. } = *self.settings;
        let room = Room::new(buffer_bytes, self.workers, !live, prompt);
        self.start(room, self.workers, &self.shared(wait_policy, items), encoder, sink)
    }

    fn shared(&self, wait_policy: WaitPolicy, items: Items) -> Arc<Shared> {
        Arc::new(Shared::new(self.name.clone(), wait_policy, self.settings.live).of(items))
    }

    /// Starts a writer; returns a sink for each of the `senders`.
    fn start<E: Encode, S: Sink<Payload = E::Payload>>(
        &self,
        room: Room,
        senders: usize,
        shared: &Arc<Shared>,
        mut encoder: impl FnMut() -> E,
        sink: S,
    ) -> io::Result<(BoxedSinks<E::Item>, Started)> {
        let shared = Arc::clone(shared);
        let mut sinks: BoxedSinks<E::Item> = Vec::with_capacity(senders);
        let mut inboxes = Vec::with_capacity(senders);
        for _ in 0..senders {
            let (sender, inbox): (Sender<E>, _) =
                lane(encoder(), room, Arc::clone(&shared)).map_err(io::Error::other)?;
            sinks.push(Box::new(sender));
            inboxes.push(inbox);
        }
        let own = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name(format!("output {}", self.number));
        let thread = thread.spawn(move || writer::run(sink, inboxes, own))?;
        shared.set_writer(thread.thread().clone());
        Ok((sinks, Started { shared, thread: Some(thread) }))
    }
}

/// Creates `count` encoders with common settings.
fn encoders(
    protocol: Protocol,
    number: u32,
    settings: &Settings,
    limit: usize,
    count: usize,
) -> Vec<Box<dyn Encoder>> {
    let (domain, sampling) = (settings.observation_domain, settings.sampling);
    let ingress = !settings.interfaces.is_empty();
    let ipfix = || -> Box<dyn Encoder> {
        let encoder = Ipfix::new(domain, number, limit).sampled(sampling);
        Box::new(encoder.keyed_by_vlans(settings.vlan_in_key).with_ingress(ingress))
    };
    let clock9 = NetFlow9::new(domain, limit);
    let netflow9 = || -> Box<dyn Encoder> {
        let encoder = NetFlow9::new(domain, limit).with_clock_of(&clock9);
        Box::new(encoder.sampled(sampling).with_ingress(ingress))
    };
    let clock5 = NetFlow5::new(domain as u16, limit);
    let netflow5 = || -> Box<dyn Encoder> {
        Box::new(NetFlow5::new(domain as u16, limit).with_clock_of(&clock5).sampled(sampling))
    };
    let lines = |format| {
        move || -> Box<dyn Encoder> {
            Box::new(Lines::new(format, settings.interfaces.clone(), limit))
        }
    };
    let text = match protocol {
        Protocol::Lines(format) => format.text().map(lines),
        _ => None,
    };
    let one: &dyn Fn() -> Box<dyn Encoder> = match protocol {
        Protocol::Ipfix => &ipfix,
        Protocol::NetFlow9 => &netflow9,
        Protocol::NetFlow5 => &netflow5,
        Protocol::Lines(_) | Protocol::FlowMessages | Protocol::States => match &text {
            Some(text) => text,
            None => return Vec::new(),
        },
    };
    (0..count).map(|_| one()).collect()
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

    /// Waits until all records are written or dropped, and returns the summaries. All sinks must be dropped or
    /// finished.
    pub fn finish(mut self) -> Vec<Summary> {
        self.end()
    }

    fn end(&mut self) -> Vec<Summary> {
        drop(self.take_states());
        drop(self.take_alerts());
        self.outputs.iter().for_each(|one| one.shared.end());
        self.outputs.iter_mut().map(Started::end).collect()
    }
}

impl Started {
    /// Waits for the writer. If its thread is abandoned, later actions of it do not change the summary.
    fn end(&mut self) -> Summary {
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

impl Drop for Exports {
    fn drop(&mut self) {
        // After `finish` there are no threads left.
        let running = self.outputs.iter().filter(|one| one.thread.is_some());
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
