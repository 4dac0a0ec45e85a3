//! The exporting threads: records in, messages out, books kept.
//!
//! ```text
//! ring ─▶ encoder.add ── full? ──▶ link.open ─ anew? ─▶ templates, statistics
//!                                      └───────────────▶ the message ─▶ books
//! ```
//!
//! Templates go first on each connection and into each file, and again over UDP by time and by count. Withdrawals are
//! never sent: over UDP RFC 7011, section 8.4, forbids them ("Template Withdrawals […] MUST NOT be sent by Exporting
//! Processes exporting via UDP"), and elsewhere all templates live as long as the connection.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ringtap_flow::FlowRecord;
use ringtap_ring::{Consumer, Vernier};

use crate::encode::{
    Encoder, Ipfix, NetFlow5, NetFlow9, Progress, Refusal, STREAM_LIMIT, UDP_LIMIT,
};
use crate::feed::{Lane, ROOM};
use crate::link::{
    self, Delivery, FileLink, Link, Opened, Store, TcpLink, Trouble, UdpLink, Until,
};
use crate::{
    Collector, Feed, Protocol, Reason, Refresh, Sent, Settings, Summary, Tally, Transport,
};

/// How long collectors have, at the end, for what is still waiting.
pub const LINGER: Duration = Duration::from_secs(5);

/// Beyond [`LINGER`], for a thread to notice. One that does not is stuck in a write, and left behind.
const NOTICE: Duration = Duration::from_secs(3);

/// How long a quiet thread sleeps at a time.
const NAP: Duration = Duration::from_millis(20);

/// Naps after which a message leaves though it is not full.
const QUIET: u32 = 50;

/// A collector to which nothing can be sent at all.
#[derive(Debug, thiserror::Error)]
#[error("exporting to {collector}")]
pub struct StartError {
    collector: Collector,
    #[source]
    error: io::Error,
}

/// Starts a thread for each collector. Files are opened by `open`.
///
/// # Errors
/// A host without an address, a file that cannot be written, a socket or thread that cannot be had. A collector that
/// is merely down is none: it is tried again and again.
pub fn start(
    collectors: &[Collector],
    settings: &Settings,
    mut open: impl FnMut(&Path) -> io::Result<Box<dyn Store>>,
) -> Result<(Feed, Exports), StartError> {
    let mut feed = Feed { lanes: Vec::with_capacity(collectors.len()) };
    let mut exports = Exports(Vec::with_capacity(collectors.len()));
    for (number, collector) in (1..).zip(collectors) {
        let failed = |error| StartError { collector: collector.clone(), error };
        let link: Box<dyn Link> = match collector.transport() {
            Transport::Udp { host, port } => {
                let addresses = link::resolve(host, *port).map_err(failed)?;
                Box::new(UdpLink::new(addresses).map_err(failed)?)
            }
            Transport::Tcp { host, port } => {
                Box::new(TcpLink::new(link::resolve(host, *port).map_err(failed)?))
            }
            Transport::File(path) => Box::new(FileLink::new(open(path).map_err(failed)?)),
        };
        let shared = Arc::new(Shared::default());
        shared.books().summary.collector = collector.to_string();
        let ring = ringtap_ring::spsc(ROOM).map_err(|error| failed(io::Error::other(error)))?;
        let exporter = Exporter {
            encoder: encoder(collector, number, settings),
            link,
            protocol: collector.protocol(),
            until: Until::new(Arc::clone(&shared)),
            shared: Arc::clone(&shared),
            refresh: settings.refresh,
            announced: None,
            in_doubt: Sent::default(),
        };
        let thread = std::thread::Builder::new().name(format!("export {number}"));
        let thread = thread.spawn(move || exporter.run(ring.1)).map_err(failed)?;
        feed.lanes.push(Lane::new(ring.0, collector.protocol(), Arc::clone(&shared)));
        exports.0.push((shared, Some(thread)));
    }
    Ok((feed, exports))
}

fn encoder(collector: &Collector, number: u32, settings: &Settings) -> Box<dyn Encoder> {
    let limit = match collector.transport() {
        Transport::Udp { .. } => UDP_LIMIT,
        Transport::Tcp { .. } | Transport::File(_) => STREAM_LIMIT,
    };
    let domain = settings.observation_domain;
    match collector.protocol() {
        Protocol::Ipfix => Box::new(Ipfix::new(domain, number, limit)),
        Protocol::NetFlow9 => Box::new(NetFlow9::new(domain, limit)),
        Protocol::NetFlow5 => Box::new(NetFlow5::new(domain as u16, limit)),
    }
}

/// All exporting threads of a run.
pub struct Exports(Vec<(Arc<Shared>, Option<JoinHandle<()>>)>);

impl Exports {
    /// Files are finished and begun anew under the same names.
    pub fn renew(&self) {
        for (shared, _) in &self.0 {
            // Relaxed: it carries no data.
            shared.renew.store(true, Ordering::Relaxed);
        }
    }

    /// Waits until everything is sent, for [`LINGER`] at the most and a little more, and tells what became of it. The
    /// [`Feed`] must be gone.
    pub fn finish(mut self) -> Vec<Summary> {
        self.end();
        self.0.iter().map(|(shared, _)| shared.books().summary.clone()).collect()
    }

    fn end(&mut self) {
        for (shared, _) in &self.0 {
            // Relaxed: it says when, it hands over nothing.
            shared.ending.store(true, Ordering::Relaxed);
        }
        let end = link::now() + LINGER + NOTICE;
        for (shared, thread) in &mut self.0 {
            let Some(thread) = thread.take() else { continue };
            thread.thread().unpark();
            while !thread.is_finished() && link::now() < end {
                std::thread::sleep(Duration::from_millis(2));
            }
            let why = if !thread.is_finished() {
                Some("nobody takes what is written")
            } else {
                thread.join().err().map(|_| "the exporting thread panicked")
            };
            if let Some(why) = why {
                shared.books().abandon(why);
            }
        }
    }
}

impl Drop for Exports {
    fn drop(&mut self) {
        self.end();
    }
}

/// What the exporting thread has in common with the others.
#[derive(Default)]
pub(crate) struct Shared {
    books: Mutex<Books>,
    /// The run is over: [`LINGER`] begins.
    pub(crate) ending: AtomicBool,
    renew: AtomicBool,
}

#[derive(Default)]
pub(crate) struct Books {
    pub(crate) summary: Summary,
    /// Written by the feed when it goes.
    pub(crate) offered: Tally,
}

impl Shared {
    pub(crate) fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(|poison| poison.into_inner())
    }
}

impl Books {
    /// The thread cannot tell any more what it did not send: the rest.
    fn abandon(&mut self, why: &str) {
        let mut rest = self.offered;
        rest -= self.summary.accounted();
        self.summary.lose(Reason::TooLate, rest);
        self.summary.failure.get_or_insert_with(|| why.to_owned());
    }
}

/// One exporting thread.
struct Exporter {
    encoder: Box<dyn Encoder>,
    link: Box<dyn Link>,
    protocol: Protocol,
    until: Until,
    shared: Arc<Shared>,
    refresh: Refresh,
    /// When templates were sent, and how many messages since; `None`: they are due.
    announced: Option<(Instant, u64)>,
    /// The last message, as long as the collector's machine may still refuse it.
    in_doubt: Sent,
}

impl Exporter {
    fn run(mut self, mut records: Consumer<FlowRecord, Vernier>) {
        let mut quiet = 0;
        loop {
            // Relaxed: it carries no data.
            if self.shared.renew.load(Ordering::Relaxed) {
                self.shared.renew.store(false, Ordering::Relaxed);
                self.conclude();
                self.link.renew();
            }
            let closed = records.is_closed();
            let burst = records.peek(256);
            let taken = burst.len();
            burst.iter().for_each(|record| self.add(record));
            records.release(taken);
            if taken > 0 {
                quiet = 0;
                records.wake();
            } else if closed {
                break;
            } else {
                quiet += 1;
                if quiet == QUIET {
                    self.deliver();
                }
                records.park(NAP);
            }
        }
        self.finish();
    }

    fn add(&mut self, record: &FlowRecord) {
        let mut added = self.encoder.add(record);
        if added == Err(Refusal::Full) {
            self.deliver();
            added = self.encoder.add(record);
        }
        match added {
            Ok(()) => {}
            Err(Refusal::Unfit(reason)) => self.lose(reason, self.protocol.tally(record)),
            // An empty message has room for any record; if not, it is said and not lost.
            Err(Refusal::Full) => self.lose(Reason::Failed, self.protocol.tally(record)),
        }
    }

    /// Sends the message under way, if it holds anything, and before it whatever must come first.
    fn deliver(&mut self) {
        while self.encoder.seal().is_some() {
            if let Err(reason) = self.prepare() {
                return self.give_up(reason);
            }
            let Some(sealed) = self.encoder.seal() else { return };
            let sent = Sent {
                flows: sealed.flows,
                messages: 1,
                message_octets: sealed.bytes.len() as u64,
            };
            let delivery = self.link.send(sealed.bytes, &mut self.until);
            match self.account(delivery, sent) {
                Ok(()) => return self.encoder.done(),
                Err(Trouble::Broken) => {}
                Err(Trouble::Lost(reason)) => return self.give_up(reason),
            }
        }
    }

    /// Opens the link, and sends templates and statistics if they are due.
    fn prepare(&mut self) -> Result<(), Reason> {
        loop {
            match self.link.open(&mut self.until) {
                Opened::Still => {}
                Opened::Anew => {
                    self.encoder.restart();
                    self.announced = None;
                }
                Opened::Never(reason) => return Err(reason),
            }
            let forgets = self.link.forgets();
            let announcements = match self.announced {
                // "[…] the Exporting Process SHOULD send multiple copies of the Template Record in a separate IPFIX
                // Message, in order to help ensure that the Collecting Process has received it." (section 8.4)
                None if forgets => 2,
                None => 1,
                Some((at, messages)) => {
                    let Refresh { every, messages: most } = self.refresh;
                    if messages < most && at.elapsed() < every {
                        return Ok(());
                    }
                    // "Exporting Processes using UDP as the transport protocol MUST periodically retransmit each
                    // active Template at regular intervals." (section 8.4) Others get statistics alone.
                    u64::from(forgets)
                }
            };
            let templates = (0..announcements).flat_map(|_| self.encoder.announcement());
            let mut messages: Vec<Vec<u8>> = templates.collect();
            messages.extend(self.encoder.statistics(&self.progress()));
            self.announced = Some((link::now(), 0));
            match messages.iter().try_for_each(|message| self.send_alone(message)) {
                Ok(()) => return Ok(()),
                Err(Trouble::Broken) => {}
                Err(Trouble::Lost(reason)) => {
                    // Without templates the rest is worth nothing: they are due before the next message, too.
                    self.announced = None;
                    return Err(reason);
                }
            }
        }
    }

    fn send_alone(&mut self, message: &[u8]) -> Result<(), Trouble> {
        let delivery = self.link.send(message, &mut self.until);
        let (flows, message_octets) = (Tally::default(), message.len() as u64);
        self.account(delivery, Sent { flows, messages: 1, message_octets })
    }

    /// Books a message.
    fn account(&mut self, delivery: Result<Delivery, Trouble>, sent: Sent) -> Result<(), Trouble> {
        if delivery? == Delivery::EarlierRefused {
            self.refused();
        }
        self.shared.books().summary.sent += sent;
        self.in_doubt = sent;
        if let Some((_, messages)) = &mut self.announced {
            *messages += 1;
        }
        Ok(())
    }

    /// The last message was refused: it is taken back from the books. Whoever comes to listen will need templates.
    fn refused(&mut self) {
        let refused = std::mem::take(&mut self.in_doubt);
        let mut books = self.shared.books();
        books.summary.sent -= refused;
        books.summary.lose(Reason::Refused, refused.flows);
        self.announced = None;
    }

    fn give_up(&mut self, reason: Reason) {
        let flows = self.encoder.seal().map_or(Tally::default(), |sealed| sealed.flows);
        self.lose(reason, flows);
        self.encoder.done();
    }

    fn lose(&self, reason: Reason, flows: Tally) {
        self.shared.books().summary.lose(reason, flows);
    }

    fn progress(&self) -> Progress {
        let summary = &self.shared.books().summary;
        Progress { sent: summary.sent, not_sent: summary.not_sent() }
    }

    /// Sends what is left, and last of all what was not sent. A collector hears of a run without flows, too.
    fn conclude(&mut self) {
        self.deliver();
        if self.prepare().is_ok() {
            let last = self.encoder.statistics(&self.progress());
            // If this one does not arrive, the report has the same numbers.
            let _ = last.iter().try_for_each(|message| self.send_alone(message));
        }
    }

    fn finish(mut self) {
        self.conclude();
        if self.link.close(&mut self.until) == Delivery::EarlierRefused {
            self.refused();
        }
        let mut books = self.shared.books();
        let nothing_sent = books.summary.sent.messages == 0;
        books.summary.failure =
            self.link.trouble().filter(|&(_, always)| always || nothing_sent).map(|(why, _)| why);
    }
}
