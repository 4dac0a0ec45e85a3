//! Interfaces, over veth pairs in network namespaces of their own.
//!
//! Needs root and iproute2; a test that cannot run says `SKIPPED` and why. No test asserts on time:
//! waiting is bounded, and what is asserted is what came, was counted or was said.

mod errors;
mod frames;
mod offload;
mod packet;
mod send;
mod states;
mod xdp;
