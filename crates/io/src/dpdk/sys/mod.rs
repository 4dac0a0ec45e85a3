//! The one place of this crate that is `unsafe`: calls into DPDK, and the memory that it lends.
//!
//! ```text
//!  everything above ── safe calls ──▶ environment   start, log, devices
//!                                     port          a device that was opened, its pools, its counters
//!                                     burst         frames of one queue, lent until the next are asked for
//!                                     outlet        the queue to send by
//!                                     thread        a thread makes itself known
//!                                       └──▶ raw ──▶ shim.c ──▶ DPDK
//! ```
//!
//! Invariant: no safe function of this module lends a frame that was given back, or calls for a port that is closed.

pub(crate) mod burst;
pub(crate) mod environment;
pub(crate) mod outlet;
pub(crate) mod port;
mod raw;
mod thread;

use std::ffi::c_int;
use std::io;

/// The result of a call whose negative answers are error numbers.
fn check(answer: c_int) -> io::Result<c_int> {
    // Some drivers answer -1 and no number.
    if answer < 0 { Err(io::Error::from_raw_os_error(-answer)) } else { Ok(answer) }
}
