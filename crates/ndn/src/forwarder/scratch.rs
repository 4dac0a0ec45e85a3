//! Reusable buffers of the pipelines.

use crate::forwarder::face::FaceId;
use crate::forwarder::tables::{NextHop, Prefixes};

/// Number of packets that are looked up together: enough to overlap memory accesses, few enough for
/// the L1 cache.
pub(crate) const GROUP: usize = 32;

/// Number of packets that are read between the prefetch of an index bucket and that of the entries
/// in it: enough for the bucket to arrive.
pub(crate) const PREFETCH_LAG: usize = 8;

/// Reusable buffers, so that nothing is allocated per packet.
#[derive(Debug)]
pub(crate) struct Scratch {
    /// Prefixes of the packets that are looked up together.
    pub(crate) prefixes: Vec<Prefixes>,
    /// Prefixes of a name of a forwarding hint.
    pub(crate) hint: Prefixes,
    /// A packet to send.
    pub(crate) wire: Vec<u8>,
    /// The Interest of a PIT entry.
    pub(crate) stored_interest: Vec<u8>,
    /// PIT entries that a Data satisfies.
    pub(crate) satisfied: Vec<u32>,
    /// Eligible next hops of an Interest, by increasing cost.
    pub(crate) hops: Vec<NextHop>,
    /// Faces that the strategy chose.
    pub(crate) chosen: Vec<FaceId>,
    /// By face: the number of the last Data that was sent on it.
    pub(crate) last_data: Vec<u64>,
    /// Number of the current Data.
    pub(crate) data_number: u64,
}

impl Scratch {
    pub(crate) fn new(pit_capacity: usize) -> Self {
        let packet = || Vec::with_capacity(2 * crate::packets::PACKET_MAX);
        Self {
            prefixes: vec![Prefixes::new(); GROUP],
            hint: Prefixes::new(),
            wire: packet(),
            stored_interest: packet(),
            satisfied: Vec::with_capacity(pit_capacity),
            hops: Vec::new(),
            chosen: Vec::new(),
            last_data: Vec::new(),
            data_number: 0,
        }
    }
}
