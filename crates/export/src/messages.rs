//! Messages of IPFIX and NetFlow, complete except for sequence numbers, as workers encode them.

use ringtap_flow::FlowRecord;

use crate::block::{Encode, Payload};
use crate::encode::{Encoder, RECORD_MAX, Refusal};
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
    pub(crate) bytes: Vec<u8>,
    pub(crate) parts: Vec<Part>,
    /// Bytes of the message that is not complete yet.
    open: usize,
}

impl Payload for Messages {
    fn len(&self) -> usize {
        self.bytes.len() + self.open
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.parts.clear();
        self.open = 0;
    }
}

pub(crate) struct MessageEncoder {
    pub(crate) encoder: Box<dyn Encoder>,
    pub(crate) protocol: Protocol,
}

impl MessageEncoder {
    /// Completes the current message.
    fn end(&mut self, messages: &mut Messages) {
        if let Some(sealed) = self.encoder.seal() {
            messages.bytes.extend_from_slice(sealed.bytes);
            messages.parts.push(Part { end: messages.bytes.len(), flows: sealed.flows });
            self.encoder.done();
        }
        messages.open = 0;
    }
}

impl Encode for MessageEncoder {
    type Item = FlowRecord;
    type Payload = Messages;

    fn payload(&self, bytes: usize) -> Messages {
        // The block is full after the record that reaches this number.
        Messages { bytes: Vec::with_capacity(bytes + RECORD_MAX), ..Messages::default() }
    }

    #[inline]
    fn add(
        &mut self,
        record: &FlowRecord,
        messages: &mut Messages,
        flows: &mut RecordTotals,
    ) -> Result<(), Reason> {
        let mut added = self.encoder.add(record, flows);
        if matches!(added, Err(Refusal::Full)) {
            self.end(messages);
            added = self.encoder.add(record, flows);
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
    }

    fn counts_of(&self, record: &FlowRecord) -> RecordTotals {
        self.protocol.counts_of(record)
    }
}
