//! What became of the frames that came to a receiver.
//!
//! Invariant: of the frames that came to a queue since it was opened,
//! `came = received + dropped.total() + those that wait`. Numbers only grow.

/// Frames of one queue since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Handed out by `burst`.
    pub received: u64,
    /// Not handed out, and why.
    pub dropped: Dropped,
    /// How often an AF_PACKET ring was found full: once for any number of frames lost in a row.
    pub freezes: u64,
}

impl std::ops::AddAssign for Counters {
    fn add_assign(&mut self, other: Self) {
        self.received += other.received;
        self.freezes += other.freezes;
        let (own, other) = (&mut self.dropped, other.dropped);
        own.ring_full += other.ring_full;
        own.no_buffer += other.no_buffer;
        own.rx_ring_full += other.rx_ring_full;
        own.too_long += other.too_long;
        own.invalid += other.invalid;
        own.errors += other.errors;
    }
}

/// Frames that the kernel or the device dropped, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// AF_PACKET: no block of the ring was free.
    pub ring_full: u64,
    /// AF_XDP: no buffer was free (the fill ring was empty). DPDK: the same, of the whole device, with
    /// the first of its queues.
    pub no_buffer: u64,
    /// AF_XDP: the ring of received frames was full.
    pub rx_ring_full: u64,
    /// AF_XDP: longer than a buffer.
    pub too_long: u64,
    /// AF_XDP: buffers that the kernel refused. 0, or there is a mistake in this crate.
    pub invalid: u64,
    /// DPDK: damaged, or not receivable for another reason, of the whole device, with the first of its
    /// queues.
    pub errors: u64,
}

impl Dropped {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.by_reason().iter().map(|&(_, frames)| frames).sum()
    }

    /// Each reason by its name in reports.
    pub fn by_reason(&self) -> [(&'static str, u64); 6] {
        [
            ("ring_full", self.ring_full),
            ("no_buffer", self.no_buffer),
            ("rx_ring_full", self.rx_ring_full),
            ("too_long", self.too_long),
            ("invalid_buffer", self.invalid),
            ("rx_error", self.errors),
        ]
    }
}
