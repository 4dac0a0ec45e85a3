//! Flags for threads and rings, of commands with an arrangement.

use std::hash::{BuildHasher, Hasher, RandomState};

use clap::Args;
use ringtap_engine::Options;
use ringtap_ring::Kind as Ring;

use crate::units::{self, Cores};

#[derive(Args)]
pub(crate) struct Threads {
    /// Read packets through this many queues, sharded by address pair [default: by the number
    /// of free cores]
    #[arg(long, value_name = "N", value_parser = units::index_count)]
    pub(crate) queues: Option<usize>,
    /// Print the plan and exit
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Pin the threads to these cores, in order: 0,1 or 0-3
    #[arg(long, value_name = "LIST", value_parser = units::cores, help_heading = "Threads")]
    pub(crate) cores: Option<Cores>,
    /// Use this kind of ring between the cores [default: vernier]
    #[arg(long, value_name = "KIND", help_heading = "Threads")]
    pub(crate) ring: Option<Ring>,
    /// Set the number of slots of each ring [default: 4096]
    #[arg(long, value_name = "N", value_parser = units::index_count, help_heading = "Threads")]
    pub(crate) ring_capacity: Option<usize>,
    /// Publish a ring's index after this many items [default: 50]
    #[arg(long, value_name = "N", value_parser = units::index_count, help_heading = "Threads")]
    pub(crate) ring_batch: Option<usize>,
}

impl Threads {
    /// The cores to pin to, in order.
    pub(crate) fn cores(&self) -> Option<Vec<usize>> {
        self.cores.as_ref().map(|cores| cores.0.clone())
    }

    /// The options of these flags. Without `seed`, the seed is random.
    pub(crate) fn options(&self, seed: Option<u64>) -> Options {
        let default = Options::default();
        Options {
            cores: self.cores(),
            ring: self.ring.unwrap_or(default.ring),
            ring_capacity: self.ring_capacity.unwrap_or(default.ring_capacity),
            ring_batch: self.ring_batch.unwrap_or(default.ring_batch),
            // The standard library's source of randomness is the system's.
            seed: seed.unwrap_or_else(|| RandomState::new().build_hasher().finish()),
            ..default
        }
    }
}
