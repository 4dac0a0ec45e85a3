//! Flows: the key, the table, the timeouts and the exported record.
//!
//! The path: [`FlowTable::burst`] finds each packet's entry by its [`FlowKey`], ends
//! flows by [`Timeouts`] and hands every ended one to the [`Observer`] as a [`FlowRecord`].
//!
//! ```
//! use ringtap_flow::{EndReason, FlowRecord, FlowTable, Metering, Observer};
//! use ringtap_stage::Attachments;
//! use ringtap_wire::{Flags, HashKey, PacketRecord};
//! use std::sync::Arc;
//!
//! /// Stores the records of ended flows.
//! #[derive(Default)]
//! struct Ended(Vec<FlowRecord>);
//!
//! impl Observer for Ended {
//!     fn counted(&mut self, _: &PacketRecord, _: &mut u16) {}
//!     fn late(&mut self, _: &PacketRecord, _: u16) {}
//!     fn ended(&mut self, record: &FlowRecord, _: u16) {
//!         self.0.push(record.clone());
//!     }
//! }
//!
//! // A query and its answer; the decoder of ringtap-wire makes such records from frames.
//! let (key, now_ns) = (HashKey::from_seed(1), 1_700_000_000_000_000_000);
//! let mut query = PacketRecord { ts_ns: now_ns, ip_len: 60, protocol: 17, ..PacketRecord::EMPTY };
//! (query.src[..4]).copy_from_slice(&[192, 0, 2, 1]);
//! (query.dst[..4]).copy_from_slice(&[192, 0, 2, 2]);
//! (query.src_port, query.dst_port) = (12345, 53);
//! query.flags = Flags(Flags::IPV4.0 | Flags::PORTS.0);
//! query.pair_hash = key.pair(&query.src, &query.dst);
//! let mut answer = PacketRecord { ts_ns: now_ns + 1_000_000, ip_len: 200, ..query };
//! (answer.src, answer.dst) = (query.dst, query.src);
//! (answer.src_port, answer.dst_port) = (query.dst_port, query.src_port);
//!
//! let mut table = FlowTable::new(1 << 16, &Metering::default(), key, Arc::default());
//! let mut ended = Ended::default();
//! table.burst(&[query, answer], Attachments::NONE, &mut ended);
//! while !table.is_empty() {
//!     table.drain(answer.ts_ns, 1024, &mut ended);
//! }
//! let [flow] = &ended.0[..] else { panic!("one flow") };
//! assert_eq!((flow.packets, flow.octets), ([1, 1], [60, 200]));
//! assert_eq!(flow.end_reason, EndReason::Forced);
//! ```
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
mod ways;

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
    FlowStatistics, IDLE_NS, Moments, OCTETS_BYTES, OCTETS_MOST, STATISTICS_BYTES,
    StatisticsCounts,
};
pub use table::{FactCounts, FlowTable, Metering};
pub use tcp::{TCP_BYTES, TcpPerformance};
pub use timeouts::{Class, Timeouts};

/// Compiles and runs the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
