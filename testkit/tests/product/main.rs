//! The product seen from outside: every arrangement against the reference, oracles and generated truth.

mod common;
#[cfg(feature = "full")]
mod corpus;
mod equality;
mod facts;
mod filter;
mod live;
mod oracle;
mod traces;
mod truth;
mod tunnels;
mod ways;
