//! The NDN forwarder: what to do with an Interest, a Data or a Nack.
//!
//! ```text
//!                    ┌─ dead nonces: seen before?      (loop: Nack)
//!  Interest ─────────┼─ content store: kept?           (hit: Data)
//!                    ├─ PIT: pending already?          (record it)
//!                    └─ strategy over the FIB ─────────▶ Interest with a token of ours
//!  Data ── PIT, by token and name ─▶ content store ────▶ Data to all that asked, each with its own token
//!  Nack ── PIT ─▶ strategy ────────────────────────────▶ Nack
//! ```
//!
//! A [`Forwarder`] is a state machine: time, a face and a packet go in, packets come out. One is the
//! reference. [`Sharded`] has several, each with the names that are its own; [`Locked`] has many, behind
//! locks, for whichever thread has a packet (J. Takemasa, Y. Koizumi, T. Hasegawa, *Analysis of Mutual
//! Exclusion Overhead of NDN Packet Forwarding on Multi-core Software Router*, ICN 2018). All give out the
//! same packets.
//!
//! Invariants: no clock, sockets or threads here. Nothing is allocated for packets after the start; every table
//! is bounded, and what it has no room for is counted.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod burst;
mod counters;
mod face;
mod locked;
mod pipelines;
mod scratch;
mod settings;
mod sharded;
mod state;
mod strategy;
mod tables;
mod token;

pub use counters::{Counters, Drop};
pub use face::{Face, FaceId, LinkKind};
pub use locked::{Locked, Prefetching};
pub use settings::{Settings, Unsolicited};
pub use sharded::Sharded;
pub use state::{Came, Forwarder, Outbox, TooLong};
pub use strategy::Strategy;
pub use tables::COMPONENTS_MAX;
#[doc(hidden)]
pub use tables::PitAlone;
