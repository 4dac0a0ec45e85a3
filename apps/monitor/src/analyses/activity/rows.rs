//! The busiest hosts of an interval.

use std::cmp::Reverse;
use std::fmt;
use std::net::IpAddr;

use ringtap_enrich::Stage;
use serde::{Serialize, Serializer};

use crate::time::Time;
use crate::volume::is_zero;

/// All intervals of a run, earliest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Activities {
    /// Intervals with room.
    pub intervals: Vec<Activity>,
    /// Number of intervals without room.
    pub further: u64,
}

impl Serialize for Activities {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.intervals.serialize(serializer)
    }
}

/// One interval. Every number of a host lies within its bounds, which are equal if nothing was
/// evicted.
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
    /// Estimated numbers of sources, destinations and ordered pairs.
    pub distinct: Distinct,
    /// Sources by octets.
    pub senders: Vec<Busy>,
    /// Destinations by octets.
    pub receivers: Vec<Busy>,
    /// Networks by octets sent outside of heavy hosts and longer networks.
    pub sending_networks: Vec<Network>,
    /// Networks by octets received, in the same way.
    pub receiving_networks: Vec<Network>,
    /// Destinations by packets, with the most frequent protocol.
    pub targets: Vec<Target>,
    /// Sources by distinct destinations.
    pub spreaders: Vec<Busy>,
    /// Destinations by distinct sources.
    pub attractors: Vec<Busy>,
    /// Sources whose octets changed most since the interval before.
    pub changers: Vec<Change>,
    /// Packets of other intervals that were already handed over.
    #[serde(skip_serializing_if = "is_zero")]
    pub strays: u64,
}

impl Activity {
    /// Passes addresses through the stage.
    pub(crate) fn pass(&mut self, stage: &mut Stage) {
        let Self { senders, receivers, spreaders, attractors, .. } = self;
        for rows in [senders, receivers, spreaders, attractors] {
            rows.iter_mut().for_each(|row| stage.replace(&mut row.address));
            rows.sort_by_key(|row| (Reverse(row.lower), row.address));
        }
        for rows in [&mut self.sending_networks, &mut self.receiving_networks] {
            for row in rows.iter_mut() {
                stage.replace_network(&mut row.prefix.address, row.prefix.length);
            }
            if stage.replaces() {
                rows.sort_by_key(|row| (row.prefix.address, row.prefix.length));
            }
        }
        self.targets.iter_mut().for_each(|row| stage.replace(&mut row.address));
        if stage.replaces() {
            self.targets.sort_by_key(|row| (Reverse(row.lower), row.address));
        }
        self.changers.iter_mut().for_each(|row| stage.replace(&mut row.address));
        self.changers.sort_by_key(|row| (Reverse(row.at_least), row.address));
    }

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
    /// Lower bound.
    pub lower: u64,
    /// Upper bound. Of distinct hosts: an upper bound of those distinguished.
    pub upper: u64,
}

/// A network and octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Network {
    /// Its addresses.
    pub prefix: Prefix,
    /// Lower bound of its octets.
    pub lower: u64,
    /// Upper bound.
    pub upper: u64,
    /// The part of `lower` outside of heavy hosts and longer networks.
    pub beyond: u64,
}

/// The first bits of addresses, as in 192.0.2.0/24.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// Its lowest address.
    pub address: IpAddr,
    /// Number of bits.
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

/// A host and the packets it received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Target {
    /// The host.
    pub address: IpAddr,
    /// Lower bound of its packets.
    pub lower: u64,
    /// Upper bound.
    pub upper: u64,
    /// The most frequent IP protocol.
    pub protocol: u8,
    /// Lower bound of its packets.
    pub of_protocol: u64,
    /// Lower bound of those with SYN and without ACK, if it is TCP.
    #[serde(skip_serializing_if = "is_zero")]
    pub syns: u64,
}

/// A host and the change of its octets since the interval before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The host.
    pub address: IpAddr,
    /// Estimate of its octets in the interval before.
    pub before: u64,
    /// Estimate in this one.
    pub now: u64,
    /// Lower bound of the difference.
    pub at_least: u64,
}
