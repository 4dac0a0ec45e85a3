//! The one place of this crate that is `unsafe`: system calls, and memory shared with the kernel.
//!
//! ```text
//!  everything above ── safe calls ──▶ socket, interface, bpf      one system call each
//!                                     block_ring                  TPACKET_V3: blocks change hands
//!                                     xsk, xsk_receive, xsk_send  AF_XDP: descriptors change hands
//!                                     mapping                     mmap and munmap
//! ```
//!
//! Invariant: no safe function of this module lends memory that the kernel may be writing to.

pub(crate) mod block_ring;
pub(crate) mod bpf;
pub(crate) mod interface;
mod mapping;
pub(crate) mod socket;
mod xsk;
pub(crate) mod xsk_receive;
pub(crate) mod xsk_send;

use std::ffi::c_int;
use std::io;

/// The result of a system call that answers -1 when it fails.
fn check(answer: c_int) -> io::Result<c_int> {
    if answer == -1 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}
