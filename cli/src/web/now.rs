//! Values of the run at a time.

use std::time::Duration;

use ringtap_export::Status;

use crate::loads::ThreadLoad;

/// Values of the run at a time.
#[derive(Default)]
pub(super) struct Now {
    /// Seconds since 1970.
    pub(super) at: u64,
    pub(super) elapsed: Duration,
    pub(super) is_live: bool,
    pub(super) measures_tcp: bool,
    pub(super) has_networks: bool,
    pub(super) has_geo: bool,
    pub(super) max_flows: u64,
    pub(super) packets: u64,
    pub(super) bytes: u64,
    pub(super) dropped: u64,
    pub(super) shed: u64,
    pub(super) duplicates: u64,
    pub(super) live_flows: u64,
    /// Other losses.
    pub(super) losses: Vec<String>,
    /// Per second, as captured, in the last second.
    pub(super) packet_rate: f64,
    pub(super) bit_rate: f64,
    pub(super) memory_bytes: Option<u64>,
    pub(super) loads: Vec<ThreadLoad>,
    pub(super) outputs: Vec<Status>,
}

impl Now {
    /// Packets that no analysis got.
    pub(super) fn lost(&self) -> u64 {
        self.dropped + self.shed
    }
}
