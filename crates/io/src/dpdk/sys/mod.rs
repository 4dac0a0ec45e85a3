//! The only `unsafe` code of DPDK support: calls into DPDK, and the memory that it lends.
//!
//! ```text
//! safe code ── safe calls ──▶ environment   start, log, devices
//!                             port          an opened device, its buffer pools, its counters
//!                             burst         frames of one queue, lent until the next receive call
//!                             outlet        the send queue
//!                             thread        registers threads
//!                                       └──▶ raw ──▶ shim.c ──▶ DPDK
//! ```
//!
//! Invariant: no safe function of this module lends a frame that was freed, or uses a port that is closed.

pub(crate) mod burst;
pub(crate) mod environment;
pub(crate) mod outlet;
pub(crate) mod port;
mod raw;
mod thread;

use std::ffi::c_int;
use std::io;

/// The result of a call that returns negative error numbers.
fn check(answer: c_int) -> io::Result<c_int> {
    // Some drivers return -1 instead of an error number.
    if answer < 0 { Err(io::Error::from_raw_os_error(-answer)) } else { Ok(answer) }
}
