//! The settings of a run of the benchmark.

use ringtap_filter::Policy;

use crate::filter::packet::Address;
use crate::filter::work::Work;

/// Settings of both designs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Number of addresses; all addresses in packets must be below it.
    pub addresses: usize,
    /// Policy for sources that no control packet has named.
    pub policy: Policy,
    /// Work for each data packet that passes.
    pub work: Work,
    /// How packets are assigned to workers.
    pub distribution: Distribution,
    /// Maximum number of packets between dispatch and verdict.
    pub in_flight: usize,
}

impl Settings {
    /// The published settings for a number of addresses: default deny, serial work, distribution by
    /// address, 256 packets in flight.
    pub fn new(addresses: usize) -> Self {
        let (policy, work, distribution) = (Policy::Deny, Work::Serial, Distribution::Address);
        Self { addresses, policy, work, distribution, in_flight: 256 }
    }
}

ringtap_base::choices! {
    /// How packets are assigned to workers.
    pub enum Distribution: "distribution" {
        /// By address: that of a control packet, the destination of a data packet.
        Address = "address",
        /// By a hash of the packet's number.
        Random = "random",
    }
}

impl Distribution {
    /// The shard key of a packet, a 32-bit hash.
    pub(crate) fn key(self, number: u64, address: Address) -> u32 {
        let input = match self {
            Self::Address => u64::from(address),
            Self::Random => number,
        };
        ((input + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
    }
}
