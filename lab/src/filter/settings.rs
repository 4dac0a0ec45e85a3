//! What both designs are told.

use ringtap_filter::Policy;

use crate::filter::packet::Address;
use crate::filter::work::Work;

/// What both designs are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Addresses there are: all in packets must be below.
    pub addresses: usize,
    /// What happens to data that no control packet was about.
    pub policy: Policy,
    /// What is done for data that passes.
    pub work: Work,
    /// Who gets which packet.
    pub distribution: Distribution,
    /// Packets between dispatch and verdict, at the most.
    pub in_flight: usize,
}

impl Settings {
    /// For so many addresses, otherwise as published: nothing passes unless it was allowed, the
    /// serial chain, 256 packets in flight.
    pub fn new(addresses: usize) -> Self {
        let (policy, work, distribution) = (Policy::Deny, Work::Serial, Distribution::Address);
        Self { addresses, policy, work, distribution, in_flight: 256 }
    }
}

ringtap_base::choices! {
    /// Which worker gets a packet.
    pub enum Distribution: "distribution" {
        /// Control by its address, data by its destination.
        Address = "address",
        /// Whoever the number of the packet falls on, as if by lot.
        Random = "random",
    }
}

impl Distribution {
    /// The shard key of a packet, spread over 32 bits.
    pub(crate) fn key(self, number: u64, address: Address) -> u32 {
        let what = match self {
            Self::Address => u64::from(address),
            Self::Random => number,
        };
        ((what + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
    }
}
