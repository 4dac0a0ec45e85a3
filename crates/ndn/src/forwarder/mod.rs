//! The NDN forwarder: handling of Interest, Data and Nack.
//!
//! ```text
//!                    ┌─ dead nonces: a duplicate?      (loop: Nack)
//!  Interest ─────────┼─ content store: a match?        (hit: Data)
//!                    ├─ PIT: pending already?          (record it)
//!                    └─ strategy over the FIB ─────────▶ Interest with our token
//!  Data ── PIT, by token and name ─▶ content store ────▶ Data to downstream faces, with their tokens
//!  Nack ── PIT ─▶ strategy ────────────────────────────▶ Nack
//! ```
//!
//! A [`Forwarder`] is a state machine: it takes the time, a face and a packet, and returns packets
//! to send. A single one is the reference design. [`Sharded`] has several forwarders, each with its
//! own names. [`Locked`] has many forwarders behind locks, which any thread may use (J. Takemasa,
//! Y. Koizumi, T. Hasegawa, *Analysis of Mutual Exclusion Overhead of NDN Packet Forwarding on
//! Multi-core Software Router*, ICN 2018). All designs send the same packets.
//!
//! Invariants: no clock, sockets or threads here. After the start no memory is allocated for
//! packets. Every table is bounded; packets and entries without room are counted.
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
pub use face::{Face, FaceId, FaceUse, LinkKind};
pub use locked::{Locked, Prefetching};
pub use settings::{Settings, Unsolicited};
pub use sharded::Sharded;
pub use state::{Forwarder, Outbox, Received, TooLong};
pub use strategy::Strategy;
pub use tables::COMPONENTS_MAX;
#[doc(hidden)]
pub use tables::{ContentAlone, PitAlone};
