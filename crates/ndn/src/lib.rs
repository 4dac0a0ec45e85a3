//! Named Data Networking: packets, the forwarder's state machine, its faces, and the relay that
//! runs a forwarder with its faces and management.
//!
//! ```text
//!  faces ── frames ─▶ packets ── Interest, Data, Nack ─▶ forwarder ── actions ─▶ faces
//!                                                      relay runs them, with management
//! ```
//!
//! Dependencies between the modules point down: `relay` uses all others, `forwarder` and `faces`
//! use only `packets`.
#![deny(missing_docs, unsafe_code)]

pub mod faces;
pub mod forwarder;
pub mod packets;
pub mod relay;
