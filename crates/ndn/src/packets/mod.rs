//! NDN packets: Interest, Data and the link protocol around them, read in place and written.
//!
//! ```text
//!  bytes ─▶ LpPacket ─▶ (Reassembler) ─▶ Packet ─┬▶ Interest   views: nothing is copied
//!           headers      pieces to one           └▶ Data
//!
//!  NewInterest, NewData, NewCommand ─▶ bytes ─▶ write_lp / fragments ─▶ bytes
//! ```
//!
//! After the NDN Packet Format Specification, version 0.3, and NDNLPv2.
//!
//! Invariants: no bytes make it panic. What a view hands out lies within the bytes that it was made of.
//! Reading allocates nothing; writing appends to the caller's buffer. Memory for pieces of packets is
//! bounded. No clock, no I/O.
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

/// The largest network packet that is passed on.
pub const PACKET_MAX: usize = 8800;

/// The UDP port of forwarders.
pub const UDP_PORT: u16 = 6363;

/// A network packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet<'a> {
    /// Asks for a Data by name.
    Interest(Interest<'a>),
    /// Answers.
    Data(Data<'a>),
}

impl<'a> Packet<'a> {
    /// Reads a packet, which is all of `bytes`.
    pub fn read(bytes: &'a [u8]) -> Result<Self, Error> {
        match bytes.first() {
            Some(&kind::DATA_BYTE) => Data::read(bytes).map(Self::Data),
            _ => Interest::read(bytes).map(Self::Interest),
        }
    }

    /// What is asked for, or what answers.
    #[inline]
    pub fn name(&self) -> &Name<'a> {
        match self {
            Self::Interest(interest) => &interest.name,
            Self::Data(data) => &data.name,
        }
    }
}
