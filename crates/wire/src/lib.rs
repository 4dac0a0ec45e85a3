//! Packet parsing: turns a captured frame into one 64-byte [`PacketRecord`], in one pass.
//!
//! The path: [`Decoder::decode`] → link layer (`link/`) → network layer (`ip/`) → transport header (`transport`) →
//! `fragments` for the ports of later fragments. If the packet is a tunnel's (`tunnel/`), the inner packet is decoded
//! too, and [`Decoder::inner`] returns its record. [`Paths`] holds each packet's encapsulation.
//!
//! ```
//! use ringtap_wire::{Decoded, Decoder, Flags, HashKey, LinkType, PacketRecord};
//! use std::sync::Arc;
//!
//! // Ethernet, IPv4, UDP, four octets of data.
//! let frame: [u8; 46] = [
//!     2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, //
//!     0x45, 0, 0, 32, 0, 7, 0, 0, 64, 17, 0xf6, 0xc2, 192, 0, 2, 1, 192, 0, 2, 2, //
//!     0x30, 0x39, 0, 53, 0, 12, 0, 0, b'd', b'a', b't', b'a',
//! ];
//! let mut decoder = Decoder::new(HashKey::from_seed(1), Arc::default());
//! let mut packet = PacketRecord::EMPTY;
//! let time_ns = 1_700_000_000_000_000_000;
//! let decoded = decoder.decode(LinkType::ETHERNET, time_ns, &frame, 46, &mut packet);
//! assert_eq!(decoded, Decoded::Ipv4);
//! assert_eq!(packet.destination(), Some([192, 0, 2, 2].into()));
//! assert_eq!((packet.protocol, packet.src_port, packet.dst_port), (17, 12345, 53));
//! assert!(packet.flags.contains(Flags::DATA));
//! // A frame that ends early has a reason, not an error.
//! let decoded = decoder.decode(LinkType::ETHERNET, time_ns, &frame[..9], 46, &mut packet);
//! assert!(matches!(decoded, Decoded::NonIp(_)));
//! ```
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

/// Compiles and runs the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
