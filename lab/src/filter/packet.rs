//! The packets of the benchmark: control packets, which change permissions, and data packets, which
//! are checked against them.
//!
//! ```text
//! control   address  banned  accepting  [begin, end)      may `address` send; which sources it accepts
//! data      source   destination        iterations, seed  the work if the packet is accepted
//! ```

use crate::filter::work::Job;

/// An address of the benchmark: 0 ≤ address < the number of addresses, at most 2¹⁶.
pub type Address = u16;

/// A packet of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet {
    /// Changes permissions.
    Control(Control),
    /// Passes if permissions allow it.
    Data(Data),
}

/// Sets, in one step, whether an address may send, and whether it accepts a range of sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Control {
    /// The address whose permissions change, as a source and as a destination.
    pub address: Address,
    /// Whether the address is banned as a source from now on ("persona non grata").
    pub banned: bool,
    /// Whether the address accepts the sources of the range from now on.
    pub accepting: bool,
    /// First source of the range.
    pub begin: Address,
    /// End of the range, exclusive.
    pub end: Address,
}

/// A packet from a source to a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// Source address.
    pub source: Address,
    /// Destination address.
    pub destination: Address,
    /// Index in its train, from 0.
    pub sequence: u32,
    /// Packets in its train.
    pub train_size: u32,
    /// Identifier of its train.
    pub tag: u32,
    /// Steps of work.
    pub iterations: u32,
    /// Start value of the work.
    pub seed: u32,
}

impl Data {
    /// The work for the packet, if it passes.
    #[inline]
    pub(crate) fn job(&self) -> Job {
        Job { iterations: self.iterations, seed: self.seed }
    }
}
