//! The message under construction: space for a header, then sets of records.
//!
//! ```text
//! │ header │ id length │ record │ record │ (padding) │ id length │ record │
//!          └────────── a set ────────────────────────┴──── the open set ────
//! ```
//!
//! IPFIX and NetFlow v9 share this layout; they differ in the header and in padding.

use crate::RecordTotals;

/// Octets of the header of a set.
const SET_HEADER: usize = 4;

pub(crate) struct Message {
    /// The message, and octets of earlier ones after it.
    bytes: Vec<u8>,
    /// Octets of the message.
    len: usize,
    header: usize,
    limit: usize,
    /// Sets end at multiples of this many octets.
    align: usize,
    open: Option<Set>,
    /// Number of records of any kind.
    pub(crate) records: u16,
    /// Number of flows.
    pub(crate) flows: RecordTotals,
}

#[derive(Clone, Copy)]
struct Set {
    id: u16,
    begin: usize,
}

impl Message {
    pub(crate) fn new(header: usize, limit: usize, align: usize) -> Self {
        let limit = limit.clamp(super::LEAST_LIMIT, usize::from(u16::MAX));
        let mut message = Self {
            bytes: vec![0; limit],
            len: 0,
            header,
            limit,
            align,
            open: None,
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

    /// Octets so far, including the space for the header.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.records == 0
    }

    /// Most octets of a record: an empty message has room for them.
    pub(crate) fn most(&self) -> usize {
        self.limit - self.header - SET_HEADER - 2 * (self.align - 1)
    }

    /// Returns true if records of `len` octets fit into a set `id`.
    pub(crate) fn fits(&self, id: u16, len: usize) -> bool {
        let own = if self.open.is_some_and(|set| set.id == id) { 0 } else { SET_HEADER };
        // Two sets may need padding: the open one, and this one.
        let padding = 2 * (self.align - 1);
        self.len + own + len + padding <= self.limit
    }

    /// The bytes for a record of `len` octets in a set `id`; it must fit. The caller writes all of them.
    #[inline]
    pub(crate) fn record(&mut self, id: u16, len: usize) -> &mut [u8] {
        if self.open.is_none_or(|set| set.id != id) {
            self.close();
            self.open = Some(Set { id, begin: self.len });
            let [high, low] = id.to_be_bytes();
            self.append(SET_HEADER).copy_from_slice(&[high, low, 0, 0]);
        }
        self.records += 1;
        self.append(len)
    }

    /// The next `len` octets of the message, with any values.
    #[inline]
    fn append(&mut self, len: usize) -> &mut [u8] {
        let begin = self.len;
        self.len += len;
        &mut self.bytes[begin..begin + len]
    }

    /// Adds a complete record to a set `id`, where it must fit.
    pub(crate) fn copy(&mut self, id: u16, record: &[u8]) {
        self.record(id, record.len()).copy_from_slice(record);
    }

    /// Ends the open set, if there is one, and returns the whole message; its header is still empty.
    pub(crate) fn close(&mut self) -> &mut [u8] {
        if let Some(Set { begin, .. }) = self.open.take() {
            let end = self.len.next_multiple_of(self.align);
            self.append(end - self.len).fill(0);
            let length = (end - begin) as u16;
            self.bytes[begin + 2..begin + SET_HEADER].copy_from_slice(&length.to_be_bytes());
        }
        &mut self.bytes[..self.len]
    }

    pub(crate) fn clear(&mut self) {
        self.len = 0;
        self.append(self.header).fill(0);
        self.open = None;
        self.records = 0;
        self.flows = RecordTotals::default();
    }
}
