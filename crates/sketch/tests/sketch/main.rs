//! Tests of the public interface.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]
#![allow(clippy::print_stdout, reason = "tests communicate with child processes")]
#![allow(clippy::print_stderr, reason = "skipped tests are reported on stderr")]

mod apache;
mod hierarchy;
mod images;
mod laws;
mod reversible;
mod shared;
mod support;
