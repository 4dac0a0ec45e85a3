//! Options of a run that do not depend on the application.

use std::fmt;
use std::sync::Arc;

use ringtap_io::bpf::Expression;
use ringtap_ring::Kind;
use ringtap_skeleton::Skeleton;
use ringtap_wire::{TunnelPorts, Tunnels};
use serde::{Serialize, Serializer};

/// Slots of a lane: 4,096 records of 64 bytes, 256 KiB, which fit a core's L2 cache.
const RING_CAPACITY: usize = 4_096;
/// The batch size of P. P. C. Lee, T. Bu, G. Chandranmenon, *A Lock-Free, Cache-Efficient Shared Ring Buffer for
/// Multi-Core Architectures*, ANCS 2009.
const RING_BATCH: usize = 50;

/// The user's options. The plan contains them unchanged; its choices are in its
/// [`Arrangement`](crate::Arrangement) and [`Buffers`](crate::Buffers).
#[derive(Clone, Debug, Serialize)]
pub struct Options {
    /// Names of the files or interfaces that are read.
    pub source: Vec<String>,
    /// True for interfaces, false for files.
    #[serde(skip)]
    pub live: bool,
    /// Which packets of tunnels the application receives.
    #[serde(serialize_with = "display")]
    pub tunnels: Tunnels,
    /// The UDP ports on which tunnels are expected.
    #[serde(skip_serializing_if = "TunnelPorts::is_default", serialize_with = "display")]
    pub tunnel_ports: TunnelPorts,
    /// Selects the packets that are handled; `None`: all.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "expression")]
    pub filter: Option<Arc<Expression>>,
    /// One in `sample` of the selected packets is handled; at least 1.
    pub sample: u32,
    /// Packets seen before within this time are left out, nanoseconds; `None`: they count again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dedup_ns: Option<u64>,
    /// Whether an overloaded queue drops all packets of some address pairs instead of random packets.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub shed: bool,
    /// The arrangement; `None`: chosen by the number of cores.
    #[serde(skip)]
    pub skeleton: Option<Skeleton>,
    /// Queues through which the source is read; `None`: chosen by the number of cores.
    #[serde(skip)]
    pub queues: Option<usize>,
    /// Workers of each queue; `None`: chosen by the number of cores.
    #[serde(skip)]
    pub workers: Option<usize>,
    /// Cores to which the seats are pinned, in order; `None`: the kernel chooses.
    #[serde(skip)]
    pub cores: Option<Vec<usize>>,
    /// Keeps the latest frames, within the memory of the run; `None`: none are kept.
    #[serde(skip)]
    pub recent: Option<RecentBytes>,
    /// The kind of ring between threads.
    #[serde(serialize_with = "display")]
    pub ring: Kind,
    /// Slots of each lane.
    pub ring_capacity: usize,
    /// Items after which a ring index is published.
    pub ring_batch: usize,
    /// Number of outputs for records.
    #[serde(skip)]
    pub outputs: usize,
    /// Memory of these outputs besides the buffers of waiting records, bytes.
    #[serde(skip)]
    pub output_fixed_bytes: u64,
    /// Memory for decompressing input files, bytes.
    #[serde(skip)]
    pub input_bytes: u64,
    /// Memory for the whole run, bytes; `None`: a quarter of the machine's.
    #[serde(skip)]
    pub memory_bytes: Option<u64>,
    /// Seed of all hash functions; the caller draws one if the user gave none.
    pub seed: u64,
}

/// Memory for the latest frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecentBytes {
    /// Chosen by the memory of the run.
    Default,
    /// A number of bytes.
    Given(u64),
}

impl Default for Options {
    fn default() -> Self {
        Self {
            source: Vec::new(),
            live: false,
            tunnels: Tunnels::default(),
            tunnel_ports: TunnelPorts::default(),
            filter: None,
            sample: 1,
            dedup_ns: None,
            shed: false,
            skeleton: None,
            queues: None,
            workers: None,
            cores: None,
            recent: None,
            ring: Kind::default(),
            ring_capacity: RING_CAPACITY,
            ring_batch: RING_BATCH,
            outputs: 0,
            output_fixed_bytes: 0,
            input_bytes: 0,
            memory_bytes: None,
            seed: 0,
        }
    }
}

impl Options {
    /// Number of interfaces; 0 for files.
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
