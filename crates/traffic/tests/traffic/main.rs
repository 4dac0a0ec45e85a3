//! The generator from outside: its frames read by an independent decoder.
#![allow(clippy::unwrap_used, reason = "in a test's helper it fails the test, as it should")]

mod decode;
mod promises;
mod stamp;
mod truth;
