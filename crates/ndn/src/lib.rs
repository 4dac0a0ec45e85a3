//! Named Data Networking: packets, the forwarder's state machine, its faces, and the forwarder at work.
//!
//! ```text
//!  faces ── frames ─▶ packets ── Interest, Data, Nack ─▶ forwarder ── actions ─▶ faces
//!                                                      relay joins them, with management
//! ```
//!
//! Arrows between the modules point down: `relay` uses all, `forwarder` and `faces` use `packets` alone.
#![deny(missing_docs, unsafe_code)]

pub mod faces;
pub mod forwarder;
pub mod packets;
pub mod relay;
