//! Errors that occur when faces and sockets are opened.

use std::io;
use std::net::SocketAddr;

use crate::faces::settings::MTU_MIN;

/// Why a face or a socket could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The UDP socket cannot be opened.
    #[error("listening at udp://{at}: {source}")]
    Udp {
        /// The address.
        at: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The TCP port cannot be opened, or the neighbour cannot be connected to.
    #[error("opening tcp://{at}: {source}")]
    Tcp {
        /// The address.
        at: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The port for WebSocket cannot be opened.
    #[error("opening ws://{at}: {source}")]
    WebSocket {
        /// The address.
        at: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The socket of a multicast group cannot be opened.
    #[error("joining udp://{group} on {interface}: {source}")]
    Multicast {
        /// The group.
        group: SocketAddr,
        /// The interface.
        interface: String,
        /// The system's error.
        source: io::Error,
    },
    /// No interface has the multicast group.
    #[error(
        "no interface has the multicast group {0}: add [[multicast]], or name one, as in udp://{0}/eth0"
    )]
    NoGroup(SocketAddr),
    /// The Ethernet socket cannot be opened.
    #[error("opening ether://{interface}: {source}{}", hint(source))]
    Ethernet {
        /// The interface.
        interface: String,
        /// The system's error.
        source: io::Error,
    },
    /// The interface cannot be opened for AF_XDP.
    #[error("opening ether://{interface} by AF_XDP: {source}")]
    Xdp {
        /// The interface.
        interface: String,
        /// The reason.
        source: ringtap_io::live::OpenError,
    },
    /// All faces are in use; their maximum number.
    #[error("all {0} faces are in use: raise the maximum or close a face")]
    Full(usize),
    /// The forwarder does not connect to programs, nor by WebSocket; they connect to it.
    #[error("a face to a program cannot be opened: the program must connect")]
    Program,
    /// An MTU in bytes with which 64 fragments cannot hold a packet.
    #[error("MTU of {0} bytes is too small: use at least {min}", min = MTU_MIN)]
    Mtu(usize),
    /// A socket cannot be added to epoll, or epoll is not available.
    #[error("watching sockets by epoll: {0}")]
    System(#[from] io::Error),
}

/// The remedy for an error, if one is known.
fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => " (needs CAP_NET_RAW: run as root)",
        _ => "",
    }
}
