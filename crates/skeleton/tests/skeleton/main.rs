//! Skeletons and networks from outside, on threads and under simulated schedules.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]
#![allow(clippy::print_stdout, reason = "tests communicate with child processes")]
#![allow(clippy::print_stderr, reason = "skipped tests are reported on stderr")]

mod networks;
mod simulation;
mod skeletons;
mod stream;
mod stream_ends;
mod stream_simulation;
mod toy;
