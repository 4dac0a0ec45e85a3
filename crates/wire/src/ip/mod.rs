//! The network layer: fills a record from an IP header, and returns its payload.
//!
//! Invariant: addresses and pair hash are written together or not at all
//! ([`Flags::BAD_HEADER`](crate::Flags::BAD_HEADER)).

pub(crate) mod check;
mod context;
mod fragment;
mod length;
pub(crate) mod v4;
pub(crate) mod v6;

pub(crate) use context::{Context, Data};
