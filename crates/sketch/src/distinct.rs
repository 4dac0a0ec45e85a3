//! How many different keys there are: HyperLogLog, in the binary form of Apache DataSketches.
//!
//! P. Flajolet et al., "HyperLogLog: the analysis of a near-optimal cardinality estimation algorithm", AofA 2007;
//! the registers, corrections and bytes are those of the crate `datasketches` (8 bits a register), so Druid, Spark and the libraries for Java
//! and C++ merge them. A key is hashed as its bytes.
//!
//! That form demands a hash that everybody knows, so who chooses the keys can mislead the count. Merging is exact:
//! registers take the larger value, in any order.

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

/// A number of keys; it lies between the bounds with a probability of 99.7 % (three standard errors).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DistinctEstimate {
    pub lower: f64,
    pub value: f64,
    pub upper: f64,
}

impl<K: Key> Distinct<K> {
    /// With 2^`lg_registers` bytes once it is full; 4 to 21, and 12 is usual (1.3 %).
    pub fn new(lg_registers: u8) -> Result<Self, Error> {
        HllSketch::new(lg_registers, HllType::Hll8).map(Self::of)
    }

    fn of(hll: HllSketch) -> Self {
        Self { hll, key: PhantomData }
    }

    pub fn update(&mut self, key: &K) {
        self.hll.update(raw_bytes::from_slice(key.bytes()));
    }

    pub fn estimate(&self) -> DistinctEstimate {
        DistinctEstimate {
            lower: self.hll.lower_bound(NumStdDev::Three),
            value: self.hll.estimate(),
            upper: self.hll.upper_bound(NumStdDev::Three),
        }
    }

    /// Counts the keys of both; with as many registers as the smaller of the two has.
    pub fn merge(&mut self, other: &Self) -> Result<(), Error> {
        let lg = self.hll.lg_config_k().min(other.hll.lg_config_k());
        let mut union = HllUnion::new(lg)?;
        union.update(&self.hll);
        union.update(&other.hll);
        self.hll = union.to_sketch(HllType::Hll8);
        Ok(())
    }

    pub fn memory_bytes(&self) -> usize {
        self.hll.estimated_size()
    }

    /// Bytes that every DataSketches library reads.
    pub fn to_apache(&self) -> Vec<u8> {
        self.hll.serialize()
    }

    pub fn from_apache(bytes: &[u8]) -> Result<Self, Error> {
        HllSketch::deserialize(bytes).map(Self::of)
    }
}
