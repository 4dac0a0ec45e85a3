//! Promiscuous mode: the interface receives frames for other hosts while a `Promiscuous` exists.

use std::os::fd::OwnedFd;

use crate::live::capability::Capability;
use crate::live::error::OpenError;
use crate::live::interface::Interface;
use crate::live::sys::socket;

/// A membership that the kernel ends when the socket closes, hence also when the process is killed.
pub(crate) struct Promiscuous {
    _socket: OwnedFd,
}

impl Promiscuous {
    /// Enables promiscuous mode of the interface.
    pub(crate) fn new(interface: &Interface) -> Result<Self, OpenError> {
        let doing = "enabling promiscuous mode";
        // Protocol 0: this socket receives nothing.
        let socket = socket::open(libc::AF_PACKET, libc::SOCK_RAW, 0)
            .map_err(OpenError::at("opening an AF_PACKET socket", Capability::PACKET))?;
        let membership = libc::packet_mreq {
            mr_ifindex: interface.link.index as i32,
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        socket::set(&socket, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &membership)
            .map_err(OpenError::at(doing, Capability::PACKET))?;
        Ok(Self { _socket: socket })
    }
}
