//! Packet parsing: turns a captured frame into one 64-byte [`PacketRecord`], in one pass.
//!
//! The path: [`Decoder::decode`] → link layer (`link/`) → network layer (`ip/`) → transport header (`transport`) →
//! `fragments` for the ports of later fragments. If the packet is a tunnel's (`tunnel/`), the inner packet is decoded
//! too, and [`Decoder::inner`] returns its record. [`Paths`] holds each packet's encapsulation.
//!
//! Invariants: no input makes this crate panic. After construction it allocates only for new encapsulations, whose
//! number is bounded, and it reads no clock. A frame that it cannot parse has a counted reason ([`NonIp`]), never an
//! error.
#![forbid(unsafe_code)]

mod carried;
mod decoder;
mod fragments;
#[cfg(any(test, feature = "fuzz"))]
mod fuzz;
mod hash;
mod ip;
mod link;
mod network;
mod part;
mod path;
mod path_cache;
mod peek;
mod reason;
mod record;
mod segment;
mod selection;
mod span;
mod transport;
mod tunnel;

pub use decoder::{Decoded, Decoder};
pub use fragments::{BYTES_PER_DATAGRAM, DatagramKey};
#[cfg(any(test, feature = "fuzz"))]
pub use fuzz::fuzz;
pub use hash::{HashKey, REGIONS};
pub use link::LinkType;
pub use part::{Part, joined};
pub use path::{Path, Paths, Tunnel, TunnelKind};
pub use peek::pair_hash;
pub use reason::{Layer, NonIp};
pub use record::{Flags, PacketRecord};
pub use segment::Segment;
pub use selection::{content_hash, selection_hash};
pub use transport::Payload;
pub use tunnel::{InvalidTunnelPorts, PortKind, TunnelPorts, Tunnels};
