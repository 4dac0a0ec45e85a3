//! The rings from outside.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]
#![allow(clippy::print_stdout, reason = "tests communicate with child processes")]
#![allow(clippy::print_stderr, reason = "skipped tests are reported on stderr")]

mod face;
mod threads;
