//! Tests of the public interface: bytes against expected ones and another decoder, and links to collectors that
//! restart.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]
#![allow(clippy::print_stderr, reason = "skipped tests are reported on stderr")]

#[cfg(feature = "kafka")]
mod broker;
mod collectors;
mod common;
mod conformance;
mod contract;
mod decode;
mod facts;
mod golden;
mod links;
mod lists;
mod tls;
