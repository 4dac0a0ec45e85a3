//! Bounded single-producer/single-consumer rings behind one face.
//!
//! ```text
//!                 slots, capacity of them
//!            ┌───┬───┬───┬───┬───┬───┬───┬───┐
//! Producer ─▶│   │   │ a │ b │ c │ d │   │   │─▶ Consumer
//!            └───┴───┴───┴───┴───┴───┴───┴───┘
//!                      └ peek ┘   └ push, push_burst, fill
//! ```
//!
//! Source: P. Lee, T. Bu, G. Chandranmenon, "A Lock-Free, Cache-Efficient Multi-Core
//! Synchronization Mechanism for Line-Rate Network Traffic Monitoring", section II. Its four rings
//! are the four [`Kind`]s; which one runs is chosen when the ring is made, and every call costs one
//! predictable `match`. docs/RINGS.md tells when to flush and who pairs with whom.
//!
//! Invariants: items leave in the order they came, each exactly once (taken, released or dropped
//! with the ring). No call blocks, but for the spin lock of [`Kind::Lock`]. Nothing is allocated
//! after [`ring`] has returned. The crate knows nothing of packets.

#![cfg_attr(not(any(feature = "std", feature = "model", test, loom)), no_std)]

extern crate alloc;

pub mod arbiter;
mod face;
mod flavors;
#[cfg(any(test, feature = "model"))]
pub mod model;
#[cfg(feature = "std")]
mod park;
mod slots;
mod sync;

pub use face::{Consumer, Producer, Ring, ring, spsc};
pub use flavors::{Any, Flavor, Kind, UnknownKind, Vernier};
pub use slots::InvalidCapacity;
#[cfg(loom)]
#[doc(hidden)]
pub use sync::{Edge, weaken};
