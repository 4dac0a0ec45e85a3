//! A face: one neighbour, one group of neighbours, or one program on this machine.

use crate::packets::{Headers, kind};

use crate::faces::counters::{Counters, Lost};
use crate::faces::remote::Remote;
use crate::faces::stream::Stream;
use crate::faces::sys::Address;

/// What is known of a face: its kind, its address and its counters.
#[derive(Debug)]
pub struct Face {
    pub(crate) remote: Remote,
    pub(crate) local: String,
    pub(crate) persistence: Persistence,
    pub(crate) mtu: usize,
    /// How many faces were made before it. Numbers are used again, this is not.
    pub(crate) serial: u64,
    /// Of the next piece of a packet.
    pub(crate) sequence: u64,
    /// When something came or left.
    pub(crate) used_ns: u64,
    pub(crate) counters: Counters,
    pub(crate) link: Link,
}

/// When a face ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Persistence {
    /// When somebody says so.
    Persistent,
    /// When it was not used for a while, or the other end closes it.
    OnDemand,
    /// Never; it was configured.
    Permanent,
}

/// What carries it.
#[derive(Debug)]
pub(crate) enum Link {
    Datagrams { channel: usize, to: Address },
    Stream(Box<Stream>),
}

impl Face {
    /// Who is at the other end.
    pub fn remote(&self) -> &Remote {
        &self.remote
    }

    /// Our end, as NFD writes it.
    pub fn local(&self) -> &str {
        &self.local
    }

    /// When it ends.
    pub fn persistence(&self) -> Persistence {
        self.persistence
    }

    /// The largest frame, in bytes.
    pub fn mtu(&self) -> usize {
        self.mtu
    }

    /// What went over it.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Whether a program on this machine is at the other end. As in NFD, UDP never says so: anybody may write any
    /// address into a datagram.
    pub fn is_local(&self) -> bool {
        matches!(self.remote, Remote::Program(_))
    }

    /// Whether a neighbour made it by sending a packet: it counts against the share of such faces and may be evicted.
    pub(crate) fn is_on_demand(&self) -> bool {
        self.persistence == Persistence::OnDemand && !self.is_local()
    }

    /// Whether several hear what is sent.
    pub fn is_shared(&self) -> bool {
        matches!(self.remote, Remote::Ethernet { to: None, .. })
    }

    /// A packet came, whole by now.
    pub(crate) fn count_in(&mut self, headers: &Headers, packet: &[u8]) {
        let counters = &mut self.counters;
        *match (first_kind(packet), headers.nack) {
            (kind::INTEREST, None) => &mut counters.interests_in,
            (kind::INTEREST, Some(_)) => &mut counters.nacks_in,
            (kind::DATA, None) => &mut counters.data_in,
            _ => &mut counters.others_in,
        } += 1;
    }

    /// A packet is to be sent.
    pub(crate) fn count_out(&mut self, headers: &Headers, packet: &[u8]) {
        let counters = &mut self.counters;
        *match (first_kind(packet), headers.nack) {
            (kind::DATA, _) => &mut counters.data_out,
            (_, None) => &mut counters.interests_out,
            (_, Some(_)) => &mut counters.nacks_out,
        } += 1;
    }

    /// A frame that was to be sent did not leave.
    pub(crate) fn lose(&mut self, reason: Lost) {
        self.counters.lose(reason, 1);
    }
}

fn first_kind(packet: &[u8]) -> u32 {
    packet.first().copied().unwrap_or(0).into()
}
