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
//! their names; they send the same packets. Other [`design`]s of the tables are for comparison.
//!
//! Invariants: no clock, sockets or threads here. After the start no memory is allocated for
//! packets. Every table is bounded; packets and entries without room are counted.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod access;
mod burst;
mod context;
mod counters;
mod dispatch;
mod face;
mod notice;
mod outbox;
mod parallel;
mod pipelines;
mod scratch;
mod settings;
mod short_prefixes;
mod state;
mod strategy;
mod tables;
mod token;

pub use counters::{Counters, Drop};
pub use dispatch::Dispatch;
pub use face::{Face, FaceId, FaceUse, LinkKind};
pub use notice::Notice;
pub use outbox::{Outbox, Received};
pub use parallel::Parallel;
pub use settings::{Settings, Unsolicited};
pub use state::{Forwarder, TooLong};
pub use strategy::Strategy;
pub use tables::COMPONENTS_MAX;
#[doc(hidden)]
pub use tables::{ContentAlone, PitAlone};

/// What other designs of the tables need: those of the lab, which workers share.
pub mod design {
    pub use super::access::{Access, TableUse};
    pub use super::context::Context;
    pub use super::face::FACES_MAX;
    pub use super::pipelines::Pipelines;
    pub use super::tables::{
        ContentStore, Contents, DeadNonces, EntryState, INTERVAL_NS, InRecord, NameKey, NonceList,
        OutRecord, OwnTables, PendingInterests, Pit, PitKey, Prefixes, TICK_NS, Tables, Wheel,
    };
}
