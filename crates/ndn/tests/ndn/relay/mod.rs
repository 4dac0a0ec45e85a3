//! Tests of the relay with programs and forwarders of other projects.

mod churn;
mod client;
mod commands;
mod hostile;
mod link;
mod ndnd;
mod python_ndn;
#[cfg(feature = "signatures")]
mod remote;
mod routing;
mod support;
mod tools;
