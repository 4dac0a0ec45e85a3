//! Tests of the public interface: an independent decoder reads the generated frames.
#![allow(clippy::unwrap_used, reason = "in a test's helper it fails the test, as it should")]

mod decode;
mod promises;
mod stamp;
mod truth;
