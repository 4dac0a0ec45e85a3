//! What the filter is given: control packets, which change permissions, and data packets, which
//! need them.
//!
//! ```text
//! control   address  banned  accepting  [begin, end)      may `address` send; whom does it accept
//! data      source   destination        iterations, seed  the work an accepted packet asks for
//! ```

use crate::filter::work::Job;

/// An address of the benchmark: 0 ≤ address < the number of addresses, at most 2¹⁶.
pub type Address = u16;

/// A packet, in the order of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet {
    /// Changes permissions.
    Control(Control),
    /// Asks for them.
    Data(Data),
}

/// Sets, in one step, whether an address may send, and whether it accepts a range of sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Control {
    /// Whose permissions change, as a source and as a destination.
    pub address: Address,
    /// The address may send to nobody from now on ("persona non grata"), or again.
    pub banned: bool,
    /// Whether the address accepts the sources of the range from now on.
    pub accepting: bool,
    /// First source of the range.
    pub begin: Address,
    /// First source behind the range.
    pub end: Address,
}

/// Wants to pass from a source to a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// Who sends.
    pub source: Address,
    /// To whom.
    pub destination: Address,
    /// Place in its train, from 0.
    pub sequence: u32,
    /// Packets in its train.
    pub train_size: u32,
    /// Names its train.
    pub tag: u32,
    /// Steps of work.
    pub iterations: u32,
    /// Where the work starts.
    pub seed: u32,
}

impl Data {
    /// The work it asks for.
    #[inline]
    pub(crate) fn job(&self) -> Job {
        Job { iterations: self.iterations, seed: self.seed }
    }
}
