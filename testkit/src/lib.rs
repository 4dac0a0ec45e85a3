//! Helpers that tests of several crates share.

mod net;

pub use net::End::{self, Left, Right};
pub use net::{Killed, Net, account, send_all, take};
