//! The one place of this crate that is `unsafe`: system calls that take many datagrams at once, and options of sockets.
//!
//! Invariant: the kernel is given addresses of live memory alone, and for the time of a call.

mod address;
mod datagrams;
mod socket;

pub(crate) use address::Address;
pub(crate) use datagrams::{BURST, DATAGRAM_MAX, Inbox, Leaving, send};
pub(crate) use socket::{Interface, kernel_drops_packet, packet_socket, udp_socket};
pub use socket::{receive_drops, widen_receive_queue};

use std::ffi::c_int;
use std::io;

/// The result of a system call that answers -1 when it fails.
fn check(answer: c_int) -> io::Result<c_int> {
    if answer == -1 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}
