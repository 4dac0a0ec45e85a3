//! A flow record as the values of fields read it.

use ringtap_flow::{
    Facts, FlowRecord, FlowStatistics, Initiator, IpVersion, Kind, Origin, Path, SynFingerprint,
    Tunnel,
};

use super::value::{Listed, Numbers, Value};
use crate::formats::protocol::{ICMP, ICMPV6};

/// A record and what its fields share.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) record: &'a FlowRecord,
    /// The path of the direction from the initiator.
    pub(crate) path: &'a Path,
    /// The path of the other direction, if it is known and not the mirror.
    pub(crate) reverse_path: Option<&'a Path>,
    /// `None` if there are none.
    pub(crate) facts: Option<&'a Facts>,
    /// Milliseconds from the start of the exporter's clock to the first and the last packet, in NetFlow.
    pub(crate) uptimes_ms: [u32; 2],
}

impl<'a> View<'a> {
    /// The record with its path in the direction of the key. A record has the path of the flow's first packet. If that
    /// packet was an answer, the key was reversed; then `reversed` gets the reversed path, unless the record has it.
    #[inline(always)]
    pub(crate) fn of(record: &'a FlowRecord, reversed: &'a mut Option<Path>) -> Self {
        let (mut path, reverse_path) = known_paths(record);
        if record.initiator == Initiator::SynAck && reverse_path.is_none() {
            path = reversed.insert(record.path.reversed());
        }
        let facts = (!record.facts.is_empty()).then_some(&record.facts);
        Self { record, path, reverse_path, facts, uptimes_ms: [0; 2] }
    }

    /// The record with the path of its first packet, or the paths of both directions, without facts.
    #[inline(always)]
    pub(crate) fn of_first_packet(record: &'a FlowRecord, uptimes_ms: [u32; 2]) -> Self {
        let (path, reverse_path) = known_paths(record);
        Self { record, path, reverse_path, facts: None, uptimes_ms }
    }

    /// The path of a direction: without a reverse path both have one.
    #[inline(always)]
    pub(crate) fn way(&self, direction: usize) -> &'a Path {
        if direction == 0 { self.path } else { self.reverse_path.unwrap_or(self.path) }
    }

    /// A VLAN tag of a direction, from the outermost.
    #[inline(always)]
    pub(super) fn tag(&self, direction: usize, number: u8) -> Option<u16> {
        let path = self.way(direction);
        (path.vlan_tags > number).then_some(path.vlans[usize::from(number)])
    }

    /// A link address of a direction: 0 the source, 1 the destination.
    #[inline(always)]
    pub(super) fn mac(&self, direction: usize, end: usize) -> Option<Value<'a>> {
        let macs = &self.way(direction).macs;
        (*macs != [[0; 6]; 2]).then_some(Value::Mac(&macs[end]))
    }

    /// The address of an end: 0 the initiator, 1 the other one.
    #[inline(always)]
    pub(super) fn address(&self, end: usize) -> Value<'a> {
        let key = &self.record.key;
        Value::Address(key.version, if end == 0 { &key.src } else { &key.dst })
    }

    /// The port of an end.
    #[inline(always)]
    pub(super) fn port(&self, end: usize) -> u16 {
        let key = &self.record.key;
        if end == 0 { key.src_port } else { key.dst_port }
    }

    /// An outer address of the tunnel.
    #[inline(always)]
    pub(super) fn outer(&self, address: fn(&Tunnel) -> &[u8; 16]) -> Option<Value<'a>> {
        let tunnel = self.path.tunnel.as_ref()?;
        let version = if tunnel.ipv6 { IpVersion::V6 } else { IpVersion::V4 };
        Some(Value::Address(version, address(tunnel)))
    }

    /// The values of a kind of facts, if there are any.
    #[inline(always)]
    pub(super) fn fact(&self, kind: Kind) -> Option<Value<'a>> {
        self.facts.filter(|facts| facts.has(kind)).map(|facts| Value::Fact(facts, kind))
    }

    /// What the first SYN looked like: 0 without ACK, 1 with it.
    #[inline(always)]
    pub(super) fn syn(&self, side: usize) -> Option<SynFingerprint<'a>> {
        let kind = if side == 0 { Kind::TcpSyn } else { Kind::TcpSynAck };
        let facts = self.facts.filter(|facts| facts.has(kind))?;
        SynFingerprint::of(facts.values(kind).next()?)
    }

    /// The statistics of its packets.
    #[inline(always)]
    pub(super) fn statistics(&self) -> Option<&'a FlowStatistics> {
        self.record.statistics.as_deref()
    }

    /// A list of the statistics in this direction, unless it is empty.
    #[inline(always)]
    pub(super) fn list(&self, direction: usize, of: Listed) -> Option<Value<'a>> {
        let statistics = self.statistics()?;
        let is_of_packets = matches!(
            of,
            Listed::PacketOctets
                | Listed::PacketDirections
                | Listed::PacketTimes
                | Listed::PacketFlags
        );
        let is_empty = if is_of_packets {
            statistics.first_packets().is_empty()
        } else {
            statistics.bursts(direction).next().is_none()
        };
        let first_ns = self.record.first_ns;
        (!is_empty).then_some(Value::List(Numbers { statistics, first_ns, direction, of }))
    }

    /// The origin of an end.
    #[inline(always)]
    pub(super) fn origin(&self, end: usize) -> Option<&'a Origin> {
        self.record.origins.as_deref().map(|origins| &origins[end])
    }
}

/// The paths of both directions if both are known; otherwise that of the first packet.
#[inline(always)]
pub(crate) fn known_paths(record: &FlowRecord) -> (&Path, Option<&Path>) {
    match record.reverse_path.as_deref() {
        None => (&record.path, None),
        Some(own) if record.initiator == Initiator::SynAck => (own, Some(&record.path)),
        other => (&record.path, other),
    }
}

pub(crate) const fn milliseconds(ns: u64) -> u64 {
    ns / 1_000_000
}

/// Nanoseconds as microseconds, rounded down.
pub(crate) fn microseconds(ns: Option<u64>) -> Option<u64> {
    ns.map(|ns| ns / 1_000)
}

/// Returns true if the record has an ICMP type and code of its IP version.
pub(crate) fn is_icmp(record: &FlowRecord) -> bool {
    let own = match record.key.version {
        IpVersion::V4 => ICMP,
        IpVersion::V6 => ICMPV6,
    };
    record.key.protocol == own
}

/// Type and code of the first ICMP message of a direction, if the record has one.
#[inline(always)]
pub(crate) fn type_code(record: &FlowRecord, direction: usize) -> Option<u16> {
    let own =
        if direction == 0 { Some(record.icmp_type_code) } else { record.reverse_icmp_type_code };
    own.filter(|_| is_icmp(record))
}

/// The receiving interface of this direction, if it is known: that of the flow's first packet is, that of the other
/// direction only with a reverse path. Otherwise 0.
pub(crate) fn ingress(record: &FlowRecord, direction: usize) -> u32 {
    record.paths()[direction].map_or(0, |path| path.ingress)
}
