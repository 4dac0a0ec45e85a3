//! The message under construction: space for a header, then sets of records.
//!
//! ```text
//! │ header │ id length │ record │ record │ (padding) │ id length │ record │
//!          └────────── a set ────────────────────────┴──── the open set ────
//! ```
//!
//! IPFIX and NetFlow v9 share this layout; they differ in the header and in padding.

use std::hint::select_unpredictable;

use crate::RecordTotals;

/// Octets of the header of a set.
const SET_HEADER: usize = 4;

/// Octets that may be written behind a record.
pub(crate) const SPARE: usize = 32;

pub(crate) struct Message {
    /// Earlier messages, if the memory is lent, the message, and octets of any values.
    bytes: Vec<u8>,
    lent: bool,
    /// Where the message begins.
    from: usize,
    /// Where it ends.
    end: usize,
    header: usize,
    limit: usize,
    /// Sets end at multiples of this many octets.
    align: usize,
    /// Where the open set begins; 0: none is open.
    begin: usize,
    /// Its number.
    id: u16,
    /// Number of records of any kind.
    pub(crate) records: u16,
    /// Number of flows.
    pub(crate) flows: RecordTotals,
}

impl Message {
    pub(crate) fn new(header: usize, limit: usize, align: usize) -> Self {
        let limit = limit.clamp(super::LEAST_LIMIT, usize::from(u16::MAX));
        let mut message = Self {
            bytes: vec![0; limit + SPARE],
            lent: false,
            from: 0,
            end: 0,
            header,
            limit,
            align,
            begin: 0,
            id: 0,
            records: 0,
            flows: RecordTotals::default(),
        };
        message.clear();
        message
    }

    /// Another empty message with the same limits.
    pub(crate) fn another(&self) -> Self {
        Self::new(self.header, self.limit, self.align)
    }

    /// Octets of lent memory beside those of the messages: the last one is followed by an empty one.
    pub(crate) fn room(&self) -> usize {
        self.header + SET_HEADER + SPARE
    }

    /// Begins a message in this memory, where later ones follow, or with the memory before, in that again. Returns the
    /// memory so far.
    pub(crate) fn lend(&mut self, bytes: Vec<u8>) -> Vec<u8> {
        let before = std::mem::replace(&mut self.bytes, bytes);
        self.lent = !self.lent;
        (self.from, self.end) = (0, 0);
        self.clear();
        before
    }

    /// Octets so far, including the space for the header.
    pub(crate) fn len(&self) -> usize {
        self.end - self.from
    }

    /// The message, whose set and header may be incomplete.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[self.from..self.end]
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.records == 0
    }

    /// Most octets of a record: an empty message has room for them.
    pub(crate) fn most(&self) -> usize {
        self.limit - self.header - SET_HEADER - 2 * (self.align - 1)
    }

    fn is_open(&self, id: u16) -> bool {
        (self.begin > 0) & (self.id == id)
    }

    /// Returns true if records of `len` octets fit into a set `id`.
    #[inline]
    pub(crate) fn fits(&self, id: u16, len: usize) -> bool {
        let own = select_unpredictable(self.is_open(id), 0, SET_HEADER);
        // Two sets may need padding: the open one, and this one.
        let padding = 2 * (self.align - 1);
        self.len() + own + len + padding <= self.limit
    }

    /// The bytes for a record of `len` octets in a set `id`; it must fit. The caller writes all of them.
    #[inline]
    pub(crate) fn record(&mut self, id: u16, len: usize) -> &mut [u8] {
        &mut self.record_and_spare(id, len)[..len]
    }

    /// The bytes for a record as in [`record`](Self::record), and [`SPARE`] octets behind it, which later records overwrite.
    #[inline]
    pub(crate) fn record_and_spare(&mut self, id: u16, len: usize) -> &mut [u8] {
        let is_open = self.is_open(id);
        if self.align > 1 && !is_open {
            self.close();
        }
        // Without branches, because in most traffic the sets change at random.
        self.begin = select_unpredictable(is_open, self.begin, self.end);
        self.id = id;
        let at = self.end + select_unpredictable(is_open, 0, SET_HEADER);
        self.end = at + len;
        self.records += 1;
        self.put_set_header();
        &mut self.bytes[at..at + len + SPARE]
    }

    /// Writes the header of the open set, as long as it is now.
    #[inline]
    fn put_set_header(&mut self) {
        let header = u32::from(self.id) << 16 | (self.end - self.begin) as u32;
        self.bytes[self.begin..self.begin + SET_HEADER].copy_from_slice(&header.to_be_bytes());
    }

    /// The next `len` octets of the message, with any values.
    #[inline]
    fn append(&mut self, len: usize) -> &mut [u8] {
        let begin = self.end;
        self.end += len;
        &mut self.bytes[begin..begin + len]
    }

    /// Adds a complete record to a set `id`, where it must fit.
    pub(crate) fn copy(&mut self, id: u16, record: &[u8]) {
        self.record(id, record.len()).copy_from_slice(record);
    }

    /// Ends the open set, if there is one, and returns the whole message; its header is still empty.
    pub(crate) fn close(&mut self) -> &mut [u8] {
        if self.begin > 0 {
            let len = self.len();
            self.append(len.next_multiple_of(self.align) - len).fill(0);
            self.put_set_header();
            self.begin = 0;
        }
        &mut self.bytes[self.from..self.end]
    }

    /// Begins the next message: in lent memory behind this one, otherwise in its place.
    pub(crate) fn clear(&mut self) {
        self.from = if self.lent { self.end } else { 0 };
        self.end = self.from;
        self.append(self.header).fill(0);
        self.begin = 0;
        self.records = 0;
        self.flows = RecordTotals::default();
    }
}
