//! Virtual devices of DPDK: files, rings, nothing. No network card, no huge pages, no root.
//!
//! No test asserts on time: waiting is bounded, and what is asserted is what came, was counted or was said.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod errors;
mod files;
mod frames;
mod rings;
