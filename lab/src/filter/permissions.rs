//! What stands at a place of the stream: bans, and what each address accepts.

use crate::filter::accepting::Accepting;
use crate::filter::packet::{Address, Control, Data};
use ringtap_filter::Policy;

/// Who may send, and whom each address accepts. The meaning of packets stands here and nowhere else:
///
/// - Control, in one step: `banned[address] ← banned`, and the range is added to, or taken out of,
///   what the address accepts.
/// - Data passes if its source is not banned and its destination accepts its source.
#[derive(Clone, Debug)]
pub struct Permissions {
    banned: Vec<bool>,
    accepting: Vec<Accepting>,
}

impl Permissions {
    /// Nobody is banned; everybody accepts everybody, or nobody.
    pub fn new(addresses: usize, policy: Policy) -> Self {
        Self { banned: vec![false; addresses], accepting: vec![Accepting::new(policy); addresses] }
    }

    /// Takes a control packet.
    pub fn change(&mut self, control: &Control) {
        let address = usize::from(control.address);
        self.banned[address] = control.banned;
        self.accepting[address].set(control.begin, control.end, control.accepting);
    }

    /// What stands for an address.
    pub(crate) fn of(&self, address: Address) -> (bool, Accepting) {
        let address = usize::from(address);
        (self.banned[address], self.accepting[address].clone())
    }

    /// Puts back what stood for an address.
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
