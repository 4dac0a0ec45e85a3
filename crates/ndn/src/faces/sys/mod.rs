//! System calls for bursts of datagrams and for socket options. This is the only `unsafe` module of
//! the crate.
//!
//! Invariant: all memory whose address is passed to the kernel lives for the whole call.

mod address;
mod datagrams;
mod socket;

pub(crate) use address::Address;
pub(crate) use datagrams::{BURST, DATAGRAM_MAX, Inbox, OutgoingMessage, send};
pub(crate) use socket::{
    Interface, connect, enlarge_buffers, kernel_drops_packet, only_joined_groups, packet_socket,
    second_udp_socket, udp_socket,
};
pub use socket::{receive_drops, widen_receive_queue};

use std::ffi::c_int;
use std::io;

/// The result of a system call that returns -1 on failure.
fn check(result: c_int) -> io::Result<c_int> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
