//! Virtual devices of DPDK: files, rings, nothing. No network card, no huge pages, no root.
//!
//! No test asserts on time: waiting is bounded, and the tests check received frames, counters and messages.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

mod errors;
mod files;
mod frames;
mod rings;
