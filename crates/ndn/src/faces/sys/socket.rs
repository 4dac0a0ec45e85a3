//! Socket calls that the standard library does not have.

use std::ffi::{c_char, c_int, c_void};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::address::Address;
use super::check;
use crate::faces::remote::Mac;

/// Size of the send and receive buffers, bytes.
const BUFFER_BYTES: c_int = 8 << 20;

/// Size of the receive buffer of the socket of one neighbour, bytes.
const NEIGHBOUR_BYTES: u32 = 1 << 20;

const SO_MEMINFO: c_int = 55;
const UDP_GRO: c_int = 104;

/// Opens a UDP socket bound to `at`; with `offload`, the kernel may merge received datagrams.
pub(crate) fn udp_socket(at: &SocketAddr, offload: bool) -> io::Result<OwnedFd> {
    bound_udp(at, offload, false)
}

/// Opens a UDP socket at the address `at` of another socket, for the datagrams of one neighbour.
/// Until it is connected, datagrams of others may arrive.
///
/// Both share the port by `SO_REUSEPORT`: the kernel lets only processes of the same user do so. By
/// `SO_REUSEADDR` any program could bind the address, and take the datagrams of all neighbours.
pub(crate) fn second_udp_socket(
    shared: BorrowedFd<'_>,
    at: &SocketAddr,
    offload: bool,
) -> io::Result<OwnedFd> {
    // Only now, so that no second forwarder of this user can bind the address by mistake.
    set(shared, libc::SOL_SOCKET, libc::SO_REUSEPORT, &1)?;
    let opened = bound_udp(at, offload, true);
    let closed = set(shared, libc::SOL_SOCKET, libc::SO_REUSEPORT, &0);
    let socket = opened.and_then(|socket| closed.map(|()| socket))?;
    let _ = widen_receive_queue(socket.as_fd(), NEIGHBOUR_BYTES);
    Ok(socket)
}

/// Connects a UDP socket, again if it is connected already. The kernel then passes it the datagrams
/// of this address only, and passes them to no socket that is not connected.
pub(crate) fn connect(socket: BorrowedFd<'_>, to: &Address) -> io::Result<()> {
    let bytes = to.as_bytes();
    // SAFETY: the kernel reads as many bytes as the address has.
    check(unsafe { libc::connect(socket.as_raw_fd(), bytes.as_ptr().cast(), bytes.len() as u32) })
        .map(drop)
}

fn bound_udp(at: &SocketAddr, offload: bool, shared: bool) -> io::Result<OwnedFd> {
    let domain = if at.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    let socket = open(domain, libc::SOCK_DGRAM, 0)?;
    if at.is_ipv6() {
        set(&socket, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, &1)?;
    }
    if shared {
        set(&socket, libc::SOL_SOCKET, libc::SO_REUSEPORT, &1)?;
    }
    enlarge_buffers(&socket);
    if offload {
        // A kernel without UDP_GRO delivers single datagrams.
        let _ = set(&socket, libc::SOL_UDP, UDP_GRO, &1);
    }
    if at.ip().is_unspecified() {
        // Received messages have their local addresses.
        match at.is_ipv4() {
            true => set(&socket, libc::IPPROTO_IP, libc::IP_PKTINFO, &1)?,
            false => set(&socket, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, &1)?,
        }
    }
    bind(&socket, &Address::of(at))?;
    Ok(socket)
}

/// An Ethernet interface.
pub(crate) struct Interface {
    pub(crate) index: u32,
    pub(crate) mtu: usize,
    pub(crate) address: Mac,
}

/// Opens a packet socket for the frames of one EtherType on an interface, including those to a
/// multicast group. With protocol 0 it receives nothing, but joins the group.
pub(crate) fn packet_socket(
    name: &str,
    protocol: u16,
    group: Mac,
) -> io::Result<(OwnedFd, Interface)> {
    let socket = open(libc::AF_PACKET, libc::SOCK_DGRAM, 0)?;
    let interface = interface(&socket, name)?;
    enlarge_buffers(&socket);
    let mut member = libc::packet_mreq {
        mr_ifindex: interface.index as c_int,
        mr_type: libc::PACKET_MR_MULTICAST as u16,
        mr_alen: group.0.len() as u16,
        mr_address: [0; 8],
    };
    member.mr_address[..6].copy_from_slice(&group.0);
    set(&socket, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &member)?;
    bind(&socket, &Address::link(interface.index, protocol, Mac([0; 6])))?;
    Ok((socket, interface))
}

/// Requests a receive queue of `bytes` bytes for a socket, beyond the system's limit if the process
/// has the right. Returns the size that the kernel reports: twice the granted one, because it
/// includes overhead.
pub fn widen_receive_queue(socket: BorrowedFd<'_>, bytes: u32) -> io::Result<u32> {
    let requested = c_int::try_from(bytes).unwrap_or(c_int::MAX);
    set_buffer(socket, libc::SO_RCVBUFFORCE, libc::SO_RCVBUF, requested)?;
    let granted = get(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, [0_u32; 1])?;
    Ok(granted[0])
}

/// Number of datagrams that the kernel dropped at a UDP socket, mostly for lack of room in its
/// receive queue; 0 if it cannot be read.
pub fn receive_drops(socket: BorrowedFd<'_>) -> u64 {
    // `SK_MEMINFO_DROPS` is the ninth value.
    get(socket, libc::SOL_SOCKET, SO_MEMINFO, [0_u32; 9]).map_or(0, |info| info[8].into())
}

/// Number of frames that the kernel dropped at a packet socket since the last call.
pub(crate) fn kernel_drops_packet(socket: BorrowedFd<'_>) -> u64 {
    let statistics = get(socket, libc::SOL_PACKET, libc::PACKET_STATISTICS, [0_u32; 2]);
    statistics.map_or(0, |statistics| statistics[1].into())
}

/// The index and MTU of an interface; an error if it is not Ethernet.
fn interface(socket: &OwnedFd, name: &str) -> io::Result<Interface> {
    // SAFETY: all zeros are a valid value of this struct: bytes, and a union of integers and
    // pointers.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.len() >= request.ifr_name.len() {
        let text = "the name of an interface has at most 15 bytes";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as c_char;
    }
    let mut query = |command: libc::c_ulong| {
        // SAFETY: these commands read the name and write a number or an address to the union. They
        // follow no pointers.
        check(unsafe {
            libc::ioctl(
                socket.as_raw_fd(),
                command as _,
                std::ptr::from_mut(&mut request).cast::<c_void>(),
            )
        })
        .map(|_| request.ifr_ifru)
    };
    // SAFETY: the kernel has written this member of the union; any bytes are a valid integer.
    let index = unsafe { query(libc::SIOCGIFINDEX)?.ifru_ifindex };
    // SAFETY: as above.
    let mtu = unsafe { query(libc::SIOCGIFMTU)?.ifru_mtu };
    // SAFETY: as above; any bytes are a valid socket address.
    let address = unsafe { query(libc::SIOCGIFHWADDR)?.ifru_hwaddr };
    if address.sa_family != libc::ARPHRD_ETHER && address.sa_family != libc::ARPHRD_LOOPBACK {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "not an Ethernet interface"));
    }
    let [a, b, c, d, e, f, ..] = address.sa_data.map(|byte| byte as u8);
    Ok(Interface {
        index: index as u32,
        mtu: usize::try_from(mtu).unwrap_or(0),
        address: Mac([a, b, c, d, e, f]),
    })
}

fn open(domain: c_int, kind: c_int, protocol: c_int) -> io::Result<OwnedFd> {
    let kind = kind | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: no memory is involved.
    let fd = check(unsafe { libc::socket(domain, kind, protocol) })?;
    // SAFETY: the descriptor is new and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Enlarges the send and receive buffers, for bursts; ignores errors.
pub(crate) fn enlarge_buffers(socket: &OwnedFd) {
    let _ = set_buffer(socket, libc::SO_RCVBUFFORCE, libc::SO_RCVBUF, BUFFER_BYTES);
    let _ = set_buffer(socket, libc::SO_SNDBUFFORCE, libc::SO_SNDBUF, BUFFER_BYTES);
}

/// Restricts a socket to the IPv4 multicast groups that it has joined itself. By default, it also
/// receives from those that other sockets joined on other interfaces.
pub(crate) fn only_joined_groups(socket: &OwnedFd) -> io::Result<()> {
    set(socket, libc::IPPROTO_IP, libc::IP_MULTICAST_ALL, &0)
}

/// Sets a buffer size: beyond the system's limit if the process has the right, else within it.
fn set_buffer(socket: impl AsFd, forced: c_int, limited: c_int, bytes: c_int) -> io::Result<()> {
    set(&socket, libc::SOL_SOCKET, forced, &bytes)
        .or_else(|_| set(&socket, libc::SOL_SOCKET, limited, &bytes))
}

fn bind(socket: &OwnedFd, address: &Address) -> io::Result<()> {
    let bytes = address.as_bytes();
    // SAFETY: the kernel reads as many bytes as the address has.
    check(unsafe { libc::bind(socket.as_raw_fd(), bytes.as_ptr().cast(), bytes.len() as u32) })
        .map(drop)
}

/// Types whose values may be passed to the kernel as the bytes of a socket option.
///
/// # Safety
/// Any bytes must be a valid value of the type. It must have no padding and hold no addresses.
unsafe trait Plain: Copy {}

// SAFETY: an integer.
unsafe impl Plain for c_int {}
// SAFETY: integers without gaps.
unsafe impl Plain for libc::packet_mreq {}
// SAFETY: integers without gaps.
unsafe impl<const N: usize> Plain for [u32; N] {}

fn set<T: Plain>(socket: impl AsFd, level: c_int, name: c_int, value: &T) -> io::Result<()> {
    // SAFETY: the kernel reads as many bytes as the value has; a `Plain` value holds no addresses.
    check(unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            name,
            std::ptr::from_ref(value).cast(),
            size_of::<T>() as u32,
        )
    })
    .map(drop)
}

fn get<T: Plain>(socket: BorrowedFd<'_>, level: c_int, name: c_int, mut value: T) -> io::Result<T> {
    let mut len = size_of::<T>() as u32;
    // SAFETY: the kernel writes at most `len` bytes, the size of the value. Any bytes are a valid
    // `Plain` value.
    check(unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            name,
            std::ptr::from_mut(&mut value).cast(),
            &mut len,
        )
    })?;
    Ok(value)
}
