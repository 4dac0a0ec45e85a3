//! Export of flow records: NetFlow v5, NetFlow v9 (RFC 3954) and IPFIX (RFC 7011, biflows by RFC 5103), over UDP, TCP,
//! TLS and into IPFIX files (RFC 5655); messages of a Kafka topic, also with states of the run; and record files as JSON lines, CSV, EVE, Zeek's
//! `conn.log` and Parquet.
//!
//! ```text
//! worker 0: RecordSink ─ encoder ─▶ block ─ ring ─▶ ┐
//!                                                   ├─▶ writer of the output ─▶ collector, file
//! worker 1: RecordSink ─ encoder ─▶ block ─ ring ─▶ ┘
//! ```
//!
//! The path: an [`Output`] is given by the user. [`Prepared`] resolves and connects, [`Prepared::start`] opens files
//! and starts a writer thread for each output. Each worker gets a sink; [`Exports`] ends all outputs and returns a
//! [`Summary`] of each: the records sent, and those not sent by reason. [`Handle`] shows the same during the run.
//!
//! Invariants: [`encode`] has no clock and no sockets; its time is packet time. A worker takes no lock, makes no system
//! call and does not wait for an output, unless the source can wait, too (files). Every record is sent or counted with
//! one [`Reason`]. Memory is bounded by the blocks.
#![forbid(unsafe_code)]

mod alerts;
#[cfg(feature = "arrow")]
mod batches;
mod block;
mod collector;
mod cut;
pub mod encode;
mod events;
mod exporter;
mod exports;
pub mod formats;
#[cfg_attr(not(feature = "kafka"), path = "no_kafka.rs")]
mod kafka;
mod messages;
mod metered;
mod output;
mod place;
mod protocol;
mod refresh;
#[cfg(feature = "parquet")]
mod rows;
mod sampling;
mod shared;
mod states;
mod store;
mod summary;
mod text;
mod topic;
mod transports;
mod writer;

pub use alerts::{AlertOutput, Alerts, InvalidAlertOutput, MOST_RUNNING, Notice, Reply, Request};
#[cfg(feature = "arrow")]
pub use batches::Batches;
pub use collector::{Collector, Transport, UnknownCollector};
pub use cut::Cut;
pub use events::{EventFormat, UnknownEventFormat};
pub use exports::{Exports, Handle, LINGER, Prepared, StartError};
pub use metered::{Meter, Metered};
pub use output::{EventOutput, FileOutput, InvalidFile, Output};
pub use protocol::Protocol;
pub use refresh::Refresh;
pub use sampling::Sampling;
pub use states::{StatePart, States};
pub use store::Store;
pub use summary::{Items, Reason, RecordTotals, Sent, Status, Summary};
pub use topic::{Compression, InvalidTopic, KafkaTopic, Login, Mechanism};
pub use transports::Tls;

use crate::formats::Interfaces;

/// Default memory for the blocks of one output, in bytes.
pub const BUFFER_BYTES: usize = 32 << 20;

/// Settings of all outputs of a run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Observation domain (IPFIX), source identifier (NetFlow v9); its low 16 bits are the engine (NetFlow v5).
    pub observation_domain: u32,
    /// When templates are sent again over UDP.
    pub refresh: Refresh,
    /// Certificates for TLS.
    pub tls: Tls,
    /// True if packets of different VLANs belong to different flows.
    pub vlan_in_key: bool,
    /// The name of the probe, for messages of Kafka.
    pub probe: Option<String>,
    /// The interfaces of the flows, for records; empty for files.
    pub interfaces: Interfaces,
    /// The sampling of packets, if any.
    pub sampling: Option<Sampling>,
    /// The source of the metering statistics, if any.
    pub meter: Option<Meter>,
    /// Bytes for the blocks of each output that wait to be written.
    pub buffer_bytes: usize,
    /// True if packets come from an interface. Then a full output loses records and does not delay the run.
    pub live: bool,
    /// True if the source may be idle for long: an interface, a pipe. Then workers hand over blocks at every time mark,
    /// not only at the writer's request.
    pub prompt: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            observation_domain: 0,
            refresh: Refresh::default(),
            tls: Tls::default(),
            vlan_in_key: false,
            probe: None,
            interfaces: Interfaces::default(),
            sampling: None,
            meter: None,
            buffer_bytes: BUFFER_BYTES,
            live: false,
            prompt: false,
        }
    }
}
