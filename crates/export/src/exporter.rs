//! The writer of messages: sets sequence numbers and times, sends, and counts.
//!
//! ```text
//! block: message message … ─▶ link.open ─ new? ──▶ templates, statistics
//!                                 └───────────────▶ stamp: sequence number, time ─▶ the message ─▶ counters
//!                                                         (of a file: all messages of the block at once)
//! ```
//!
//! Templates are sent first on each connection and in each file, and again over UDP by time and by count. Rarer ones are
//! sent when a message needs them. They are
//! withdrawn at the normal end of a connection; never over UDP, as RFC 7011, section 8.4, requires ("Template
//! Withdrawals […] MUST NOT be sent by Exporting Processes exporting via UDP").

use std::time::{Duration, Instant};

use crate::block::Block;
use crate::encode::{Encoder, Progress, Templates};
use crate::messages::{Messages, Part};
use crate::shared::{Shared, now};
use crate::store::Store;
use crate::transports::{Delivery, Link, Opened, Trouble};
use crate::writer::Sink;
use crate::{Meter, Reason, RecordTotals, Refresh, Sent, Settings};

/// A UDP collector that refused a message within this time counts as failing.
const REFUSAL_LASTS: Duration = Duration::from_secs(2);

/// How many times new templates are sent over UDP: "[…] the Exporting Process SHOULD send multiple copies of the Template
/// Record in a separate IPFIX Message, in order to help ensure that the Collecting Process has received it." (section 8.4)
const TEMPLATE_COPIES: usize = 2;

/// Sends to one collector, or writes an IPFIX file.
pub(crate) struct Exporter {
    /// Counts sequence numbers and encodes templates and statistics.
    encoder: Box<dyn Encoder>,
    link: Box<dyn Link>,
    refresh: Refresh,
    meter: Option<Meter>,
    /// When templates were sent, and the number of messages since; `None`: they must be sent next.
    announced: Option<(Instant, u64)>,
    /// The last message, while the collector's host may still refuse it.
    in_doubt: Sent,
    /// When a message was last refused; `None` if another failure followed.
    refused_at: Option<Instant>,
}

impl Exporter {
    pub(crate) fn new(encoder: Box<dyn Encoder>, link: Box<dyn Link>, settings: &Settings) -> Self {
        Self {
            encoder,
            link,
            refresh: settings.refresh,
            meter: settings.meter.clone(),
            announced: None,
            in_doubt: Sent::default(),
            refused_at: None,
        }
    }

    /// Sends complete messages of flow records with one call, after templates and statistics that are due. Each of
    /// `parts` ends `begin` octets later than in `messages`; `templates` are those that the whole block needs.
    fn deliver(
        &mut self,
        messages: &mut [u8],
        parts: &[Part],
        begin: usize,
        templates: &Templates,
        shared: &Shared,
    ) {
        let mut flows = RecordTotals::default();
        parts.iter().for_each(|part| flows += part.flows);
        self.encoder.learn(messages);
        loop {
            if let Err(reason) = self.prepare(shared) {
                return shared.lose(reason, flows);
            }
            match self.announce_missing(templates, shared) {
                Ok(()) => {}
                Err(Trouble::Broken) => continue,
                Err(Trouble::Lost(reason)) => return shared.lose(reason, flows),
            }
            let mut from = 0;
            for part in parts {
                let message = &mut messages[from..part.end - begin];
                self.encoder.learn(message);
                self.encoder.stamp(message, part.flows);
                from = part.end - begin;
            }
            let count = parts.len() as u64;
            let sent = Sent { flows, messages: count, message_octets: messages.len() as u64 };
            match self.send(messages, sent, shared) {
                Ok(()) => return,
                Err(Trouble::Broken) => {}
                Err(Trouble::Lost(reason)) => return shared.lose(reason, flows),
            }
        }
    }

    /// Opens the link, and sends templates and statistics if they are due.
    fn prepare(&mut self, shared: &Shared) -> Result<(), Reason> {
        loop {
            match self.link.open(shared) {
                Opened::Still => {}
                Opened::Anew => {
                    self.encoder.restart();
                    self.announced = None;
                }
                Opened::Never(reason) => return Err(reason),
            }
            let repeats = self.link.repeats_templates();
            let announcements = match self.announced {
                None if repeats => TEMPLATE_COPIES,
                None => 1,
                Some((at, messages)) => {
                    let Refresh { every, messages: most } = self.refresh;
                    if messages < most && at.elapsed() < every {
                        return Ok(());
                    }
                    // "Exporting Processes using UDP as the transport protocol MUST periodically retransmit each
                    // active Template at regular intervals." (section 8.4) Others get statistics alone.
                    usize::from(repeats)
                }
            };
            let templates = (0..announcements).flat_map(|_| self.encoder.announcement());
            let templates: Vec<_> = templates.collect();
            self.announced = Some((now(), 0));
            let sent = templates.iter().try_for_each(|message| self.send_alone(message, shared));
            match sent.and_then(|()| self.send_statistics(shared)) {
                Ok(()) => return Ok(()),
                // Without templates the records are useless, so they are sent next time.
                Err(trouble) => {
                    self.announced = None;
                    if let Trouble::Lost(reason) = trouble {
                        return Err(reason);
                    }
                }
            }
        }
    }

    /// Sends those of these templates that the collector does not have yet.
    fn announce_missing(&mut self, needed: &Templates, shared: &Shared) -> Result<(), Trouble> {
        let copies = if self.link.repeats_templates() { TEMPLATE_COPIES } else { 1 };
        let templates = self.encoder.missing(needed, copies);
        let sent = templates.iter().try_for_each(|message| self.send_alone(message, shared));
        if sent.is_err() {
            self.announced = None;
        }
        sent
    }

    fn send_alone(&mut self, message: &[u8], shared: &Shared) -> Result<(), Trouble> {
        let (flows, message_octets) = (RecordTotals::default(), message.len() as u64);
        self.send(message, Sent { flows, messages: 1, message_octets }, shared)
    }

    fn send(&mut self, message: &[u8], sent: Sent, shared: &Shared) -> Result<(), Trouble> {
        let taken = self.link.send(message, shared);
        match taken {
            Ok(Delivery::Taken) => self.confirm(shared),
            Ok(Delivery::EarlierRefused) | Err(Trouble::Lost(Reason::Refused)) => {
                self.refuse(shared)
            }
            Err(_) => self.refused_at = None,
        }
        taken?;
        self.note_success(shared);
        if let Some((_, messages)) = &mut self.announced {
            *messages += sent.messages;
        }
        self.in_doubt = sent;
        if !self.link.repeats_templates() {
            self.confirm(shared);
        }
        Ok(())
    }

    /// The last message was not refused.
    fn confirm(&mut self, shared: &Shared) {
        let sent = std::mem::take(&mut self.in_doubt);
        if sent.messages > 0 {
            shared.send(sent);
        }
    }

    /// The link accepted a message, or did not refuse it.
    fn note_success(&self, shared: &Shared) {
        if self.refused_at.is_none_or(|at| at.elapsed() > REFUSAL_LASTS) {
            shared.works();
        }
    }

    /// The unconfirmed message was refused. A collector that starts later needs the templates again.
    fn refuse(&mut self, shared: &Shared) {
        let refused = std::mem::take(&mut self.in_doubt);
        shared.lose(Reason::Refused, refused.flows);
        self.announced = None;
        self.refused_at = Some(now());
    }

    /// Waits a short time for the answer to the last message.
    fn settle(&mut self, shared: &Shared) {
        match self.link.settle(shared) {
            Delivery::EarlierRefused => self.refuse(shared),
            Delivery::Taken => {
                self.confirm(shared);
                // This is no information about a message that could not be sent.
                if self.refused_at.is_some() {
                    self.note_success(shared);
                }
            }
        }
    }

    /// The counts before the next message. The last one counts as sent until it is refused.
    fn progress(&self, shared: &Shared) -> Progress {
        let metered = self.meter.as_ref().map(Meter::read);
        let mut sent = shared.sent();
        sent += self.in_doubt;
        Progress { sent, not_sent: shared.not_sent(), metered }
    }

    /// Sends the remaining messages at the end. A collector gets statistics also for a run without flows.
    fn conclude(&mut self, shared: &Shared) {
        if self.in_doubt.messages > 0 {
            self.settle(shared);
        }
        self.report(shared);
    }

    /// Sends statistics, after templates that are due.
    fn report(&mut self, shared: &Shared) {
        if self.prepare(shared).is_ok() {
            // If these do not arrive, the next ones or the run's report have the same numbers.
            let _ = self.send_statistics(shared);
        }
    }

    fn send_statistics(&mut self, shared: &Shared) -> Result<(), Trouble> {
        let messages = self.encoder.statistics(&self.progress(shared));
        messages.iter().try_for_each(|message| self.send_alone(message, shared))
    }

    fn close(&mut self, shared: &Shared) {
        match self.link.close(shared) {
            Delivery::EarlierRefused => self.refuse(shared),
            Delivery::Taken => self.confirm(shared),
        }
    }
}

impl Sink for Exporter {
    type Payload = Messages;

    fn write(&mut self, block: &mut Block<Messages>, shared: &Shared) {
        let Messages { bytes, parts, templates, .. } = &mut block.payload;
        // Large writes to files need half the CPU time.
        let together = if self.link.is_file() { parts.len().max(1) } else { 1 };
        let mut begin = 0;
        for parts in parts.chunks(together) {
            let end = parts.last().map_or(begin, |part| part.end);
            self.deliver(&mut bytes[begin..end], parts, begin, templates, shared);
            begin = end;
        }
    }

    fn tick(&mut self, shared: &Shared) {
        // A late refusal counts for no message, but the collector needs the templates again.
        if self.link.repeats_templates() {
            self.settle(shared);
        }
    }

    fn store(&mut self) -> Option<&mut dyn Store> {
        self.link.store()
    }

    fn renew(&mut self, shared: &Shared) {
        if self.link.is_file() {
            // A file without its last statistics is better than one that waits for space.
            self.link.hurry(true);
            self.conclude(shared);
            self.close(shared);
            self.link.hurry(false);
        }
    }

    fn end_period(&mut self, written: bool, shared: &Shared) {
        if self.link.is_file() {
            if written {
                self.renew(shared);
            }
        } else {
            self.report(shared);
        }
    }

    fn finish(&mut self, shared: &Shared) {
        self.conclude(shared);
        if self.link.is_connection() {
            // "After receiving a Template Withdrawal, a Collecting Process MUST stop using the Template to interpret
            // subsequently exported Data Sets." (section 8.1) None follow. A broken connection is not opened again for
            // this.
            let farewell = self.encoder.farewell();
            let _ = farewell.iter().try_for_each(|message| self.send_alone(message, shared));
        }
        self.close(shared);
        // A refused datagram is counted but is not a failure: UDP does not guarantee delivery.
        if self.refused_at.is_none() || !shared.is_failing() {
            shared.judge();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::NetFlow5;
    use crate::shared::WaitPolicy;
    use ringtap_flow::{FlowKey, FlowRecord, IpVersion};

    /// A link for datagrams that returns these results, and succeeds afterwards.
    struct Datagrams(Vec<Result<Delivery, Trouble>>);

    impl Link for Datagrams {
        fn open(&mut self, _: &Shared) -> Opened {
            Opened::Still
        }

        fn send(&mut self, _: &[u8], _: &Shared) -> Result<Delivery, Trouble> {
            self.0.remove(0)
        }

        fn close(&mut self, _: &Shared) -> Delivery {
            Delivery::Taken
        }

        fn repeats_templates(&self) -> bool {
            true
        }
    }

    /// Sends a message of one record for each result. Returns the summary.
    fn export(results: &[Result<Delivery, Trouble>], error: &str) -> crate::Summary {
        let encoder = || Box::new(NetFlow5::new(0, 1_400));
        let shared = Shared::new("test".into(), WaitPolicy::Collector, true);
        let link = Box::new(Datagrams(results.to_vec()));
        let mut exporter = Exporter::new(encoder(), link, &Settings::default());
        let (src, dst) = ([0; 16], [0; 16]);
        let key =
            FlowKey { version: IpVersion::V4, src, dst, src_port: 1, dst_port: 2, protocol: 17 };
        for result in results {
            if result.is_err() {
                shared.fails(&error);
            }
            let mut worker = encoder();
            worker
                .add(
                    &FlowRecord { packets: [1, 0], ..FlowRecord::new(key) },
                    &mut RecordTotals::default(),
                )
                .unwrap();
            let sealed = worker.seal().unwrap();
            let (mut message, flows) = (sealed.bytes.to_vec(), sealed.flows);
            let part = Part { end: message.len(), flows };
            exporter.deliver(&mut message, &[part], 0, &Templates::default(), &shared);
        }
        exporter.finish(&shared);
        shared.summary()
    }

    const TAKEN: Result<Delivery, Trouble> = Ok(Delivery::Taken);
    const REFUSED: Result<Delivery, Trouble> = Err(Trouble::Lost(Reason::Refused));
    const FAILED: Result<Delivery, Trouble> = Err(Trouble::Lost(Reason::Failed));

    #[test]
    fn a_refusal_is_counted_for_the_message_that_was_refused() {
        let summary = export(&[TAKEN, Ok(Delivery::EarlierRefused), TAKEN], "");
        assert_eq!((summary.sent.flows.records, summary.lost()), (2, 1));
        // The second message finds the first one refused and is refused itself.
        let summary = export(&[TAKEN, REFUSED, TAKEN], "");
        assert_eq!((summary.sent.flows.records, summary.not_sent["refused"].records), (1, 2));
    }

    #[test]
    fn unsendable_datagrams_are_a_failure_and_refused_ones_are_not() {
        assert_eq!(export(&[TAKEN, FAILED], "no route").failure.as_deref(), Some("no route"));
        assert_eq!(export(&[REFUSED, FAILED], "no route").failure.as_deref(), Some("no route"));
        assert_eq!(export(&[FAILED, TAKEN], "no route").failure, None);
        assert_eq!(export(&[FAILED, REFUSED], "refused").failure, None);
    }
}
