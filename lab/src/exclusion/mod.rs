//! The cost of mutual exclusion in an NDN forwarder: the experiment of J. Takemasa, Y. Koizumi and
//! T. Hasegawa (*Analysis of Mutual Exclusion Overhead of NDN Packet Forwarding on Multi-core
//! Software Router*, ICN 2018), and two questions that it leaves open (`bystander`, `exchanges`).
//!
//! ```text
//!  cas        a compare-and-swap on lines that other cores have written: naive, prefetched, uncontended
//!  bystander  whether one core's compare-and-swap stalls the others
//!  exchanges  exchanges per second in memory: shards, buckets with locks, one lock × names × workers
//!  live       the same modes in a running forwarder with UDP faces
//!  locked     the designs with locks: tables behind the forwarder's trait
//!  relay      the forwarder of `live`
//!  model      the paper's Figure 2, and the speed if only a cache line is locked
//! ```
//!
//! Invariants: every run is bounded, and its threads end with it. Setup before the clock starts is
//! not measured. A run that did not do all its work is an error, not a figure.

pub mod bystander;
pub mod cas;
pub mod exchanges;
pub mod live;
pub mod locked;
pub mod model;
pub mod relay;
mod spread;

pub use ringtap_base::{TICK, ticks};
pub use spread::Spread;
