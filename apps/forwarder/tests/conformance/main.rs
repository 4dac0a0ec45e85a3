//! The rules of NDN forwarding, a test each.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod data;
mod interest;
mod nack;
#[path = "../support/mod.rs"]
mod support;
mod tables;
