//! Bytes to meaning: a captured frame becomes one 64-byte [`PacketRecord`], parsed once.
//!
//! The path: [`Decoder::decode`] → link layer (`link/`) → network layer (`ip/`) →
//! transport header (`transport`) → [`FragmentTable`] for the ports of later fragments.
//!
//! Invariants: no input makes this crate panic; it neither allocates after construction nor
//! reads a clock; what it cannot parse becomes a counted reason ([`NonIp`]), never an error.
#![forbid(unsafe_code)]

mod hash;
mod record;

pub use hash::HashKey;
pub use record::{Flags, PacketRecord};

/// A link-layer header type, as pcap files number them (`LINKTYPE_…`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkType(pub u16);
