//! Bounded single-producer/single-consumer rings behind one interface.
//!
//! ```text
//!                 slots, capacity of them
//!            ┌───┬───┬───┬───┬───┬───┬───┬───┐
//! Producer ─▶│   │   │ a │ b │ c │ d │   │   │─▶ Consumer
//!            └───┴───┴───┴───┴───┴───┴───┴───┘
//!                      └ peek ┘   └ push, push_burst, fill
//! ```
//!
//! [`spsc`] makes the fastest of them, chosen at compile time; [`ring`] makes any [`Kind`], chosen
//! at run time: every call then costs one predictable `match`. Four of the kinds are those of P.
//! Lee, T. Bu, G. Chandranmenon, "A Lock-Free, Cache-Efficient Multi-Core Synchronization Mechanism
//! for Line-Rate Network Traffic Monitoring", section II; the fifth, [`Kind::Vernier`], is the
//! default. docs/RINGS.md has their speed, and when to use something else.
//!
//! ```
//! let (mut producer, mut consumer) = ringtap_ring::spsc(4096)?;
//! // A burst, made in its slots, and read there.
//! assert_eq!(producer.fill(3, |i| i * i), 3);
//! let items = consumer.peek(256);
//! assert_eq!(items, [0, 1, 4]);
//! let n = items.len();
//! consumer.release(n);
//! // One by one.
//! assert_eq!(producer.push(9), Ok(()));
//! assert_eq!(consumer.pop(), Some(9));
//! # Ok::<(), ringtap_ring::InvalidCapacity>(())
//! ```
//!
//! Features: `std` (on) for parking; without it the crate is `no_std` with `alloc`. `model` is for
//! tests: scripts of operations against an oracle. `published` is for comparisons: the rings of the
//! paper as it prints them.
//!
//! Invariants: items leave in the order they came, each exactly once (taken, released or dropped
//! with the ring). No call blocks, except `park` and the spin lock of [`Kind::Lock`]. Nothing is
//! allocated after construction. The crate does not depend on packets.
#![cfg_attr(not(any(feature = "std", feature = "model", test, loom)), no_std)]

extern crate alloc;

mod face;
mod flavors;
#[cfg(any(test, feature = "model"))]
pub mod model;
#[cfg(feature = "std")]
mod park;
#[cfg(all(any(test, feature = "published"), not(loom)))]
#[doc(hidden)]
pub mod published;
mod slots;
mod sync;

pub use face::{Consumer, Producer, Ring, ring, spsc};
pub use flavors::{Any, Flavor, Kind, UnknownKind, Vernier};
pub use slots::InvalidCapacity;
#[cfg(loom)]
#[doc(hidden)]
pub use sync::{Edge, weaken};

/// Compiles and runs the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
