//! What packets need on their way through the pipelines.

use crate::forwarder::face::FaceId;
use crate::forwarder::tables::{NextHop, Prefixes};

/// Packets looked up together: enough to keep the memory busy, few enough for the first-level cache.
pub(crate) const GROUP: usize = 32;

/// Buffers that are kept so that nothing is allocated.
#[derive(Debug)]
pub(crate) struct Scratch {
    /// Of the packets that are looked up together.
    pub(crate) prefixes: Vec<Prefixes>,
    pub(crate) hint: Prefixes,
    pub(crate) wire: Vec<u8>,
    pub(crate) kept: Vec<u8>,
    pub(crate) answered: Vec<u32>,
    pub(crate) hops: Vec<NextHop>,
    pub(crate) chosen: Vec<FaceId>,
    /// By face: the number of the Data that it got last.
    pub(crate) served: Vec<u64>,
    pub(crate) serving: u64,
}

impl Scratch {
    pub(crate) fn new(pit_capacity: usize) -> Self {
        let packet = || Vec::with_capacity(2 * crate::packets::PACKET_MAX);
        Self {
            prefixes: vec![Prefixes::new(); GROUP],
            hint: Prefixes::new(),
            wire: packet(),
            kept: packet(),
            answered: Vec::with_capacity(pit_capacity),
            hops: Vec::new(),
            chosen: Vec::new(),
            served: Vec::new(),
            serving: 0,
        }
    }
}
