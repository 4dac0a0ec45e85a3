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

/// Nanoseconds since 1970-01-01 UTC, by the clock that the kernel stamps frames with.
#[inline]
pub fn now_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec to the address of one.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &mut time) };
    // A clock before 1970 shows as 0.
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + time.tv_nsec as u64
}

/// Nanoseconds by a clock that is never set, and stands still while the machine sleeps.
#[inline]
pub fn steady_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: as above.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
