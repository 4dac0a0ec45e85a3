//! Integration tests of the public interface.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::print_stdout, reason = "processes of tests communicate by stdout")]
#![allow(clippy::print_stderr, reason = "skipped tests are reported")]

mod conformance;
mod equality;
mod faces;
mod relay;
mod support;
mod vectors;
