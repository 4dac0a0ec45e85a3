//! Helpers that tests of several crates share.

pub mod browser;
pub mod driver;
pub mod flag_table;
#[cfg(feature = "kafka")]
pub mod kafka;
pub mod mmdb;
mod net;
mod pages;
mod process;
pub mod restricted;
mod scrape;

pub use net::End::{self, Left, Right};
pub use net::{Killed, Net, account, send_all, soon, take};
pub use pages::printed_commands;
pub use process::{Background, have, output_of};
pub use scrape::{SCRAPE, free_address, request, request_on};
