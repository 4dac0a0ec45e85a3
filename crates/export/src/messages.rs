//! Messages of IPFIX and NetFlow, complete except for sequence numbers, as workers encode them.

use ringtap_flow::FlowRecord;

use crate::block::{Encode, Payload};
use crate::encode::{Encoder, RECORD_MAX, Refusal, Sealed, Templates};
use crate::{Protocol, Reason, RecordTotals};

/// A message within [`Messages`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    /// Offset of its end.
    pub(crate) end: usize,
    /// Its flows.
    pub(crate) flows: RecordTotals,
}

/// Complete messages, one after another.
#[derive(Default)]
pub(crate) struct Messages {
    /// The messages; behind them octets of any values.
    pub(crate) bytes: Vec<u8>,
    pub(crate) parts: Vec<Part>,
    /// The templates that they need.
    pub(crate) templates: Templates,
    /// Bytes of the message that is not complete yet.
    open: usize,
    /// The encoder writes in the memory of `bytes`, and has lent its own.
    in_place: bool,
}

impl Messages {
    /// Where the last message ends.
    fn end(&self) -> usize {
        self.parts.last().map_or(0, |part| part.end)
    }
}

impl Payload for Messages {
    fn len(&self) -> usize {
        self.end() + self.open
    }

    fn clear(&mut self) {
        self.parts.clear();
        self.templates = Templates::default();
        self.open = 0;
    }
}

pub(crate) struct MessageEncoder<E> {
    pub(crate) encoder: E,
    pub(crate) protocol: Protocol,
}

impl<E: Encoder> MessageEncoder<E> {
    /// Completes the current message.
    fn end(&mut self, messages: &mut Messages) {
        let begin = messages.end();
        if let Some(Sealed { bytes, flows }) = self.encoder.seal() {
            if !messages.in_place {
                messages.bytes.truncate(begin);
                messages.bytes.extend_from_slice(bytes);
            }
            messages.parts.push(Part { end: begin + bytes.len(), flows });
            // Here the message is in the cache; for the writer it is not.
            self.encoder.note_templates(&mut messages.templates);
            self.encoder.done();
        }
        messages.open = 0;
    }

    /// Adds a record to the next message.
    #[cold]
    fn add_to_next(
        &mut self,
        record: &FlowRecord,
        messages: &mut Messages,
        flows: &mut RecordTotals,
    ) -> Result<(), Refusal> {
        self.end(messages);
        self.encoder.add(record, flows)
    }

    /// Exchanges the memory of the encoder and of the block.
    fn exchange(&mut self, messages: &mut Messages) {
        messages.bytes = self.encoder.lend(std::mem::take(&mut messages.bytes));
        messages.in_place = !messages.in_place;
    }
}

impl<E: Encoder + 'static> Encode for MessageEncoder<E> {
    type Item = FlowRecord;
    type Payload = Messages;

    fn payload(&self, bytes: usize) -> Messages {
        // The block is full after the record that reaches this number.
        let most = bytes + RECORD_MAX;
        let bytes = match self.encoder.room_in_place() {
            Some(room) => vec![0; most + room],
            None => Vec::with_capacity(most),
        };
        Messages { bytes, ..Messages::default() }
    }

    #[inline]
    fn add(
        &mut self,
        record: &FlowRecord,
        messages: &mut Messages,
        flows: &mut RecordTotals,
    ) -> Result<(), Reason> {
        if !messages.in_place && self.encoder.room_in_place().is_some() {
            self.exchange(messages);
        }
        let mut added = self.encoder.add(record, flows);
        if matches!(added, Err(Refusal::Full)) {
            added = self.add_to_next(record, messages, flows);
        }
        messages.open = self.encoder.octets();
        added.map_err(|refusal| match refusal {
            Refusal::Unfit(reason) => reason,
            // An empty message has room for any record; otherwise the record is counted as lost.
            Refusal::Full => Reason::Failed,
        })
    }

    fn seal(&mut self, messages: &mut Messages) {
        self.end(messages);
        if messages.in_place {
            self.exchange(messages);
        }
    }

    fn counts_of(&self, record: &FlowRecord) -> RecordTotals {
        self.protocol.counts_of(record)
    }
}
