//! Who was busy in an interval.

use std::fmt;
use std::net::IpAddr;

use serde::{Serialize, Serializer};

use super::Time;

/// All intervals of a run, earliest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Activities {
    /// Those that found room.
    pub intervals: Vec<Activity>,
    /// How many did not.
    pub further: u64,
}

impl Serialize for Activities {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.intervals.serialize(serializer)
    }
}

/// One interval. Every number of a host lies within its bounds, which meet where nothing had to be forgotten.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Activity {
    /// Its beginning.
    pub start: Time,
    /// Its end, exclusive.
    pub end: Time,
    /// IP packets with addresses.
    pub packets: u64,
    /// Their layer 3 octets.
    pub octets: u64,
    /// How many sources, destinations and ordered pairs there were, estimated.
    pub distinct: Distinct,
    /// Sources by octets.
    pub senders: Vec<Busy>,
    /// Destinations by octets.
    pub receivers: Vec<Busy>,
    /// Networks by octets sent beyond those of heavy hosts and longer networks.
    pub sending_networks: Vec<Network>,
    /// Networks by octets received, in the same way.
    pub receiving_networks: Vec<Network>,
    /// Destinations by packets, with the protocol that most of them were of.
    pub targets: Vec<Target>,
    /// Sources by distinct destinations.
    pub spreaders: Vec<Busy>,
    /// Destinations by distinct sources.
    pub attractors: Vec<Busy>,
    /// Sources whose octets changed most since the interval before.
    pub changers: Vec<Change>,
    /// Packets counted here though they are of an interval that was too long over.
    #[serde(skip_serializing_if = "super::is_zero")]
    pub strays: u64,
}

impl Activity {
    /// Keeps the first `top` rows of each list.
    pub(crate) fn cut(&mut self, top: usize) {
        self.senders.truncate(top);
        self.receivers.truncate(top);
        self.sending_networks.truncate(top);
        self.receiving_networks.truncate(top);
        self.targets.truncate(top);
        self.spreaders.truncate(top);
        self.attractors.truncate(top);
        self.changers.truncate(top);
    }
}

/// Estimated numbers of distinct things; addresses with a standard error of 1.6 %.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Distinct {
    /// Source addresses.
    pub sources: u64,
    /// Destination addresses.
    pub destinations: u64,
    /// Source and destination together.
    pub pairs: u64,
}

/// A host and a number of octets or of hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Busy {
    /// The host.
    pub address: IpAddr,
    /// At least so many.
    pub lower: u64,
    /// At most so many. Of distinct hosts: of those that were told apart.
    pub upper: u64,
}

/// A network and octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Network {
    /// Its addresses.
    pub prefix: Prefix,
    /// At least so many octets in all.
    pub lower: u64,
    /// At most so many.
    pub upper: u64,
    /// So many of `lower` are of no host or longer network that is heavy itself.
    pub beyond: u64,
}

/// The first bits of addresses, as in 192.0.2.0/24.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// Its lowest address.
    pub address: IpAddr,
    /// How many bits count.
    pub length: u8,
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}/{}", self.address, self.length))
    }
}

impl Serialize for Prefix {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A host and the packets it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Target {
    /// The host.
    pub address: IpAddr,
    /// At least so many packets.
    pub lower: u64,
    /// At most so many.
    pub upper: u64,
    /// The IP protocol that most of them were of.
    pub protocol: u8,
    /// At least so many packets of that one.
    pub of_protocol: u64,
}

/// A host and how much less or more it sent than in the interval before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The host.
    pub address: IpAddr,
    /// Best guess of its octets in the interval before.
    pub before: u64,
    /// And in this one.
    pub now: u64,
    /// They differ by so much at least.
    pub at_least: u64,
}
