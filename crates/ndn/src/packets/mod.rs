//! NDN packets: parsers and writers for Interest, Data, the link protocol and management.
//!
//! ```text
//!  bytes ─▶ LpPacket ─▶ (Reassembler) ─▶ Packet ─┬▶ Interest   views: nothing is copied
//!           headers      fragments to one       └▶ Data
//!
//!  NewInterest, NewData, NewCommand ─▶ bytes ─▶ write_lp / fragments ─▶ bytes
//! ```
//!
//! Follows the NDN Packet Format Specification, version 0.3, and NDNLPv2.
//!
//! Invariants: no input causes a panic. A view refers only to the bytes that it was parsed from.
//! Parsing Interests, Data and link packets allocates nothing; writing appends to the caller's
//! buffer. Memory for reassembly is bounded. No clock, no I/O.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod data;
mod error;
#[cfg(any(test, feature = "fuzz"))]
mod fuzz;
mod interest;
mod lp;
pub mod management;
mod name;
mod reassembly;
pub mod signature;
mod tlv;
mod uri;
mod write;

pub use data::{Data, NewData};
pub use error::Error;
#[cfg(any(test, feature = "fuzz"))]
pub use fuzz::fuzz;
pub use interest::{Interest, NewInterest, Rewrite};
pub use lp::{Fragment, Headers, LpPacket, NackReason, PitToken, fragments, write_lp};
pub use name::{Component, Components, Name, component};
pub use reassembly::{Reassembler, Reassembly};
pub use tlv::{Element, Elements, kind};
pub use uri::{NameBuf, NameError};

/// The size limit of a network packet, in bytes. Larger packets are not forwarded.
pub const PACKET_MAX: usize = 8800;

/// Maximum size of a frame in bytes: a packet and its link headers.
pub(crate) const FRAME_MAX: usize = PACKET_MAX + 1024;

/// The default port of NDN forwarders, over UDP and TCP.
pub const UDP_PORT: u16 = 6363;

/// A network packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet<'a> {
    /// Requests a Data by name.
    Interest(Interest<'a>),
    /// Satisfies an Interest.
    Data(Data<'a>),
}

impl<'a> Packet<'a> {
    /// Parses one packet; `bytes` must hold exactly this packet.
    pub fn read(bytes: &'a [u8]) -> Result<Self, Error> {
        match bytes.first() {
            Some(&kind::DATA_BYTE) => Data::read(bytes).map(Self::Data),
            _ => Interest::read(bytes).map(Self::Interest),
        }
    }

    /// The name of the Interest or Data.
    #[inline]
    pub fn name(&self) -> &Name<'a> {
        match self {
            Self::Interest(interest) => &interest.name,
            Self::Data(data) => &data.name,
        }
    }
}
