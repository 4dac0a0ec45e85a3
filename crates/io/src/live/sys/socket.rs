//! Socket functions that std does not have, one system call each.

use std::ffi::{c_int, c_void};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

use super::check;

/// Most frames of one call of [`send_many`]. Longer batches were not faster.
pub(crate) const SEND_MOST: usize = 64;

/// Values that can be passed to and read from a socket as bytes.
///
/// # Safety
/// Any bytes are a valid value of the type, it has no padding, and it contains no addresses.
pub(crate) unsafe trait Plain: Copy {}

// SAFETY: integers and structs of integers without gaps.
unsafe impl Plain for c_int {}
// SAFETY: as above.
unsafe impl Plain for u32 {}
// SAFETY: as above.
unsafe impl Plain for libc::tpacket_req3 {}
// SAFETY: as above.
unsafe impl Plain for libc::tpacket_stats_v3 {}
// SAFETY: as above.
unsafe impl Plain for libc::packet_mreq {}
// SAFETY: as above.
unsafe impl Plain for libc::xdp_mmap_offsets {}
// SAFETY: as above.
unsafe impl Plain for libc::xdp_statistics {}
// SAFETY: as above.
unsafe impl Plain for libc::xdp_options {}

/// Opens a socket that is closed on exec.
pub(crate) fn open(domain: c_int, kind: c_int, protocol: c_int) -> io::Result<OwnedFd> {
    // SAFETY: takes only numbers.
    let fd = check(unsafe { libc::socket(domain, kind | libc::SOCK_CLOEXEC, protocol) })?;
    // SAFETY: the descriptor is new and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// setsockopt(2).
pub(crate) fn set<T: Plain>(
    socket: &OwnedFd,
    level: c_int,
    name: c_int,
    value: &T,
) -> io::Result<()> {
    // SAFETY: the kernel reads as many bytes as the value has; a `Plain` value contains no address of other memory.
    check(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            std::ptr::from_ref(value).cast(),
            size_of::<T>() as u32,
        )
    })
    .map(drop)
}

/// getsockopt(2). If an older kernel returns a shorter `T`, the rest keeps the bytes of `value`.
pub(crate) fn get<T: Plain>(
    socket: &OwnedFd,
    level: c_int,
    name: c_int,
    mut value: T,
) -> io::Result<T> {
    let mut len = size_of::<T>() as u32;
    // SAFETY: the kernel writes at most `len` bytes, which is the size of the value; any bytes are valid.
    check(unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            level,
            name,
            std::ptr::from_mut(&mut value).cast(),
            &mut len,
        )
    })?;
    Ok(value)
}

/// A filter that accepts up to `most` bytes of every frame; 0 refuses all frames.
pub(crate) fn accept_up_to(most: u32) -> libc::sock_filter {
    const RETURN: u16 = 0x06;
    libc::sock_filter { code: RETURN, jt: 0, jf: 0, k: most }
}

/// Attaches a filter: only frames that `program` accepts pass, truncated to the number of bytes it returns.
pub(crate) fn attach_filter(socket: &OwnedFd, program: &[libc::sock_filter]) -> io::Result<()> {
    set_program(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, program)
}

/// Sets a classic BPF program with a socket option.
pub(crate) fn set_program(
    socket: &OwnedFd,
    level: c_int,
    name: c_int,
    program: &[libc::sock_filter],
) -> io::Result<()> {
    let whole = libc::sock_fprog { len: program.len() as u16, filter: program.as_ptr().cast_mut() };
    // SAFETY: the kernel copies `len` instructions from `filter` and does not write to them.
    check(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            std::ptr::from_ref(&whole).cast(),
            size_of::<libc::sock_fprog>() as u32,
        )
    })
    .map(drop)
}

/// Binds an AF_PACKET socket to an interface; `protocol` 0 receives nothing.
pub(crate) fn bind_packet(socket: &OwnedFd, interface: u32, protocol: u16) -> io::Result<()> {
    // SAFETY: zeros are a valid value of this struct of integers.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = protocol.to_be();
    address.sll_ifindex = interface as i32;
    bind(socket, &address)
}

/// Binds an AF_XDP socket to a queue of an interface.
pub(crate) fn bind_xdp(socket: &OwnedFd, interface: u32, queue: u32, flags: u16) -> io::Result<()> {
    bind(
        socket,
        &libc::sockaddr_xdp {
            sxdp_family: libc::AF_XDP as u16,
            sxdp_flags: flags,
            sxdp_ifindex: interface,
            sxdp_queue_id: queue,
            sxdp_shared_umem_fd: 0,
        },
    )
}

/// Binds an AF_XDP socket to the queue and the memory of another one.
pub(crate) fn bind_xdp_shared(
    socket: &OwnedFd,
    interface: u32,
    queue: u32,
    first: &OwnedFd,
) -> io::Result<()> {
    bind(
        socket,
        &libc::sockaddr_xdp {
            sxdp_family: libc::AF_XDP as u16,
            sxdp_flags: libc::XDP_SHARED_UMEM,
            sxdp_ifindex: interface,
            sxdp_queue_id: queue,
            sxdp_shared_umem_fd: first.as_raw_fd() as u32,
        },
    )
}

/// Binds a netlink socket to groups of messages. Without an address of its own it would get none.
pub(crate) fn bind_netlink(socket: &OwnedFd, groups: u32) -> io::Result<()> {
    // SAFETY: zeros are a valid value of this struct of integers.
    let mut address: libc::sockaddr_nl = unsafe { std::mem::zeroed() };
    address.nl_family = libc::AF_NETLINK as u16;
    address.nl_groups = groups;
    bind(socket, &address)
}

fn bind<T>(socket: &OwnedFd, address: &T) -> io::Result<()> {
    // SAFETY: the kernel reads as many bytes as the address has.
    check(unsafe {
        libc::bind(socket.as_raw_fd(), std::ptr::from_ref(address).cast(), size_of::<T>() as u32)
    })
    .map(drop)
}

/// Sleeps until one of `events` or an error occurs, `timeout` is over or a signal arrives. Returns the events.
pub(crate) fn poll(socket: &OwnedFd, events: i16, timeout: Duration) -> io::Result<i16> {
    let mut one = libc::pollfd { fd: socket.as_raw_fd(), events, revents: 0 };
    let timeout = libc::timespec {
        tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: timeout.subsec_nanos().into(),
    };
    // SAFETY: one entry is passed with the count 1; no signal mask is given.
    check(unsafe { libc::ppoll(&mut one, 1, &timeout, std::ptr::null()) })?;
    Ok(one.revents)
}

/// Reads and clears the pending error of the socket; 0 if there is none.
pub(crate) fn take_error(socket: &OwnedFd) -> c_int {
    get(socket, libc::SOL_SOCKET, libc::SO_ERROR, 0).unwrap_or(0)
}

/// Sends one message, without waiting.
pub(crate) fn send(socket: &OwnedFd, message: &[u8]) -> io::Result<usize> {
    // SAFETY: the kernel reads the bytes of the slice.
    let sent = unsafe {
        libc::send(
            socket.as_raw_fd(),
            message.as_ptr().cast::<c_void>(),
            message.len(),
            libc::MSG_DONTWAIT,
        )
    };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Receives one message; bytes that do not fit are lost.
pub(crate) fn receive(socket: &OwnedFd, message: &mut [u8], flags: c_int) -> io::Result<usize> {
    // SAFETY: the kernel writes at most as many bytes as the slice has.
    let got = unsafe {
        libc::recv(socket.as_raw_fd(), message.as_mut_ptr().cast::<c_void>(), message.len(), flags)
    };
    usize::try_from(got).map_err(|_| io::Error::last_os_error())
}

/// Sends up to [`SEND_MOST`] frames in one call, without waiting. A frame has two parts; the first may be empty. Returns
/// the number of frames that the kernel took. An error is that of the first frame.
pub(crate) fn send_many<'a>(
    socket: &OwnedFd,
    frames: impl Iterator<Item = [&'a [u8]; 2]>,
) -> io::Result<usize> {
    // SAFETY: zeros are valid values of these structs: null pointers, and counts of 0.
    let (mut parts, mut headers): ([[libc::iovec; 2]; SEND_MOST], [libc::mmsghdr; SEND_MOST]) =
        unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
    let mut count = 0;
    for ((frame, parts), header) in frames.zip(&mut parts).zip(&mut headers) {
        for (part, bytes) in parts.iter_mut().zip(frame) {
            part.iov_base = bytes.as_ptr().cast_mut().cast();
            part.iov_len = bytes.len();
        }
        header.msg_hdr.msg_iov = parts.as_mut_ptr();
        header.msg_hdr.msg_iovlen = 2;
        count += 1;
    }
    // SAFETY: the first `count` headers point to two parts each, and each part to bytes of a frame; all of them live
    // longer than the call, and the kernel only reads the frames.
    let sent = check(unsafe {
        libc::sendmmsg(
            socket.as_raw_fd(),
            headers.as_mut_ptr(),
            count as u32,
            libc::MSG_DONTWAIT as _,
        )
    })?;
    Ok(sent as usize)
}
