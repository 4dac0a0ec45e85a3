//! Skeletons and networks from outside, on threads and under simulated schedules.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::print_stdout, reason = "processes of tests talk to them")]
#![allow(clippy::print_stderr, reason = "what is skipped is said")]

mod networks;
mod simulation;
mod skeletons;
mod stream;
mod stream_ends;
mod stream_simulation;
mod toy;
