//! When a flow ends.

/// Flow expiry, in packet time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// A flow ends when more than this has passed since its last packet, nanoseconds.
    pub idle_ns: u64,
    /// A flow is cut when a packet comes this long or longer after its first, nanoseconds.
    pub active_ns: u64,
    /// How long a TCP connection that was closed or reset may still show packets (the last ACK, a
    /// retransmission) before its flow ends, nanoseconds.
    pub closing_ns: u64,
}

impl Timeouts {
    /// One second in nanoseconds.
    pub const SECOND: u64 = 1_000_000_000;

    /// How much packet time passes between two marks: half the idle timeout, so that an idle
    /// flow leaves the table at most one and a half timeouts after its last packet; never under
    /// a second.
    pub fn tick_ns(&self) -> u64 {
        (self.idle_ns / 2).clamp(Self::SECOND, 300 * Self::SECOND)
    }
}

impl Default for Timeouts {
    /// 30 s idle, 120 s active (as nProbe and ffProbe), 5 s after the end of a connection.
    fn default() -> Self {
        Self {
            idle_ns: 30 * Self::SECOND,
            active_ns: 120 * Self::SECOND,
            closing_ns: 5 * Self::SECOND,
        }
    }
}
