//! The rules of NDN forwarding, one test each.

mod data;
mod interest;
mod nack;
mod tables;
