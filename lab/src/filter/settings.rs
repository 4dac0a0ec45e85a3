//! What both designs are told.

use std::fmt;
use std::str::FromStr;

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

/// Which worker gets a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// Control by its address, data by its destination.
    Address,
    /// Whoever the number of the packet falls on, as if by lot.
    Random,
}

impl Distribution {
    /// All there are.
    pub const ALL: [Self; 2] = [Self::Address, Self::Random];

    /// The name by which [`FromStr`] knows it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Address => "address",
            Self::Random => "random",
        }
    }

    /// The shard key of a packet, spread over 32 bits.
    pub(crate) fn key(self, number: u64, address: Address) -> u32 {
        let what = match self {
            Self::Address => u64::from(address),
            Self::Random => number,
        };
        ((what + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that is none of [`Distribution::ALL`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no distribution is called \"{0}\"; there are address, random")]
pub struct UnknownDistribution(pub String);

impl FromStr for Distribution {
    type Err = UnknownDistribution;

    fn from_str(name: &str) -> Result<Self, UnknownDistribution> {
        Self::ALL
            .into_iter()
            .find(|distribution| distribution.name() == name)
            .ok_or_else(|| UnknownDistribution(name.to_owned()))
    }
}
