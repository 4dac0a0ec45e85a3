//! Many datagrams per system call, and several datagrams per message (UDP_SEGMENT and UDP_GRO).
//!
//! ```text
//!  bytes out  | a | a | a | b |     one neighbour, one size: one message, which the kernel splits
//!  bytes in   | a | a | a |         one neighbour, one size: one message, which the caller splits
//! ```

use std::ffi::c_int;
use std::io;
use std::net::{SocketAddr, SocketAddrV6};
use std::os::fd::{AsRawFd, BorrowedFd};

use super::address::{ADDRESS_MAX, Address};
use super::check;

/// Maximum number of messages per system call.
pub(crate) const BURST: usize = 64;

/// Maximum size of a message, in bytes.
pub(crate) const DATAGRAM_MAX: usize = 65_535;

/// Control messages: the datagram size of a message to split, and of a message that the kernel
/// merged.
const UDP_SEGMENT: c_int = 103;
const UDP_GRO: c_int = 104;

/// Size of one control message with a number, in bytes: 16 for the header, 8 for the number.
const NUMBER: usize = 24;

/// Maximum size of the control messages of a message, in bytes: a number and an IPv6 address.
const CONTROL: usize = NUMBER + 40;

/// Control messages with the kernel's alignment.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct Control([u8; CONTROL]);

/// Buffers for received datagrams.
pub(crate) struct Inbox {
    bytes: Vec<u8>,
    from: Vec<[u8; ADDRESS_MAX]>,
    messages: Vec<ReceivedMessage>,
}

/// A received message: datagrams of `segment` bytes each; the last may be shorter.
#[derive(Clone, Copy)]
pub(crate) struct ReceivedMessage {
    pub(crate) from: Address,
    /// The address of this host to which it was sent, with port 0; only of a socket that is bound to
    /// all addresses.
    pub(crate) to: Option<SocketAddr>,
    pub(crate) len: usize,
    pub(crate) segment: usize,
    /// The kernel truncated it for lack of room.
    pub(crate) truncated: bool,
}

impl Inbox {
    pub(crate) fn new() -> Self {
        Self {
            bytes: vec![0; BURST * DATAGRAM_MAX],
            from: vec![[0; ADDRESS_MAX]; BURST],
            messages: Vec::with_capacity(BURST),
        }
    }

    /// Receives up to `most` waiting messages, at most [`BURST`], without blocking; returns their
    /// number.
    pub(crate) fn receive(&mut self, socket: BorrowedFd<'_>, most: usize) -> io::Result<usize> {
        self.messages.clear();
        let most = most.min(BURST);
        // SAFETY: all zeros are valid values of these structs: null pointers, and counts of 0.
        let (mut parts, mut headers): ([libc::iovec; BURST], [libc::mmsghdr; BURST]) =
            unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        let mut controls = [Control([0; CONTROL]); BURST];
        let rooms = self.bytes.chunks_exact_mut(DATAGRAM_MAX);
        for ((((room, from), part), header), control) in rooms
            .zip(&mut self.from)
            .zip(&mut parts)
            .zip(&mut headers)
            .zip(&mut controls)
            .take(most)
        {
            part.iov_base = room.as_mut_ptr().cast();
            part.iov_len = room.len();
            let header = &mut header.msg_hdr;
            header.msg_name = from.as_mut_ptr().cast();
            header.msg_namelen = ADDRESS_MAX as u32;
            header.msg_iov = part;
            header.msg_iovlen = 1;
            header.msg_control = control.0.as_mut_ptr().cast();
            header.msg_controllen = CONTROL as _;
        }
        // SAFETY: each header points at its own part, name and control message, with their lengths.
        // All of them outlive the call. The kernel writes only to these.
        let count = check(unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                headers.as_mut_ptr(),
                most as u32,
                libc::MSG_DONTWAIT as _,
                std::ptr::null_mut(),
            )
        })?;
        for ((header, from), control) in
            headers.iter().zip(&self.from).zip(&controls).take(count as usize)
        {
            let len = header.msg_len as usize;
            let (segment, to) = reported(&control.0);
            self.messages.push(ReceivedMessage {
                from: Address::received(from, header.msg_hdr.msg_namelen as usize),
                to,
                len,
                segment: segment.filter(|&size| size > 0).unwrap_or(len),
                truncated: header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0,
            });
        }
        Ok(self.messages.len())
    }

    /// Removes all messages.
    pub(crate) fn clear(&mut self) {
        self.messages.clear();
    }

    /// Number of messages.
    pub(crate) fn len(&self) -> usize {
        self.messages.len()
    }

    /// Adds a message, at most [`BURST`] of them.
    pub(crate) fn add(&mut self, from: Address, bytes: &[u8]) {
        let (start, len) = (self.messages.len() * DATAGRAM_MAX, bytes.len());
        self.bytes[start..start + len].copy_from_slice(bytes);
        self.messages.push(ReceivedMessage { from, to: None, len, segment: len, truncated: false });
    }

    /// A received message and its bytes.
    pub(crate) fn message(&self, at: usize) -> (ReceivedMessage, &[u8]) {
        let message = self.messages[at];
        let start = at * DATAGRAM_MAX;
        (message, &self.bytes[start..start + message.len])
    }
}

/// The datagram size and the local address in the control messages of a message, after which all
/// bytes are 0.
fn reported(mut control: &[u8]) -> (Option<usize>, Option<SocketAddr>) {
    let (mut segment, mut to) = (None, None);
    // Header: length 8, level 4, kind 4. The next one is aligned to 8 bytes.
    while let Some((header, _)) = control.split_first_chunk::<16>() {
        let number =
            |at: usize| header[at..].first_chunk().map_or(0, |&bytes| c_int::from_ne_bytes(bytes));
        let len = header.first_chunk().map_or(0, |&bytes| usize::from_ne_bytes(bytes));
        let Some(value) = control.get(16..len) else { break };
        match (number(8), number(12)) {
            (libc::SOL_UDP, UDP_GRO) => {
                let size = value.first_chunk().map(|&bytes| c_int::from_ne_bytes(bytes));
                segment = size.and_then(|size| size.try_into().ok());
            }
            // Interface 4, local address 4, destination 4.
            (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                let ip = value.get(4..).and_then(|bytes| bytes.first_chunk::<4>());
                to = ip.map(|&ip| (ip, 0).into());
            }
            // Destination 16, interface 4.
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                let scope = value.get(16..).and_then(|bytes| bytes.first_chunk());
                let scope = scope.map_or(0, |&bytes| u32::from_ne_bytes(bytes));
                let ip = value.first_chunk::<16>();
                to = ip.map(|&ip| SocketAddrV6::new(ip.into(), 0, 0, scope).into());
            }
            _ => {}
        }
        control = control.get(len.next_multiple_of(8)..).unwrap_or(&[]);
    }
    (segment, to)
}

/// A message to send. With `segment`, the kernel splits it into datagrams of that many bytes.
#[derive(Clone, Copy)]
pub(crate) struct OutgoingMessage<'a> {
    pub(crate) to: &'a Address,
    pub(crate) bytes: &'a [u8],
    pub(crate) segment: Option<u16>,
}

/// Sends up to [`BURST`] messages in one call, without blocking; returns the number of accepted
/// messages. An error is that of the first message.
pub(crate) fn send(socket: BorrowedFd<'_>, messages: &[OutgoingMessage<'_>]) -> io::Result<usize> {
    let count = messages.len().min(BURST);
    // SAFETY: all zeros are valid values of these structs: null pointers, and counts of 0.
    let (mut parts, mut headers): ([libc::iovec; BURST], [libc::mmsghdr; BURST]) =
        unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
    let mut controls = [Control([0; CONTROL]); BURST];
    for (((message, part), header), control) in
        messages.iter().zip(&mut parts).zip(&mut headers).zip(&mut controls)
    {
        part.iov_base = message.bytes.as_ptr().cast_mut().cast();
        part.iov_len = message.bytes.len();
        let header = &mut header.msg_hdr;
        let to = message.to.as_bytes();
        header.msg_name = to.as_ptr().cast_mut().cast();
        header.msg_namelen = to.len() as u32;
        header.msg_iov = part;
        header.msg_iovlen = 1;
        if let Some(size) = message.segment {
            control.0[..8].copy_from_slice(&18_usize.to_ne_bytes());
            control.0[8..12].copy_from_slice(&libc::SOL_UDP.to_ne_bytes());
            control.0[12..16].copy_from_slice(&UDP_SEGMENT.to_ne_bytes());
            control.0[16..18].copy_from_slice(&size.to_ne_bytes());
            header.msg_control = control.0.as_mut_ptr().cast();
            header.msg_controllen = NUMBER as _;
        }
    }
    // SAFETY: each of the first `count` headers points at its own part and address, and at its own
    // control message if its length is not 0. All of them outlive the call. The kernel only reads
    // them.
    let sent = check(unsafe {
        libc::sendmmsg(
            socket.as_raw_fd(),
            headers.as_mut_ptr(),
            count as u32,
            (libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) as _,
        )
    })?;
    Ok(sent as usize)
}
