//! An exporter: records in, messages out, books kept.
//!
//! ```text
//! record ─▶ encoder.add ── full? ──▶ link.open ─ anew? ─▶ templates, statistics
//!                                        └───────────────▶ the message ─▶ books
//! ```
//!
//! Templates go first on each connection and into each file, and again over UDP by time and by count. At the orderly
//! end of a connection they are withdrawn; over UDP never, for RFC 7011, section 8.4, forbids it ("Template Withdrawals
//! […] MUST NOT be sent by Exporting Processes exporting via UDP").

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use ringtap_flow::FlowRecord;
use ringtap_ring::{Consumer, Vernier};

use crate::encode::{Encoder, Progress, Refusal};
use crate::link::{self, Delivery, Link, Opened, Trouble, Until};
use crate::shared::Shared;
use crate::{Meter, Protocol, Reason, Refresh, Sent, Settings, Tally};

/// How long a quiet thread sleeps at a time.
const NAP: Duration = Duration::from_millis(20);

/// Silence after which a message leaves though it is not full.
const QUIET: Duration = Duration::from_secs(1);

/// What sends to one collector, in a thread of its own or where records come from.
pub(crate) struct Exporter {
    encoder: Box<dyn Encoder>,
    link: Box<dyn Link>,
    protocol: Protocol,
    until: Until,
    shared: Arc<Shared>,
    refresh: Refresh,
    meter: Option<Meter>,
    /// When templates were sent, and how many messages since; `None`: they are due.
    announced: Option<(Instant, u64)>,
    /// The last message, as long as the collector's machine may still refuse it.
    in_doubt: Sent,
}

impl Exporter {
    pub(crate) fn new(
        encoder: Box<dyn Encoder>,
        link: Box<dyn Link>,
        protocol: Protocol,
        settings: &Settings,
        shared: Arc<Shared>,
    ) -> Self {
        Self {
            encoder,
            link,
            protocol,
            until: Until::new(Arc::clone(&shared)),
            shared,
            refresh: settings.refresh,
            meter: settings.meter.clone(),
            announced: None,
            in_doubt: Sent::default(),
        }
    }

    /// The exporting thread: to the end of the ring.
    pub(crate) fn run(mut self, mut records: Consumer<FlowRecord, Vernier>) {
        let mut quiet_since = None;
        loop {
            // Relaxed: it carries no data.
            if self.shared.renew.load(Ordering::Relaxed) {
                self.shared.renew.store(false, Ordering::Relaxed);
                self.renew();
            }
            let closed = records.is_closed();
            let burst = records.peek(256);
            let taken = burst.len();
            burst.iter().for_each(|record| self.add(record));
            records.release(taken);
            if taken > 0 {
                quiet_since = None;
                records.wake();
            } else if closed {
                break;
            } else {
                let since = *quiet_since.get_or_insert_with(link::now);
                if since.elapsed() >= QUIET {
                    self.deliver();
                    // There is nothing more to deliver before another record comes: no need to ask each nap.
                    quiet_since = Some(link::now());
                }
                records.park(NAP);
            }
        }
        self.finish();
    }

    /// Finishes the file, and begins another one.
    pub(crate) fn renew(&mut self) {
        self.conclude();
        self.link.renew();
    }

    #[inline]
    pub(crate) fn add(&mut self, record: &FlowRecord) {
        match self.encoder.add(record) {
            Ok(()) => {}
            Err(Refusal::Unfit(reason)) => self.lose(reason, self.protocol.tally(record)),
            Err(Refusal::Full) => self.add_to_next(record),
        }
    }

    #[inline(never)]
    fn add_to_next(&mut self, record: &FlowRecord) {
        self.deliver();
        // An empty message has room for any record; if not, it is said and not lost.
        let lost = match self.encoder.add(record) {
            Ok(()) => return,
            Err(Refusal::Unfit(reason)) => reason,
            Err(Refusal::Full) => Reason::Failed,
        };
        self.lose(lost, self.protocol.tally(record));
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
        let metered = self.meter.as_ref().map(Meter::read);
        let summary = &self.shared.books().summary;
        Progress { sent: summary.sent, not_sent: summary.not_sent(), metered }
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

    pub(crate) fn finish(mut self) {
        self.conclude();
        if self.link.is_connection() {
            // "After receiving a Template Withdrawal, a Collecting Process MUST stop using the Template to interpret
            // subsequently exported Data Sets." (section 8.1) None follow. A connection that breaks is not made again
            // for this, and what was sent is.
            let farewell = self.encoder.farewell();
            let _ = farewell.iter().try_for_each(|message| self.send_alone(message));
        }
        if self.link.close(&mut self.until) == Delivery::EarlierRefused {
            self.refused();
        }
        let mut books = self.shared.books();
        let nothing_sent = books.summary.sent.messages == 0;
        books.summary.failure =
            self.link.trouble().filter(|&(_, always)| always || nothing_sent).map(|(why, _)| why);
    }
}
