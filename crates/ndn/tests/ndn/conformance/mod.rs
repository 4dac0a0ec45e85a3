//! The rules of NDN forwarding, a test each.

mod data;
mod interest;
mod nack;
mod tables;
