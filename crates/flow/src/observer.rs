//! What the table reports as it counts.

use ringtap_wire::PacketRecord;

use crate::FlowRecord;

/// Receives the events of the table.
pub trait Observer {
    /// A packet was counted on its flow, and no packet of the flow is later. `stamp` is the
    /// observer's own word in the entry, 0 in a new one; it is kept when a flow is cut.
    fn counted(&mut self, packet: &PacketRecord, stamp: &mut u16);

    /// As `counted`, for a packet that is earlier than the flow's latest; the stamp cannot be
    /// changed.
    fn late(&mut self, packet: &PacketRecord, stamp: u16);

    /// A flow, or a part of it, ended with this stamp.
    fn ended(&mut self, record: &FlowRecord, stamp: u16);
}
