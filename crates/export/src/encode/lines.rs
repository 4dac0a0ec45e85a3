//! Lines of a text format as messages: as many complete lines as fit, so that any stream can carry them.

use ringtap_flow::FlowRecord;

use super::{Encoder, Progress, Refusal, Sealed, as_biflow};
use crate::RecordTotals;
use crate::formats::{Interfaces, TextFormat};

/// The lines of the current message.
pub(crate) struct Lines {
    format: TextFormat,
    interfaces: Interfaces,
    limit: usize,
    bytes: Vec<u8>,
    flows: RecordTotals,
}

impl Lines {
    pub(crate) fn new(format: TextFormat, interfaces: Interfaces, limit: usize) -> Self {
        Self { format, interfaces, limit, bytes: Vec::new(), flows: RecordTotals::default() }
    }
}

impl Encoder for Lines {
    fn add(&mut self, record: &FlowRecord, flows: &mut RecordTotals) -> Result<(), Refusal> {
        let before = self.bytes.len();
        (self.format.line)(&mut self.bytes, record, &self.interfaces);
        // A single line has no length limit, because messages of a stream have none.
        if self.bytes.len() > self.limit && before > 0 {
            self.bytes.truncate(before);
            return Err(Refusal::Full);
        }
        let own = as_biflow(record);
        self.flows += own;
        *flows += own;
        Ok(())
    }

    fn seal(&mut self) -> Option<Sealed<'_>> {
        let (bytes, flows) = (&self.bytes[..], self.flows);
        (!bytes.is_empty()).then_some(Sealed { bytes, flows })
    }

    fn done(&mut self) {
        self.bytes.clear();
        self.flows = RecordTotals::default();
    }

    /// The header of the format.
    fn announcement(&mut self) -> Vec<Vec<u8>> {
        let head = |head: fn(&mut Vec<u8>, u64, &Interfaces)| {
            let mut bytes = Vec::new();
            head(&mut bytes, 0, &self.interfaces);
            bytes
        };
        self.format.head.map(head).into_iter().collect()
    }

    fn statistics(&mut self, _: &Progress) -> Vec<Vec<u8>> {
        Vec::new()
    }

    fn farewell(&mut self) -> Vec<Vec<u8>> {
        Vec::new()
    }

    fn restart(&mut self) {}

    fn octets(&self) -> usize {
        self.bytes.len()
    }

    fn learn(&mut self, _: &[u8]) {}

    fn stamp(&mut self, _: &mut [u8], _: RecordTotals) {}
}
