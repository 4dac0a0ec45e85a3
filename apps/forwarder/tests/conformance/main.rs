//! The rules of NDN forwarding, a test each.

mod data;
mod interest;
mod nack;
#[path = "../support/mod.rs"]
mod support;
mod tables;
