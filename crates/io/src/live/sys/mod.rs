//! The only `unsafe` code of live capture: system calls, and memory shared with the kernel.
//!
//! ```text
//! safe code ── safe calls ──▶ socket, interface, bpf      one system call each
//!                             block_ring                  TPACKET_V3: blocks, held or returned
//!                             xsk, xsk_receive, xsk_send  AF_XDP: descriptors, held or returned
//!                             mapping                     mmap and munmap
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

/// The result of a system call that returns -1 on failure.
fn check(answer: c_int) -> io::Result<c_int> {
    if answer == -1 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}
