//! The flags by which users say where threads run and what joins them.

use std::hash::{BuildHasher, Hasher, RandomState};

use clap::Args;
use ringtap_engine::Options;
use ringtap_ring::Kind as Ring;

use crate::units::{self, Cores};

#[derive(Args)]
pub(crate) struct Threads {
    /// Cores to pin the threads to, in order: 0,1 or 0-3
    #[arg(long, value_name = "LIST", value_parser = units::cores, help_heading = "Arrangement")]
    pub(crate) cores: Option<Cores>,
    /// Kind of ring between the cores [default: the fastest]
    #[arg(long, value_name = "KIND", help_heading = "Arrangement")]
    pub(crate) ring: Option<Ring>,
    /// Slots of each ring [default: 4096]
    #[arg(long, value_name = "N", value_parser = units::index_count, help_heading = "Arrangement")]
    pub(crate) ring_capacity: Option<usize>,
    /// Items after which a ring publishes its index [default: 50]
    #[arg(long, value_name = "N", value_parser = units::index_count, help_heading = "Arrangement")]
    pub(crate) ring_batch: Option<usize>,
}

impl Threads {
    /// The cores to pin to, in order.
    pub(crate) fn cores(&self) -> Option<Vec<usize>> {
        self.cores.as_ref().map(|cores| cores.0.clone())
    }

    /// Options that these flags make, of a run with this seed or one drawn at random.
    pub(crate) fn options(&self, seed: Option<u64>) -> Options {
        let usual = Options::default();
        Options {
            cores: self.cores(),
            ring: self.ring.unwrap_or(usual.ring),
            ring_capacity: self.ring_capacity.unwrap_or(usual.ring_capacity),
            ring_batch: self.ring_batch.unwrap_or(usual.ring_batch),
            // From the system's source of randomness, from which the standard library draws, too.
            seed: seed.unwrap_or_else(|| RandomState::new().build_hasher().finish()),
            ..usual
        }
    }
}
