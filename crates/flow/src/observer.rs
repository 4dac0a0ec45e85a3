//! What the table reports as it counts.

use ringtap_wire::PacketRecord;

use crate::{FlowRecord, Response};

/// Which packets of its flow a slice has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slice {
    /// All: the flow ends.
    Whole,
    /// The first ones.
    First,
    /// Ones after an earlier slice.
    Later {
        /// The first packet of the flow, nanoseconds since 1970.
        flow_first_ns: u64,
    },
}

/// Receives the events of the table.
pub trait Observer {
    /// A packet was counted on its flow, and no packet of the flow is later. `stamp` is the
    /// observer's own word in the entry, 0 in a new one; it is kept when a flow is cut.
    fn counted(&mut self, packet: &PacketRecord, stamp: &mut u16);

    /// As `counted`, for a packet that is earlier than the flow's latest; the stamp cannot be
    /// changed.
    fn late(&mut self, packet: &PacketRecord, stamp: u16);

    /// A part of a flow, if flows are cut ([`crate::Metering::cut_ns`]); also the last one, before the flow ends.
    fn part(&mut self, _record: &FlowRecord) {}

    /// A flow begins with this packet, if flows are sliced; `counted` follows.
    fn begun(&mut self, _packet: &PacketRecord) {}

    /// The packets and octets of a flow in one interval, if flows are sliced ([`crate::FlowTable::with_slices`]); the rest
    /// of the record is that of the flow so far, with the application that follows from its facts so far.
    fn slice(&mut self, _record: &FlowRecord, _of: Slice) {}

    /// A response was measured, if response times are ([`crate::FlowTable::with_tcp`]).
    fn response(&mut self, _response: Response) {}

    /// A flow ended with this stamp, or was cut by the active timeout.
    fn ended(&mut self, record: &FlowRecord, stamp: u16);
}
