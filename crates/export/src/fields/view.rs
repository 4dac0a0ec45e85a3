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
    pub(crate) path: &'a Path,
    /// `None` if there are none.
    pub(crate) facts: Option<&'a Facts>,
    /// Milliseconds from the start of the exporter's clock to the first and the last packet, in NetFlow.
    pub(crate) uptimes_ms: [u32; 2],
}

impl<'a> View<'a> {
    /// The record with its path in the direction of the key. A record has the path of the flow's first packet. If that
    /// packet was an answer, the key was reversed; then `reversed` gets the reversed path.
    #[inline(always)]
    pub(crate) fn of(record: &'a FlowRecord, reversed: &'a mut Option<Path>) -> Self {
        let path = if record.initiator == Initiator::SynAck {
            let mut path = record.path;
            path.macs.swap(0, 1);
            path.outer_macs.swap(0, 1);
            if let Some(tunnel) = &mut path.tunnel {
                std::mem::swap(&mut tunnel.src, &mut tunnel.dst);
            }
            reversed.insert(path)
        } else {
            &record.path
        };
        let facts = (!record.facts.is_empty()).then_some(&record.facts);
        Self { record, path, facts, uptimes_ms: [0; 2] }
    }

    /// The record with the path of its first packet, without facts.
    #[inline(always)]
    pub(crate) fn of_first_packet(record: &'a FlowRecord, uptimes_ms: [u32; 2]) -> Self {
        Self { record, path: &record.path, facts: None, uptimes_ms }
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

/// The receiving interface of this direction, if it is known. Only the interface of the flow's first packet is known,
/// so only one direction has it: the answering one if the key was reversed. Otherwise 0.
pub(crate) fn ingress(record: &FlowRecord, direction: usize) -> u32 {
    let first = usize::from(record.initiator == Initiator::SynAck);
    if direction == first { record.path.ingress } else { 0 }
}
