//! What mutual exclusion costs a forwarder: the experiment of J. Takemasa, Y. Koizumi and T. Hasegawa (*Analysis of
//! Mutual Exclusion Overhead of NDN Packet Forwarding on Multi-core Software Router*, ICN 2018), and what it leaves open.
//!
//! ```text
//!  cas        a compare-and-swap on lines that other cores have written: naive, prefetched, uncontended
//!  bystander  does one core's compare-and-swap stop the others?
//!  exchanges  packets a second: shards, locks, prefetched locks × names × workers
//!  model      the paper's Figure 2, and what follows if only a line is locked
//! ```
//!
//! Invariants: every run is bounded and starts threads that end with it. What is made before a clock starts is not
//! measured. A run that did not do all its work is an error, not a figure.

pub mod bystander;
pub mod cas;
pub mod exchanges;
pub mod model;
mod spread;

pub use ringtap_base::{TICK, ticks};
pub use spread::Spread;
