//! Streams with known counts.

// Each test file is a separate crate and uses a part of this module.
#![allow(dead_code, unreachable_pub)]

use ringtap_sketch::{Key, Sketch};
use std::collections::BTreeMap;

pub type Tuple = [u8; 13];

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn share(&mut self) -> f64 {
        (self.number() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// The i-th key of a population: five-tuples of neighbouring hosts and ports, as in real traffic.
pub fn tuple(i: u64) -> Tuple {
    let mut key = [0; 13];
    key[..4].copy_from_slice(&(0x0a00_0000 + (i / 50) as u32).to_be_bytes());
    key[4..8].copy_from_slice(&(0xc0a8_0000 + (i % 7) as u32).to_be_bytes());
    key[8..10].copy_from_slice(&((1024 + i % 50) as u16).to_be_bytes());
    key[10..12].copy_from_slice(&443u16.to_be_bytes());
    key[12] = 6;
    key
}

/// Keys with a Zipf distribution from a population, with weight 1 or the packets' lengths.
pub fn zipf(packets: usize, population: u64, s: f64, octets: bool, seed: u64) -> Vec<(Tuple, u64)> {
    let mut random = Random(seed);
    let mut cumulated = Vec::new();
    let mut sum = 0.0;
    for rank in 1..=population {
        sum += (rank as f64).powf(-s);
        cumulated.push(sum);
    }
    (0..packets)
        .map(|_| {
            let at = random.share() * sum;
            let rank = cumulated.partition_point(|&c| c < at) as u64;
            let weight = if octets { 40 + random.number() % 1460 } else { 1 };
            (tuple(rank.min(population - 1)), weight)
        })
        .collect()
}

/// The correct counts.
pub fn truth<K: Key>(stream: &[(K, u64)]) -> BTreeMap<K, u64> {
    let mut counts = BTreeMap::new();
    for (key, weight) in stream {
        *counts.entry(*key).or_insert(0) += weight;
    }
    counts
}

/// A sketch after a stream, in bursts of various lengths.
pub fn fed<S: Sketch>(mut sketch: S, stream: &[(S::Key, u64)]) -> S {
    for (i, burst) in stream.chunks(77).enumerate() {
        if i % 3 == 0 {
            burst.iter().for_each(|(key, weight)| sketch.update(key, *weight));
        } else {
            sketch.update_burst(burst);
        }
    }
    sketch
}

/// The parts of a stream for `n` workers, divided by packet or by key.
pub fn shares<K: Key>(stream: &[(K, u64)], n: usize, by_key: bool) -> Vec<Vec<(K, u64)>> {
    let mut shares = vec![Vec::new(); n];
    for (i, item) in stream.iter().enumerate() {
        let of_key = item.0.bytes().iter().fold(0usize, |sum, &byte| sum * 31 + byte as usize);
        shares[if by_key { of_key } else { i } % n].push(*item);
    }
    shares
}
