//! What several tools use.

use std::time::Duration;

/// Interval at which a wait checks for the end.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The Interest lifetime for a timeout, in milliseconds, at least 1.
pub(super) fn lifetime_ms(timeout_ns: u64) -> Option<u64> {
    Some((timeout_ns / 1_000_000).max(1))
}

/// A random start number, so that content stores have no answers of other runs.
pub(super) fn fresh_number() -> u64 {
    let random = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0_u8);
    // 40 bits: short names, and room to count up.
    random >> 24
}
