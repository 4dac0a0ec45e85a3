//! Many datagrams a system call, and several of one size as one (UDP_SEGMENT and UDP_GRO).
//!
//! ```text
//!  bytes out  | a | a | a | b |        to one neighbour and of one size: one message, which the kernel cuts
//!  bytes in   | a | a | a |            from one neighbour and of one size: one message, which we cut
//! ```

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::address::{ADDRESS_MAX, Address};
use super::check;

/// Messages of one system call.
pub(crate) const BURST: usize = 64;

/// The largest message.
pub(crate) const DATAGRAM_MAX: usize = 65_535;

/// The option by which the kernel cuts a message, or tells that it has put several together.
const UDP_SEGMENT: c_int = 103;
const UDP_GRO: c_int = 104;

/// Room for one control message with a number: 16 bytes of head, 8 for the number.
const CONTROL: usize = 24;

/// A control message, aligned as the kernel wants it.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct Control([u8; CONTROL]);

/// Where datagrams come in.
pub(crate) struct Inbox {
    bytes: Vec<u8>,
    from: Vec<[u8; ADDRESS_MAX]>,
    came: Vec<Came>,
}

/// A message that came: datagrams of `segment` bytes each, but for the last, which may be shorter.
#[derive(Clone, Copy)]
pub(crate) struct Came {
    pub(crate) from: Address,
    pub(crate) len: usize,
    pub(crate) segment: usize,
    /// There was more than there is room for.
    pub(crate) cut: bool,
}

impl Inbox {
    pub(crate) fn new() -> Self {
        Self {
            bytes: vec![0; BURST * DATAGRAM_MAX],
            from: vec![[0; ADDRESS_MAX]; BURST],
            came: Vec::with_capacity(BURST),
        }
    }

    /// Receives what waits, [`BURST`] messages at the most, without waiting; how many they are.
    pub(crate) fn receive(&mut self, socket: BorrowedFd<'_>) -> io::Result<usize> {
        self.came.clear();
        // SAFETY: all zeros are values of these structs: null pointers, and counts of 0.
        let (mut parts, mut headers): ([libc::iovec; BURST], [libc::mmsghdr; BURST]) =
            unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        let mut controls = [Control([0; CONTROL]); BURST];
        let rooms = self.bytes.chunks_exact_mut(DATAGRAM_MAX);
        for ((((room, from), part), header), control) in
            rooms.zip(&mut self.from).zip(&mut parts).zip(&mut headers).zip(&mut controls)
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
        // SAFETY: each header points at a part, a name and a control message of its own, all of which outlive the
        // call, with their lengths; the kernel writes into these alone.
        let count = check(unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                headers.as_mut_ptr(),
                BURST as u32,
                libc::MSG_DONTWAIT as _,
                std::ptr::null_mut(),
            )
        })?;
        for ((header, from), control) in
            headers.iter().zip(&self.from).zip(&controls).take(count as usize)
        {
            let len = header.msg_len as usize;
            let told = (header.msg_hdr.msg_controllen >= 20).then(|| segment(&control.0));
            self.came.push(Came {
                from: Address::received(from, header.msg_hdr.msg_namelen as usize),
                len,
                segment: told.flatten().filter(|&size| size > 0).unwrap_or(len),
                cut: header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0,
            });
        }
        Ok(self.came.len())
    }

    /// One of those that came, and its bytes.
    pub(crate) fn message(&self, at: usize) -> (Came, &[u8]) {
        let came = self.came[at];
        let start = at * DATAGRAM_MAX;
        (came, &self.bytes[start..start + came.len])
    }
}

/// The size in a control message of UDP_GRO.
fn segment(control: &[u8; CONTROL]) -> Option<usize> {
    let number = |at: usize| Some(c_int::from_ne_bytes(control.get(at..at + 4)?.try_into().ok()?));
    let is_size = number(8)? == libc::SOL_UDP && number(12)? == UDP_GRO;
    is_size.then_some(number(16)?)?.try_into().ok()
}

/// A message that leaves; with `segment`, it is datagrams of so many bytes.
#[derive(Clone, Copy)]
pub(crate) struct Leaving<'a> {
    pub(crate) to: &'a Address,
    pub(crate) bytes: &'a [u8],
    pub(crate) segment: Option<u16>,
}

/// Sends up to [`BURST`] messages in one call, without waiting; how many were taken. An error is that of the first.
pub(crate) fn send(socket: BorrowedFd<'_>, messages: &[Leaving<'_>]) -> io::Result<usize> {
    let count = messages.len().min(BURST);
    // SAFETY: all zeros are values of these structs: null pointers, and counts of 0.
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
            header.msg_controllen = CONTROL as _;
        }
    }
    // SAFETY: the first `count` headers point at a part, an address and, with its length, a control message each, all
    // of which outlive the call; the kernel only reads them.
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
