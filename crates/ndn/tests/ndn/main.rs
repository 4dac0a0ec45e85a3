//! Integration tests of the public interface.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]
#![allow(clippy::print_stdout, reason = "processes of tests communicate by stdout")]
#![allow(clippy::print_stderr, reason = "skipped tests are reported")]

mod conformance;
mod designs;
mod equality;
mod faces;
mod relay;
#[cfg(feature = "signatures")]
mod signatures;
mod steps;
mod support;
mod vectors;
