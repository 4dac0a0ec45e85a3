//! Tests of the relay with programs and forwarders of other projects.

mod ndnd;
mod support;
