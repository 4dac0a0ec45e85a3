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
//! to send. A single one is the reference. [`Parallel`] has several, for one thread each, which own
//! their names or share tables behind locks; they send the same packets.
//!
//! Invariants: no clock, sockets or threads here. After the start no memory is allocated for
//! packets, except in tables with a lock for each bucket. Every table is bounded; packets and entries without room are counted.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod burst;
mod counters;
mod dispatch;
mod face;
mod lock;
mod notice;
mod parallel;
mod pipelines;
mod scratch;
mod settings;
mod state;
mod strategy;
mod tables;
mod token;

pub use counters::{Counters, Drop};
pub use dispatch::Dispatch;
pub use face::{Face, FaceId, FaceUse, LinkKind};
pub use notice::Notice;
pub use parallel::{Parallel, Sharing};
pub use settings::{Settings, Unsolicited};
pub use state::{Forwarder, Outbox, Received, TooLong};
pub use strategy::Strategy;
pub use tables::COMPONENTS_MAX;
#[doc(hidden)]
pub use tables::{ContentAlone, PitAlone};
