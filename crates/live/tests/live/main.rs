//! The crate from outside, over veth pairs in network namespaces of their own.
//!
//! Needs root and iproute2; a test that cannot run says `SKIPPED` and why. No test asserts on time:
//! waiting is bounded, and what is asserted is what came, was counted or was said.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::print_stdout, reason = "processes of tests talk to them")]
#![allow(clippy::print_stderr, reason = "what is skipped is said")]

mod errors;
mod frames;
mod offload;
mod packet;
mod send;
mod states;
mod xdp;
