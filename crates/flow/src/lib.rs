//! Flows: the key, the table, the timeouts and the exported record.
//!
//! The path: [`FlowTable::burst`] finds each packet's entry by its [`FlowKey`], ends
//! flows by [`Timeouts`] and hands every ended one to the [`Observer`] as a [`FlowRecord`].
//!
//! Invariants: time is packet time alone. A flow's records depend on its own packets and on the
//! marks between them, never on other flows, unless a flow is evicted for lack of room, and that is
//! counted ([`EndReason::LackOfResources`]).
#![forbid(unsafe_code)]

mod aggregate;
mod dense;
mod ends;
mod entry;
mod event;
mod fields;
mod flags;
mod history;
mod index;
mod key;
mod observer;
mod open;
mod origin;
mod parts;
mod pool;
mod record;
mod responses;
mod shelf;
mod sink;
mod slices;
mod statistics;
mod table;
mod tcp;
mod timeouts;

pub use aggregate::{Aggregate, MOST_ROWS, PARTS, Row};
pub use dense::Dense;
pub use event::Event;
pub use history::History;
pub use key::{FlowKey, IpVersion};
pub use observer::{Observer, Slice};
pub use open::OpenFlow;
pub use origin::Origin;
pub use parts::{PART_BYTES, part_statistics_bytes};
pub use record::{EndReason, FlowRecord, Initiator, Part};
pub use responses::{Exchange, RESPONSE_BYTES, Response, ResponseTimes};
pub use ringtap_extract::{
    Application, ApplicationReason, DnsRecord, Facts, Keep, Kind, LABEL_MAX, Label, Names,
    SynFingerprint, Type, Values, unescaped,
};
pub use ringtap_wire::{Path, Paths, Tunnel, TunnelKind};
pub use sink::{RecordSink, Sinks};
pub use slices::SLICE_BYTES;
pub use statistics::{
    BURST_GAP_NS, BURST_PACKETS, BURSTS_MOST, Burst, FIRST_PACKETS_MOST, FirstPacket,
    FlowStatistics, IDLE_NS, Moments, STATISTICS_BYTES,
};
pub use table::{FactCounts, FlowTable, Metering};
pub use tcp::{TCP_BYTES, TcpPerformance};
pub use timeouts::{Class, Timeouts};
