//! Formats of lines: JSON, CSV, EVE, Zeek.

use crate::formats::{Interfaces, TextFormat};
use ringtap_flow::{Event, FlowRecord};

use crate::block::{Block, Encode, Payload};
use crate::encode::as_biflow;
use crate::shared::Shared;
use crate::store::{Retry, Store, Unwritten, finish, persist, tick, write_once};
use crate::writer::Sink;
use crate::{Reason, RecordTotals, Sent};

/// A line is usually shorter, in bytes.
const LINE: usize = 4 << 10;

/// Lines, and the packet times that heads and tails need.
#[derive(Default)]
pub(crate) struct Lines {
    bytes: Vec<u8>,
    /// Earliest packet of the first record.
    first_ns: u64,
    /// Latest packet of all records.
    latest_ns: u64,
}

impl Payload for Lines {
    fn len(&self) -> usize {
        self.bytes.len()
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.latest_ns = 0;
    }
}

/// An item of a text format.
pub(crate) trait Item: 'static {
    /// Time of its earliest and latest packet, nanoseconds since 1970.
    fn times_ns(&self) -> [u64; 2];

    fn counts(&self) -> RecordTotals;
}

impl Item for FlowRecord {
    fn times_ns(&self) -> [u64; 2] {
        [self.first_ns, self.last_ns]
    }

    fn counts(&self) -> RecordTotals {
        as_biflow(self)
    }
}

impl Item for Event {
    fn times_ns(&self) -> [u64; 2] {
        [self.time_ns; 2]
    }

    fn counts(&self) -> RecordTotals {
        RecordTotals { records: 1, ..RecordTotals::default() }
    }
}

pub(crate) struct LineEncoder<I> {
    pub(crate) format: TextFormat<I>,
    pub(crate) interfaces: Interfaces,
}

impl<I: Item> Encode for LineEncoder<I> {
    type Item = I;
    type Payload = Lines;

    fn payload(&self, bytes: usize) -> Lines {
        Lines { bytes: Vec::with_capacity(bytes + LINE), ..Lines::default() }
    }

    #[inline]
    fn add(&mut self, item: &I, lines: &mut Lines, flows: &mut RecordTotals) -> Result<(), Reason> {
        let before = lines.bytes.len();
        (self.format.line)(&mut lines.bytes, item, &self.interfaces);
        if lines.bytes.len() > before {
            let [first_ns, last_ns] = item.times_ns();
            if before == 0 {
                lines.first_ns = first_ns;
            }
            lines.latest_ns = lines.latest_ns.max(last_ns);
            *flows += item.counts();
        }
        Ok(())
    }

    fn counts_of(&self, item: &I) -> RecordTotals {
        item.counts()
    }
}

/// Writes blocks of lines, with the format's head and tail in each file.
pub(crate) struct LineSink<I> {
    format: TextFormat<I>,
    interfaces: Interfaces,
    store: Box<dyn Store>,
    headed: bool,
    latest_ns: u64,
    /// A file could not be finished, and nothing was written since.
    unnamed: bool,
    /// The store failed at the last second.
    ticks_failed: bool,
    reader_gone: bool,
}

impl<I> LineSink<I> {
    pub(crate) fn new(
        format: TextFormat<I>,
        interfaces: Interfaces,
        store: Box<dyn Store>,
    ) -> Self {
        Self {
            format,
            interfaces,
            store,
            headed: false,
            latest_ns: 0,
            unnamed: false,
            ticks_failed: false,
            reader_gone: false,
        }
    }

    /// The format's head, if it must be written.
    fn head(&self, first_ns: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        if let (Some(head), false) = (self.format.head, self.headed) {
            head(&mut bytes, first_ns, &self.interfaces);
        }
        bytes
    }

    /// Writes a block of lines.
    fn lines(&mut self, lines: &Lines, shared: &Shared) -> Result<(), Reason> {
        self.unnamed = false;
        loop {
            let head = self.head(lines.first_ns);
            let store = &mut *self.store;
            let mut written = Ok(());
            if !head.is_empty() {
                written = persist(store, &head, shared, Retry::UntilRenewal);
                if written.is_ok() {
                    self.headed = true;
                    count(&head, shared);
                }
            }
            if written.is_ok() {
                written = persist(store, &lines.bytes, shared, Retry::UntilRenewal);
            }
            match written {
                Err(Unwritten::Renewal) => {
                    // A file that cannot be finished is continued; the failure was reported.
                    let _ = self.end(shared);
                }
                Err(Unwritten::Lost(reason)) => return Err(reason),
                Ok(()) => {
                    self.headed = true;
                    self.latest_ns = self.latest_ns.max(lines.latest_ns);
                    return Ok(());
                }
            }
        }
    }

    /// Writes the format's tail, and finishes the file.
    fn end(&mut self, shared: &Shared) -> Result<(), Reason> {
        let mut rest = self.head(0);
        if let Some(tail) = self.format.tail {
            tail(&mut rest, self.latest_ns);
        }
        let complete = write_once(&mut *self.store, &rest, shared);
        if complete.is_ok() {
            count(&rest, shared);
        }
        // The lines are useful even without the tail.
        if let Err(reason) = finish(shared, || self.store.finish()) {
            self.unnamed = true;
            return Err(reason);
        }
        (self.headed, self.latest_ns) = (false, 0);
        if std::mem::take(&mut self.unnamed) && complete.is_ok() {
            shared.works();
        }
        complete
    }
}

impl<I: Item> Sink for LineSink<I> {
    type Payload = Lines;

    fn write(&mut self, block: &mut Block<Lines>, shared: &Shared) {
        let lines = &block.payload;
        let written =
            if self.reader_gone { Err(Reason::ReaderGone) } else { self.lines(lines, shared) };
        match written {
            Ok(()) => {
                let message_octets = lines.bytes.len() as u64;
                shared.send(Sent { flows: block.flows, messages: 1, message_octets });
            }
            Err(reason) => {
                self.reader_gone |= reason == Reason::ReaderGone;
                shared.lose(reason, block.flows);
            }
        }
    }

    fn tick(&mut self, shared: &Shared) {
        tick(&mut *self.store, &mut self.ticks_failed, shared);
    }

    fn store(&mut self) -> Option<&mut dyn Store> {
        Some(&mut *self.store)
    }

    fn renew(&mut self, shared: &Shared) {
        if self.store.is_regular() {
            // A file that cannot be finished is continued; the failure was reported.
            let _ = self.end(shared);
        }
    }

    fn finish(&mut self, shared: &Shared) {
        if self.reader_gone {
            return;
        }
        let ended = self.end(shared);
        if ended != Err(Reason::ReaderGone) {
            shared.judge();
        }
    }
}

/// Counts octets other than records.
fn count(octets: &[u8], shared: &Shared) {
    shared.send(Sent { message_octets: octets.len() as u64, ..Sent::default() });
}
