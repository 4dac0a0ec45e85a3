//! Helpers that tests of several crates share.

pub mod browser;
pub mod driver;
#[cfg(feature = "kafka")]
pub mod kafka;
pub mod mmdb;
mod net;
mod pages;

pub use net::End::{self, Left, Right};
pub use net::{Killed, Net, account, send_all, soon, take};
pub use pages::printed_commands;
