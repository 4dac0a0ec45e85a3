//! Tests of the program `ringtap-ndn`: the forwarder, its tools, flags and exit codes.
//!
//! Invariant: each test works in its own folder and leaves no files behind.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]
#![allow(clippy::print_stderr, reason = "skipped tests are reported on stderr")]
#![allow(clippy::disallowed_methods, reason = "tests start threads and sleep")]

mod common;
mod flag_table;
mod forward;
mod forward_ethernet;
mod forward_faces;
mod forward_metrics;
#[cfg(feature = "signatures")]
mod keys;
mod services;
mod tools;
mod usage;
