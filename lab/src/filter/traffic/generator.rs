//! The packet generator of a mix.

use super::Mix;
use super::random::{Random, mangle};
use crate::filter::packet::{Address, Control, Data, Packet};

/// Generates the packets of a mix. The iterator is endless.
#[derive(Clone, Debug)]
pub struct Generator {
    mix: Mix,
    pairs: Pairs,
    exponential: Random,
    uniform: Random,
    trains: Vec<Train>,
    /// Data packets before the next control packet.
    data_left: u32,
}

impl Generator {
    /// A generator at the start of the mix, before the warm-up.
    ///
    /// # Panics
    /// If the mix has fewer than 2⁴ or more than 2¹⁶ addresses.
    pub fn new(mix: Mix) -> Self {
        assert!((4..=16).contains(&mix.addresses_log), "2⁴ to 2¹⁶ addresses");
        let mut pairs = Pairs::new(&mix);
        // The original draws a pair here and does not use it.
        pairs.next();
        let (exponential, uniform) = (Random::default(), Random::default());
        let mut generator =
            Self { mix, pairs, exponential, uniform, trains: Vec::new(), data_left: 0 };
        generator.trains = (0..1 << mix.trains_log).map(|_| generator.train()).collect();
        generator
    }

    /// The next packet of a warm-up: control only.
    pub fn control(&mut self) -> Control {
        let last = self.mix.addresses() as u32 - 1;
        let longest = (1 << (self.mix.addresses_log / 2)) - 1;
        let (address, _) = self.pairs.next();
        let begin = self.uniform.below(last - longest);
        let banned = self.uniform.unit() < self.mix.banned_fraction;
        let accepting = self.uniform.unit() < self.mix.accepting_fraction;
        let end = begin + 1 + self.uniform.below(longest - 1);
        Control { address, banned, accepting, begin: begin as Address, end: end as Address }
    }

    fn data(&mut self) -> Data {
        self.data_left -= 1;
        let index = self.uniform.number() as usize & (self.trains.len() - 1);
        let train = &mut self.trains[index];
        let data = Data {
            source: train.pair.0,
            destination: train.pair.1,
            sequence: train.sequence,
            train_size: train.size,
            tag: train.tag,
            iterations: self.exponential.exponential(train.work),
            seed: self.uniform.number(),
        };
        train.sequence += 1;
        if train.sequence == train.size {
            train.sequence = 0;
            train.left -= 1;
        }
        if train.left == 0 {
            self.trains[index] = self.train();
        }
        data
    }

    fn train(&mut self) -> Train {
        Train {
            pair: self.pairs.next(),
            size: self.exponential.exponential(self.mix.train_size),
            left: self.exponential.exponential(self.mix.trains_per_pair),
            work: f64::from(self.exponential.exponential(self.mix.work)),
            tag: self.uniform.number(),
            sequence: 0,
        }
    }
}

impl Iterator for Generator {
    type Item = Packet;

    fn next(&mut self) -> Option<Packet> {
        if self.data_left > 0 {
            return Some(Packet::Data(self.data()));
        }
        self.data_left = self.exponential.exponential(1.0 / self.mix.control_fraction - 1.0);
        Some(Packet::Control(self.control()))
    }
}

/// Packets between the same two addresses.
#[derive(Clone, Debug)]
struct Train {
    pair: (Address, Address),
    size: u32,
    /// Remaining trains between these addresses, including this one.
    left: u32,
    work: f64,
    tag: u32,
    sequence: u32,
}

/// Draws pairs of source and destination: two counters run through all addresses, in opposite
/// directions.
#[derive(Clone, Debug)]
struct Pairs {
    speed: f64,
    window: f64,
    mask: u32,
    source: u32,
    destination: u32,
    /// Steps that the counters still have to take.
    source_rest: f64,
    destination_rest: f64,
    exponential: Random,
    uniform: Random,
}

impl Pairs {
    fn new(mix: &Mix) -> Self {
        Self {
            speed: 2.0 / mix.pairs_per_address,
            window: mix.window,
            mask: mix.addresses() as u32 - 1,
            source: 0,
            destination: 0,
            source_rest: 0.0,
            destination_rest: 0.0,
            exponential: Random::default(),
            uniform: Random::default(),
        }
    }

    fn next(&mut self) -> (Address, Address) {
        self.source_rest += self.speed * self.uniform.unit();
        self.destination_rest += self.speed * self.uniform.unit();
        while self.source_rest > 0.0 {
            self.source = (self.source + 1) & self.mask;
            self.source_rest -= 1.0;
        }
        while self.destination_rest > 0.0 {
            self.destination = self.destination.wrapping_sub(1) & self.mask;
            self.destination_rest -= 1.0;
        }
        (self.near(self.source), self.near(self.destination))
    }

    fn near(&mut self, place: u32) -> Address {
        let away = self.exponential.exponential(self.window);
        // The largest number wraps around; the mask clears the sign bit.
        let place = 1u32.wrapping_add(place).wrapping_add(away) & 0x7fff_ffff;
        (mangle(place) & self.mask) as Address
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_packets_equal_those_of_the_original() {
        let mut generator = Generator::new(Mix::published(1).unwrap());
        let warm_up: Vec<_> = (0..1000).map(|_| generator.control()).collect();
        assert_eq!(warm_up.len(), 1000);
        let control =
            Control { address: 65, banned: true, accepting: true, begin: 1291, end: 1316 };
        assert_eq!(generator.next(), Some(Packet::Control(control)));
        let data = Data {
            source: 1654,
            destination: 1960,
            sequence: 0,
            train_size: 5,
            tag: 807_763_096,
            iterations: 638,
            seed: 241_764_120,
        };
        assert_eq!(generator.next(), Some(Packet::Data(data)));
    }

    /// Hashes of every field of 1,000 control packets and 300,000 packets of each mix, as generated
    /// by the Java original (OpenJDK 17).
    #[test]
    fn every_mix_equals_the_original_bit_for_bit() {
        let golden: [u64; 8] = [
            0xe3bd_a92f_8197_b36b,
            0x48f2_cb29_8580_ed95,
            0x0620_fe8c_c746_886d,
            0x1e31_d6b0_9505_6cc3,
            0xadee_e29f_fd5b_a0bd,
            0x9b69_92cf_eb97_9ba1,
            0x63cf_2f8f_2c00_9d83,
            0x9028_5b3a_279b_2a84,
        ];
        for (number, golden) in (1..).zip(golden) {
            let mut generator = Generator::new(Mix::published(number).unwrap());
            let warm_up: Vec<_> = (0..1000).map(|_| Packet::Control(generator.control())).collect();
            let mixed = warm_up.into_iter().chain(generator.take(300_000));
            assert_eq!(mixed.fold(0xcbf2_9ce4_8422_2325, mix_in), golden, "mix {number}");
        }
    }

    fn mix_in(state: u64, packet: Packet) -> u64 {
        let add = |state: u64, value: u32| {
            let state = (state ^ u64::from(value)).wrapping_mul(0x100_0000_01b3);
            state ^ (state >> 29)
        };
        match packet {
            Packet::Control(c) => {
                let [begin, end] = [c.begin, c.end].map(u32::from);
                let parts = [1, c.address.into(), c.banned.into(), c.accepting.into(), begin, end];
                parts.into_iter().fold(state, add)
            }
            Packet::Data(d) => {
                let [source, to] = [d.source, d.destination].map(u32::from);
                let parts = [2, source, to, d.sequence, d.train_size, d.tag, d.iterations, d.seed];
                parts.into_iter().fold(state, add)
            }
        }
    }
}
