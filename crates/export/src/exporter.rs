//! The writer of messages: adds what workers cannot know, sends, and counts.
//!
//! ```text
//! block: message message … ─▶ link.open ─ anew? ─▶ templates, statistics
//!                                 └───────────────▶ stamp: sequence number, time ─▶ the message ─▶ counters
//!                                                          (of a file: all messages of the block at once)
//! ```
//!
//! Templates go first on each connection and into each file, and again over UDP by time and by count. At the orderly
//! end of a connection they are withdrawn; over UDP never, for RFC 7011, section 8.4, forbids it ("Template Withdrawals
//! […] MUST NOT be sent by Exporting Processes exporting via UDP").

use std::time::{Duration, Instant};

use crate::block::Block;
use crate::encode::{Encoder, Progress};
use crate::messages::{Messages, Part};
use crate::shared::{Shared, now};
use crate::transports::{Delivery, Link, Opened, Trouble};
use crate::writer::Sink;
use crate::{Meter, Reason, RecordTotals, Refresh, Sent, Settings};

/// A UDP collector that refused a message within this time counts as failing.
const REFUSAL_LASTS: Duration = Duration::from_secs(2);

/// Sends to one collector, or writes an IPFIX file.
pub(crate) struct Exporter {
    /// Counts sequence numbers and makes what is no flow record.
    encoder: Box<dyn Encoder>,
    link: Box<dyn Link>,
    refresh: Refresh,
    meter: Option<Meter>,
    /// When templates were sent, and how many messages since; `None`: they are due.
    announced: Option<(Instant, u64)>,
    /// The last message, as long as the collector's machine may still refuse it.
    in_doubt: Sent,
    /// When a message was refused last; `None` if another failure came after it.
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

    /// Sends whole messages of flow records with one call, and before them whatever must come first. Each of `parts`
    /// ends `begin` octets later than in `messages`.
    fn deliver(&mut self, messages: &mut [u8], parts: &[Part], begin: usize, shared: &Shared) {
        let mut flows = RecordTotals::default();
        parts.iter().for_each(|part| flows += part.flows);
        self.encoder.learn(messages);
        loop {
            if let Err(reason) = self.prepare(shared) {
                return shared.lose(reason, flows);
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
            messages.extend(self.encoder.statistics(&self.progress(shared)));
            self.announced = Some((now(), 0));
            match messages.iter().try_for_each(|message| self.send_alone(message, shared)) {
                Ok(()) => return Ok(()),
                // Without templates the rest is worth nothing: they stay due.
                Err(trouble) => {
                    self.announced = None;
                    if let Trouble::Lost(reason) = trouble {
                        return Err(reason);
                    }
                }
            }
        }
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
        if !self.link.forgets() {
            self.confirm(shared);
        }
        Ok(())
    }

    /// The message in doubt was not refused.
    fn confirm(&mut self, shared: &Shared) {
        let sent = std::mem::take(&mut self.in_doubt);
        if sent.messages > 0 {
            shared.send(sent);
        }
    }

    /// The link took something, or did not refuse it.
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

    /// Waits a little for the answer to the last message.
    fn settle(&mut self, shared: &Shared) {
        match self.link.settle(shared) {
            Delivery::EarlierRefused => self.refuse(shared),
            Delivery::Taken => {
                self.confirm(shared);
                // That nothing was refused says nothing of a message that could not be sent.
                if self.refused_at.is_some() {
                    self.note_success(shared);
                }
            }
        }
    }

    fn progress(&self, shared: &Shared) -> Progress {
        let metered = self.meter.as_ref().map(Meter::read);
        Progress { sent: shared.sent(), not_sent: shared.not_sent(), metered }
    }

    /// Sends, last of all, what was not sent. A collector gets statistics of a run without flows, too.
    fn conclude(&mut self, shared: &Shared) {
        if self.in_doubt.messages > 0 {
            self.settle(shared);
        }
        if self.prepare(shared).is_ok() {
            let last = self.encoder.statistics(&self.progress(shared));
            // If this one does not arrive, the report has the same numbers.
            let _ = last.iter().try_for_each(|message| self.send_alone(message, shared));
        }
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
        let Messages { bytes, parts, .. } = &mut block.payload;
        // Large writes to files cost the system half as much.
        let together = if self.link.is_file() { parts.len().max(1) } else { 1 };
        let mut begin = 0;
        for parts in parts.chunks(together) {
            let end = parts.last().map_or(begin, |part| part.end);
            self.deliver(&mut bytes[begin..end], parts, begin, shared);
            begin = end;
        }
    }

    fn tick(&mut self, shared: &Shared) {
        if self.in_doubt.messages > 0 {
            self.settle(shared);
        }
    }

    fn renew(&mut self, shared: &Shared) {
        if self.link.is_file() {
            // A file that is finished without its last statistics is better than one that waits for room.
            self.link.hurry(true);
            self.conclude(shared);
            self.close(shared);
            self.link.hurry(false);
        }
    }

    fn finish(&mut self, shared: &Shared) {
        self.conclude(shared);
        if self.link.is_connection() {
            // "After receiving a Template Withdrawal, a Collecting Process MUST stop using the Template to interpret
            // subsequently exported Data Sets." (section 8.1) None follow. A connection that breaks is not made again
            // for this, and what was sent is.
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
    use crate::shared::Patience;
    use ringtap_flow::{FlowKey, FlowRecord, IpVersion};

    /// A link over which datagrams go, with these results and then none.
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

        fn forgets(&self) -> bool {
            true
        }
    }

    /// Sends a message of one record for each result; the records sent, and those lost by reason.
    fn export(results: &[Result<Delivery, Trouble>], error: &str) -> crate::Summary {
        let encoder = || Box::new(NetFlow5::new(0, 1_400));
        let shared = Shared::new("test".into(), Patience::Collector, true);
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
            exporter.deliver(&mut message, &[part], 0, &shared);
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
    fn datagrams_that_cannot_be_sent_are_a_failure_and_refused_ones_are_none() {
        assert_eq!(export(&[TAKEN, FAILED], "no route").failure.as_deref(), Some("no route"));
        assert_eq!(export(&[REFUSED, FAILED], "no route").failure.as_deref(), Some("no route"));
        assert_eq!(export(&[FAILED, TAKEN], "no route").failure, None);
        assert_eq!(export(&[FAILED, REFUSED], "refused").failure, None);
    }
}
