//! Why a face could not be made.

use std::io;
use std::net::SocketAddr;

/// Why a face or a socket could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// No socket for UDP there.
    #[error("listening at udp://{at}: {source}")]
    Udp {
        /// The address.
        at: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// No socket on that Ethernet.
    #[error("opening ether://{interface}: {source}{}", hint(source))]
    Ethernet {
        /// The interface.
        interface: String,
        /// What the system said.
        source: io::Error,
    },
    /// There are as many faces as there may be.
    #[error("there are {0} faces already, as many as there may be")]
    Full(usize),
    /// Programs come to us; nobody goes to them.
    #[error("a program's face is made when it connects")]
    Program,
    /// Frames of this size carry no packet.
    #[error("frames of {0} bytes are too small; 64 pieces of a packet must fit")]
    Mtu(usize),
    /// Anything else.
    #[error("waiting for packets: {0}")]
    System(#[from] io::Error),
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => " (it needs CAP_NET_RAW: run as root)",
        _ => "",
    }
}
