//! What is asked of a run, whatever the application.

use std::fmt;
use std::sync::Arc;

use ringtap_io::bpf::Expression;
use ringtap_ring::Kind;
use ringtap_skeleton::Skeleton;
use ringtap_wire::Tunnels;
use serde::{Serialize, Serializer};

/// Slots of a lane: 256 KiB of packets, a good part of a core's second-level cache.
const RING_CAPACITY: usize = 4_096;
/// The batch size of P. P. C. Lee, T. Bu, G. Chandranmenon, *A Lock-Free, Cache-Efficient Shared Ring Buffer for
/// Multi-Core Architectures*, ANCS 2009.
const RING_BATCH: usize = 50;

/// What the user asked for. The plan has these as they are; what it chooses is in its [`Arrangement`](crate::Arrangement)
/// and [`Buffers`](crate::Buffers).
#[derive(Clone, Debug, Serialize)]
pub struct Options {
    /// What to call the source in the plan: file names, or interfaces.
    pub source: Vec<String>,
    /// Whether the source is interfaces.
    #[serde(skip)]
    pub live: bool,
    /// Of tunnels, whose packets the application gets.
    #[serde(serialize_with = "display")]
    pub tunnels: Tunnels,
    /// Packets that this selects count, the others are left out; absent: all.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "expression")]
    pub filter: Option<Arc<Expression>>,
    /// One packet in so many counts, of those; at least 1.
    pub sample: u32,
    /// Whether an interface's flows are left out, some of them, when more comes than can be worked off.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub shed: bool,
    /// Which arrangement; `None`: as suits the cores.
    #[serde(skip)]
    pub skeleton: Option<Skeleton>,
    /// How many queues the source is read through; `None`: as suits the cores.
    #[serde(skip)]
    pub queues: Option<usize>,
    /// How many workers, behind each queue; `None`: as suits the cores.
    #[serde(skip)]
    pub workers: Option<usize>,
    /// Cores to pin the seats to, in order; `None`: the kernel chooses.
    #[serde(skip)]
    pub cores: Option<Vec<usize>>,
    /// Which ring.
    #[serde(serialize_with = "display")]
    pub ring: Kind,
    /// Slots of each lane.
    pub ring_capacity: usize,
    /// Items after which an index is published.
    pub ring_batch: usize,
    /// How many outputs records go to.
    #[serde(skip)]
    pub outputs: usize,
    /// Memory that these take beside the buffers of records that wait to be written, bytes.
    #[serde(skip)]
    pub output_fixed_bytes: u64,
    /// Memory for the whole run, bytes; `None`: a quarter of the machine's.
    #[serde(skip)]
    pub memory_bytes: Option<u64>,
    /// Seed of all hash functions; the caller draws one if the user gave none.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            source: Vec::new(),
            live: false,
            tunnels: Tunnels::default(),
            filter: None,
            sample: 1,
            shed: false,
            skeleton: None,
            queues: None,
            workers: None,
            cores: None,
            ring: Kind::default(),
            ring_capacity: RING_CAPACITY,
            ring_batch: RING_BATCH,
            outputs: 0,
            output_fixed_bytes: 0,
            memory_bytes: None,
            seed: 0,
        }
    }
}

impl Options {
    /// How many interfaces are read; 0 for files.
    pub(crate) fn interfaces(&self) -> usize {
        if self.live { self.source.len().max(1) } else { 0 }
    }
}

fn expression<S: Serializer>(filter: &Option<Arc<Expression>>, s: S) -> Result<S::Ok, S::Error> {
    s.collect_str(filter.as_ref().map_or("", |filter| filter.text()))
}

/// Serializes a value by its [`Display`](fmt::Display).
pub fn display<T: fmt::Display, S: Serializer>(value: &T, s: S) -> Result<S::Ok, S::Error> {
    s.collect_str(value)
}
