//! The eight published mixes of packets.

/// The parameters of a mix. Numbers of addresses and trains are powers of two, given by exponent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mix {
    /// log₂ of the number of addresses: 4 to 16.
    pub addresses_log: u32,
    /// log₂ of the number of concurrent trains.
    pub trains_log: u32,
    /// Mean number of packets in a train.
    pub train_size: f64,
    /// Mean number of trains between a pair of addresses before another pair replaces it.
    pub trains_per_pair: f64,
    /// Mean distance of an address from the current place of the walk.
    pub window: f64,
    /// Pairs drawn per step of the walk, and so the mean number of pairs of an address.
    pub pairs_per_address: f64,
    /// Mean number of steps of work for a packet.
    pub work: f64,
    /// Share of control packets.
    pub control_fraction: f64,
    /// Share of control packets that ban.
    pub banned_fraction: f64,
    /// Share of control packets that accept.
    pub accepting_fraction: f64,
}

impl Mix {
    /// Mix 1 to 8; `None` for other numbers.
    pub fn published(number: usize) -> Option<Self> {
        number.checked_sub(1).and_then(|index| MIXES.get(index)).copied()
    }

    /// Number of addresses.
    pub fn addresses(&self) -> usize {
        1 << self.addresses_log
    }

    /// Control packets of the warm-up: the number of addresses to the power of 1.5.
    pub fn warm_up(&self) -> usize {
        (self.addresses() as f64).powf(1.5).floor() as usize
    }
}

#[rustfmt::skip]
const MIXES: [Mix; 8] = [
    mix(11, 12,  5.0,  1.0, 3.0,  3.0, 3822.0, 0.24, 0.04, 0.96),
    mix(12, 10,  1.0,  3.0, 3.0,  1.0, 2644.0, 0.11, 0.09, 0.92),
    mix(12, 10,  4.0,  3.0, 6.0,  2.0, 1304.0, 0.10, 0.03, 0.90),
    mix(14, 10,  5.0,  5.0, 6.0,  2.0,  315.0, 0.08, 0.05, 0.90),
    mix(15, 14,  9.0, 16.0, 7.0, 10.0, 4007.0, 0.02, 0.10, 0.84),
    mix(15, 15,  9.0, 10.0, 9.0,  9.0, 7125.0, 0.01, 0.20, 0.77),
    mix(15, 15, 10.0, 13.0, 8.0, 10.0, 5328.0, 0.04, 0.18, 0.80),
    mix(16, 14, 15.0, 12.0, 9.0,  5.0, 8840.0, 0.04, 0.19, 0.76),
];

#[expect(clippy::too_many_arguments, reason = "a line of the published table")]
const fn mix(
    addresses_log: u32,
    trains_log: u32,
    train_size: f64,
    trains_per_pair: f64,
    window: f64,
    pairs_per_address: f64,
    work: f64,
    control_fraction: f64,
    banned_fraction: f64,
    accepting_fraction: f64,
) -> Mix {
    Mix {
        addresses_log,
        trains_log,
        train_size,
        trains_per_pair,
        window,
        pairs_per_address,
        work,
        control_fraction,
        banned_fraction,
        accepting_fraction,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warm_up_is_the_addresses_to_the_power_of_one_and_a_half() {
        let warm_up: Vec<_> = (1..=8).filter_map(Mix::published).map(|m| m.warm_up()).collect();
        let expected =
            [92_681, 262_144, 262_144, 2_097_152, 5_931_641, 5_931_641, 5_931_641, 16_777_216];
        assert_eq!(warm_up, expected);
        assert_eq!((Mix::published(0), Mix::published(9)), (None, None));
    }
}
