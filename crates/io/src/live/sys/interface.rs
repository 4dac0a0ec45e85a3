//! Properties of an interface from ioctl(2). Any socket of the network namespace can be used.

use std::ffi::{c_char, c_ulong, c_void};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use super::check;

/// `ETHTOOL_GCHANNELS`: number of queues by type.
const GET_CHANNELS: u32 = 0x3c;

/// `ETHTOOL_GFLAGS`, and its flag for removing VLAN tags from received frames.
const GET_FLAGS: u32 = 0x25;
const RECEIVE_VLAN: u32 = 1 << 8;

/// `struct ethtool_value`.
#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

/// `struct ethtool_channels`.
#[repr(C)]
#[derive(Default)]
struct Channels {
    command: u32,
    most: [u32; 4],
    receiving: u32,
    sending: u32,
    other: u32,
    combined: u32,
}

/// `ETH_SS_FEATURES`: the names of features; the room for them, more than any kernel has.
const FEATURE_NAMES: u32 = 4;
const FEATURES: usize = 256;

/// `ETH_RXFH_INDIR_NO_CHANGE`: the request has no table.
const NO_TABLE: u32 = u32::MAX;

/// The current name of interface `index`; the error `ENODEV` means that it is gone.
pub(crate) fn name(socket: &OwnedFd, index: u32) -> io::Result<[u8; libc::IFNAMSIZ]> {
    let mut request = request(&[0; libc::IFNAMSIZ]);
    request.ifr_ifru.ifru_ifindex = index as i32;
    ioctl(socket, libc::SIOCGIFNAME, &mut request)?;
    Ok(request.ifr_name.map(|byte| byte as u8))
}

/// The flags (`IFF_…`) of the interface with this name.
pub(crate) fn flags(socket: &OwnedFd, name: &[u8; libc::IFNAMSIZ]) -> io::Result<i32> {
    let mut request = request(name);
    ioctl(socket, libc::SIOCGIFFLAGS, &mut request)?;
    // SAFETY: the kernel has set this member of the union, and any bytes are a valid integer.
    Ok(unsafe { request.ifr_ifru.ifru_flags }.into())
}

/// The number of receive queues of the interface; an error if its driver does not report it.
pub(crate) fn receive_queues(socket: &OwnedFd, name: &[u8; libc::IFNAMSIZ]) -> io::Result<u32> {
    let mut channels = Channels { command: GET_CHANNELS, ..Channels::default() };
    let mut request = request(name);
    request.ifr_ifru.ifru_data = std::ptr::from_mut(&mut channels).cast();
    ioctl(socket, libc::SIOCETHTOOL, &mut request)?;
    Ok(channels.receiving + channels.combined)
}

/// Returns true if the interface removes VLAN tags from received frames; an error if its driver does not report it.
pub(crate) fn takes_tags(socket: &OwnedFd, name: &[u8; libc::IFNAMSIZ]) -> io::Result<bool> {
    let mut flags = Value { command: GET_FLAGS, data: 0 };
    let mut request = request(name);
    request.ifr_ifru.ifru_data = std::ptr::from_mut(&mut flags).cast();
    ioctl(socket, libc::SIOCETHTOOL, &mut request)?;
    Ok(flags.data & RECEIVE_VLAN != 0)
}

/// Passes a request to the driver, which writes its answer over it: a struct of `linux/ethtool.h`, which begins with
/// its command. `EINVAL` if the command is not in the list of [`room`], or the request has no room for the answer.
pub(crate) fn ethtool(
    socket: &OwnedFd,
    name: &[u8; libc::IFNAMSIZ],
    answered: &mut [u8],
) -> io::Result<()> {
    if room(answered).is_none_or(|room| answered.len() < room) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut request = request(name);
    request.ifr_ifru.ifru_data = answered.as_mut_ptr().cast();
    ioctl(socket, libc::SIOCETHTOOL, &mut request)
}

/// The most bytes that the kernel reads or writes for a request; `None` for other commands.
fn room(request: &[u8]) -> Option<usize> {
    let word = |at| Some(u32::from_ne_bytes(request.get(at..at + 4)?.try_into().ok()?));
    let array = |at, size: usize| Some(size.saturating_mul(word(at)? as usize));
    Some(match word(0)? {
        // ETHTOOL_GDRVINFO
        0x03 => 196,
        // ETHTOOL_GRINGPARAM, SRINGPARAM, GCHANNELS, SCHANNELS
        0x10 | 0x11 | 0x3c | 0x3d => 36,
        // ETHTOOL_GRXFH, SRXFH, GRXCLSRLCNT: struct ethtool_rxnfc
        0x29 | 0x2a | 0x2e => 192,
        // ETHTOOL_GSTRINGS
        0x1b if word(4)? == FEATURE_NAMES => 12 + 32 * FEATURES,
        // ETHTOOL_GFEATURES, SFEATURES
        0x3a => array(4, 16)?.saturating_add(8),
        0x3b => array(4, 8)?.saturating_add(8),
        // ETHTOOL_GRSSH, SRSSH: a table and a key of the lengths in the request
        0x46 | 0x47 => {
            let table = if word(8)? == NO_TABLE { 0 } else { array(8, 4)? };
            table.saturating_add(array(12, 1)?).saturating_add(24)
        }
        _ => return None,
    })
}

/// Makes the hardware stamp every received frame.
pub(crate) fn stamp_all(socket: &OwnedFd, name: &[u8; libc::IFNAMSIZ]) -> io::Result<()> {
    let mut config = libc::hwtstamp_config {
        flags: 0,
        tx_type: libc::HWTSTAMP_TX_OFF as i32,
        rx_filter: libc::HWTSTAMP_FILTER_ALL as i32,
    };
    let mut request = request(name);
    request.ifr_ifru.ifru_data = std::ptr::from_mut(&mut config).cast();
    ioctl(socket, libc::SIOCSHWTSTAMP, &mut request)
}

fn request(name: &[u8; libc::IFNAMSIZ]) -> libc::ifreq {
    // SAFETY: all zeros are a value of this struct: bytes, and a union of integers and pointers.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_name = name.map(|byte| byte as c_char);
    request
}

/// The private caller of ioctl(2): `request` points at nothing but what `command` is about.
fn ioctl(socket: &OwnedFd, command: c_ulong, request: &mut libc::ifreq) -> io::Result<()> {
    // SAFETY: the functions above set the member of the request that their command reads, and where
    // that is a pointer, it points at a live struct of the kind and size that the command fills in.
    check(unsafe {
        libc::ioctl(socket.as_raw_fd(), command as _, std::ptr::from_mut(request).cast::<c_void>())
    })
    .map(drop)
}
