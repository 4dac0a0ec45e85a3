//! Faces over loopback and over a veth pair, as their neighbours see them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::print_stderr, reason = "what is skipped is said")]

mod ethernet;
mod stream;
mod support;
mod udp;
