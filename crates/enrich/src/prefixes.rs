//! Networks and their values; an address gets the value of the longest network that has it.
//!
//! ```text
//! 10.0.0.0/8 a, 10.1.0.0/16 b   ─▶   0.0.0.0 –  │ 10.0.0.0 a │ 10.1.0.0 b │ 10.2.0.0 a │ 11.0.0.0 –
//! ```
//!
//! Networks are nested or disjoint, so they divide the addresses into ranges: at most two of them a network, found by
//! binary search.

use std::fmt::Debug;
use std::net::IpAddr;

use ringtap_base::Network;

/// The value of no network.
const NONE: u32 = u32::MAX;

/// An address as a number.
trait Number: Copy + Ord + Debug {
    const ZERO: Self;
    /// The last address of the network that begins here.
    fn last(self, length: u8) -> Self;
    /// The next address; `None` behind the last one.
    fn next(self) -> Option<Self>;
}

impl Number for u32 {
    const ZERO: Self = 0;

    fn last(self, length: u8) -> Self {
        self | Self::MAX.checked_shr(length.into()).unwrap_or(0)
    }

    fn next(self) -> Option<Self> {
        self.checked_add(1)
    }
}

impl Number for u128 {
    const ZERO: Self = 0;

    fn last(self, length: u8) -> Self {
        self | Self::MAX.checked_shr(length.into()).unwrap_or(0)
    }

    fn next(self) -> Option<Self> {
        self.checked_add(1)
    }
}

/// The ranges of one IP version, in order.
#[derive(Debug)]
struct Ranges<N> {
    starts: Vec<N>,
    values: Vec<u32>,
}

impl<N: Number> Ranges<N> {
    /// Of equal networks the last one counts.
    fn new(mut networks: Vec<(N, u8, u32)>) -> Self {
        networks.sort_by_key(|&(first, length, _)| (first, length));
        let mut ranges = Self { starts: vec![N::ZERO], values: vec![NONE] };
        // The networks around the current address: last address and value.
        let mut around: Vec<(N, u32)> = Vec::new();
        for (first, length, value) in networks {
            ranges.leave(&mut around, |last| last < first);
            ranges.begin(first, value);
            around.push((first.last(length), value));
        }
        ranges.leave(&mut around, |_| true);
        ranges.starts.shrink_to_fit();
        ranges.values.shrink_to_fit();
        ranges
    }

    /// Ends the innermost networks whose last address is behind.
    fn leave(&mut self, around: &mut Vec<(N, u32)>, is_behind: impl Fn(N) -> bool) {
        while let Some((last, _)) = around.pop_if(|(last, _)| is_behind(*last)) {
            if let Some(next) = last.next() {
                self.begin(next, around.last().map_or(NONE, |(_, value)| *value));
            }
        }
    }

    fn begin(&mut self, start: N, value: u32) {
        if self.starts.last() == Some(&start) {
            self.starts.pop();
            self.values.pop();
        }
        if self.values.last() != Some(&value) {
            self.starts.push(start);
            self.values.push(value);
        }
    }

    fn find(&self, address: N) -> Option<u32> {
        let at = self.starts.partition_point(|start| *start <= address).checked_sub(1)?;
        Some(self.values[at]).filter(|value| *value != NONE)
    }

    fn memory(&self) -> usize {
        self.starts.capacity() * size_of::<N>() + self.values.capacity() * size_of::<u32>()
    }
}

/// Networks of both IP versions.
#[derive(Debug)]
pub(crate) struct Prefixes {
    v4: Ranges<u32>,
    v6: Ranges<u128>,
}

impl Prefixes {
    /// Values are below `u32::MAX`. Of equal networks the last one counts.
    pub(crate) fn new(networks: impl Iterator<Item = (Network, u32)>) -> Self {
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for (Network { address, length }, value) in networks {
            match address {
                IpAddr::V4(address) => v4.push((address.to_bits(), length, value)),
                IpAddr::V6(address) => v6.push((address.to_bits(), length, value)),
            }
        }
        Self { v4: Ranges::new(v4), v6: Ranges::new(v6) }
    }

    /// The value of the longest network with this address.
    pub(crate) fn find(&self, address: IpAddr) -> Option<u32> {
        match address {
            IpAddr::V4(address) => self.v4.find(address.to_bits()),
            IpAddr::V6(address) => self.v6.find(address.to_bits()),
        }
    }

    /// Bytes of memory.
    pub(crate) fn memory(&self) -> usize {
        self.v4.memory() + self.v6.memory()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a search of all networks; few bits vary, so that networks are nested and adjacent.
        #[test]
        fn the_longest_network_counts(
            networks in proptest::collection::vec((any::<bool>(), any::<u8>(), 0_u8..=8), 0..40),
            addresses in proptest::collection::vec((any::<bool>(), any::<u8>()), 64),
        ) {
            let address = |v6: bool, bits: u8, tail: u8| match v6 {
                true => IpAddr::from((u128::from(bits) << 120 | u128::from(tail)).to_be_bytes()),
                false => IpAddr::from([bits, 0, 0, tail]),
            };
            let all: Vec<(Network, u32)> = (0..).zip(&networks).map(|(value, &(v6, bits, length))| {
                (Network::around(address(v6, bits, 0), length), value)
            }).collect();
            let prefixes = Prefixes::new(all.iter().copied());
            for &(v6, bits) in &addresses {
                for tail in [0, 9] {
                    let address = address(v6, bits, tail);
                    let has = |network: &Network| {
                        network.address.is_ipv4() == address.is_ipv4()
                            && Network::around(address, network.length) == *network
                    };
                    let longest = all.iter().filter(|(network, _)| has(network));
                    let longest = longest.max_by_key(|(network, value)| (network.length, *value));
                    prop_assert_eq!(prefixes.find(address), longest.map(|(_, value)| *value));
                }
            }
        }
    }
}
