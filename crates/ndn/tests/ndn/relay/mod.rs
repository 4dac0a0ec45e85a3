//! Tests of the relay with programs and forwarders of other projects.

mod ndnd;
#[cfg(feature = "signatures")]
mod remote;
mod support;
