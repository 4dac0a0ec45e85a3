//! Counters of a receiver.
//!
//! Invariant: since a queue was opened, `arrived = received + dropped.total() + waiting`, in frames. Counters never
//! decrease.

/// Counters of one queue since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames lent by `burst`.
    pub received: u64,
    /// Frames dropped, by reason.
    pub dropped: Dropped,
    /// AF_PACKET: how often the ring became full. Consecutive drops count once.
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
    /// AF_XDP: no buffer was free (the fill ring was empty). DPDK: no buffer was free, counted for the whole device by
    /// its first queue.
    pub no_buffer: u64,
    /// AF_XDP: the receive ring was full.
    pub rx_ring_full: u64,
    /// AF_XDP: the frame was longer than a buffer.
    pub too_long: u64,
    /// AF_XDP: the kernel refused the buffer. Any value but 0 shows an error in this crate.
    pub invalid: u64,
    /// DPDK: the frame was damaged or could not be received, counted for the whole device by its first queue.
    pub errors: u64,
}

impl Dropped {
    /// Sum of all reasons, in frames.
    pub fn total(&self) -> u64 {
        self.by_reason().iter().map(|&(_, frames)| frames).sum()
    }

    /// Name of each reason in reports, and its frames.
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
