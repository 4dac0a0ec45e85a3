//! Bytes to meaning: a captured frame becomes one 64-byte [`PacketRecord`], parsed once.
//!
//! The path: [`Decoder::decode`] → link layer (`link/`) → network layer (`ip/`) →
//! transport header (`transport`) → `fragments` for the ports of later fragments. If that is a tunnel's (`tunnel/`), the
//! packet within is decoded, too, and [`Decoder::inner`] has its record. By which way a packet came, [`Paths`] knows.
//!
//! Invariants: no input makes this crate panic; it neither allocates after construction (but for a way never seen
//! before, and these are bounded) nor reads a clock; what it cannot parse becomes a counted reason ([`NonIp`]), never an error.
#![forbid(unsafe_code)]

mod carried;
mod decoder;
mod fragments;
#[cfg(any(test, feature = "fuzz"))]
mod fuzz;
mod hash;
mod ip;
mod link;
mod path;
mod path_cache;
mod peek;
mod reason;
mod record;
mod selection;
mod span;
mod transport;
mod tunnel;

pub use decoder::{Decoded, Decoder};
pub use fragments::BYTES_PER_DATAGRAM;
#[cfg(any(test, feature = "fuzz"))]
pub use fuzz::fuzz;
pub use hash::{HashKey, REGIONS};
pub use link::LinkType;
pub use path::{Path, Paths, Tunnel, TunnelKind};
pub use peek::pair_hash;
pub use reason::{Layer, NonIp};
pub use record::{Flags, PacketRecord};
pub use selection::selection_hash;
pub use tunnel::Tunnels;
