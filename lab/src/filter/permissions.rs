//! The permissions at one place of the stream: bans, and the sources that each address accepts.

use crate::filter::accepting::Accepting;
use crate::filter::packet::{Address, Control, Data};
use ringtap_filter::Policy;

/// The banned sources, and the sources that each address accepts. This type defines the meaning of
/// packets:
///
/// - Control sets `banned[address] ← banned` and adds the range to the accepted sources of the
///   address or removes it, in one step.
/// - Data passes if its source is not banned and its destination accepts its source.
#[derive(Clone, Debug)]
pub struct Permissions {
    banned: Vec<bool>,
    accepting: Vec<Accepting>,
}

impl Permissions {
    /// The initial permissions: no bans; each address accepts all sources (`Allow`) or none
    /// (`Deny`).
    pub fn new(addresses: usize, policy: Policy) -> Self {
        Self { banned: vec![false; addresses], accepting: vec![Accepting::new(policy); addresses] }
    }

    /// Applies a control packet.
    pub fn change(&mut self, control: &Control) {
        let address = usize::from(control.address);
        self.banned[address] = control.banned;
        self.accepting[address].set(control.begin, control.end, control.accepting);
    }

    /// Whether an address is banned, and the sources it accepts.
    pub(crate) fn of(&self, address: Address) -> (bool, Accepting) {
        let address = usize::from(address);
        (self.banned[address], self.accepting[address].clone())
    }

    /// Restores the state of an address that [`of`](Self::of) returned.
    pub(crate) fn put(&mut self, address: Address, (banned, accepting): (bool, Accepting)) {
        let address = usize::from(address);
        self.banned[address] = banned;
        self.accepting[address] = accepting;
    }

    /// Whether a data packet passes.
    pub fn pass(&self, data: &Data) -> bool {
        let accepting = &self.accepting[usize::from(data.destination)];
        !self.banned[usize::from(data.source)] && accepting.contains(data.source)
    }
}
