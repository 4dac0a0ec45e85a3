//! Interfaces: veth pairs in network namespaces that the tests create.
//!
//! Needs root and iproute2; a test that cannot run prints `SKIPPED` and the reason. No test asserts on time: waiting is
//! bounded, and the tests check received frames, counters and messages.

mod errors;
mod frames;
mod offload;
mod packet;
mod port;
mod send;
mod states;
mod xdp;
