//! Estimates the number of distinct keys: HyperLogLog, in the binary format of Apache DataSketches.
//!
//! P. Flajolet et al., "HyperLogLog: the analysis of a near-optimal cardinality estimation algorithm", AofA 2007;
//! the registers, corrections and bytes are those of the crate `datasketches` (8 bits a register), so Druid, Spark and
//! the libraries for Java and C++ can merge them. The bytes of a key are hashed.
//!
//! The format requires a hash without a secret key, so an attacker who chooses the keys can falsify the count. Merging
//! is exact: each register gets the larger value, in any order.

use crate::key::Key;
use datasketches::{
    common::NumStdDev,
    error::Error,
    hash::value::raw_bytes,
    hll::{HllSketch, HllType, HllUnion},
};
use std::marker::PhantomData;

/// 2^lg registers: the standard error is about 0.83 / √registers.
#[derive(Clone, Debug)]
pub struct Distinct<K> {
    hll: HllSketch,
    key: PhantomData<K>,
}

/// An estimated number of keys; it is between the bounds with a probability of 99.7 % (three standard errors).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DistinctEstimate {
    /// Lower bound, in keys.
    pub lower: f64,
    /// Estimate, in keys.
    pub value: f64,
    /// Upper bound, in keys.
    pub upper: f64,
}

impl<K: Key> Distinct<K> {
    /// 2^`lg_registers` bytes when full; 4 to 21, usually 12 (1.3 %).
    pub fn new(lg_registers: u8) -> Result<Self, Error> {
        HllSketch::new(lg_registers, HllType::Hll8).map(Self::of)
    }

    fn of(hll: HllSketch) -> Self {
        Self { hll, key: PhantomData }
    }

    /// Counts a key; a repeated key changes nothing.
    pub fn update(&mut self, key: &K) {
        self.hll.update(raw_bytes::from_slice(key.bytes()));
    }

    /// The estimated number of distinct keys.
    pub fn estimate(&self) -> DistinctEstimate {
        DistinctEstimate {
            lower: self.hll.lower_bound(NumStdDev::Three),
            value: self.hll.estimate(),
            upper: self.hll.upper_bound(NumStdDev::Three),
        }
    }

    /// Counts the keys of both, with the smaller number of registers of the two.
    pub fn merge(&mut self, other: &Self) -> Result<(), Error> {
        let lg = self.hll.lg_config_k().min(other.hll.lg_config_k());
        let mut union = HllUnion::new(lg)?;
        union.update(&self.hll);
        union.update(&other.hll);
        self.hll = union.to_sketch(HllType::Hll8);
        Ok(())
    }

    /// Bytes of memory.
    pub fn memory_bytes(&self) -> usize {
        self.hll.estimated_size()
    }

    /// The bytes in the format of the DataSketches libraries.
    pub fn to_apache(&self) -> Vec<u8> {
        self.hll.serialize()
    }

    /// Rounds and points of a full run.
    pub fn from_apache(bytes: &[u8]) -> Result<Self, Error> {
        HllSketch::deserialize(bytes).map(Self::of)
    }
}
