//! Tests of tables that workers share: they pass those of the product's forwarder.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]
#![allow(clippy::disallowed_methods, reason = "tests start threads")]

#[path = "../../../crates/ndn/tests/ndn/conformance/mod.rs"]
mod conformance;
mod designs;
#[path = "../../../crates/ndn/tests/ndn/steps.rs"]
mod steps;
#[path = "../../../crates/ndn/tests/ndn/support/mod.rs"]
mod support;
mod threads;
