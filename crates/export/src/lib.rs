//! Flow records on their way out: NetFlow v5, NetFlow v9 (RFC 3954) and IPFIX (RFC 7011, biflows by RFC 5103), over UDP,
//! TCP, TLS and into IPFIX files (RFC 5655); and record files as JSON lines, CSV, EVE, Zeek's `conn.log` and Parquet.
//!
//! ```text
//! worker 0: RecordSink ─ encoder ─▶ block ─ ring ─▶ ┐
//!                                                   ├─▶ writer of the output ─▶ collector, file
//! worker 1: RecordSink ─ encoder ─▶ block ─ ring ─▶ ┘
//! ```
//!
//! The path: an [`Output`] is what a user named. [`Prepared`] resolves and connects, [`Prepared::start`] opens files and
//! starts a writer thread for each output. Workers get a sink each; [`Exports`] ends it all and returns a [`Summary`] of
//! each output: what was sent and what was not, with the reason. [`Handle`] shows the same while the run goes on.
//!
//! Invariants: [`encode`] is pure: bytes out, no clock, no socket; its time is packet time. A worker takes no lock, makes
//! no system call and does not wait for an output, unless the source waits, too (files). Every record made is sent or
//! counted under one [`Reason`]. Memory is bounded by the blocks.
#![forbid(unsafe_code)]

mod block;
mod collector;
pub mod encode;
mod exporter;
mod exports;
pub mod formats;
mod messages;
mod metered;
mod output;
mod refresh;
#[cfg(feature = "parquet")]
mod rows;
mod sampling;
mod shared;
mod store;
mod summary;
mod text;
mod transports;
mod writer;

pub use collector::{Collector, Protocol, Transport, UnknownCollector};
pub use exports::{Exports, Handle, LINGER, Prepared, StartError};
pub use metered::{Meter, Metered};
pub use output::{FileOutput, InvalidFile, Output};
pub use refresh::Refresh;
pub use sampling::Sampling;
pub use store::Store;
pub use summary::{Reason, RecordTotals, Sent, Status, Summary};
pub use transports::Tls;

use crate::formats::Interfaces;

/// Memory for the blocks of one output unless something else is asked for.
pub const BUFFER_BYTES: usize = 32 << 20;

/// What holds for all outputs of a run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Observation domain (IPFIX), source identifier (NetFlow v9); its low 16 bits are the engine (NetFlow v5).
    pub observation_domain: u32,
    /// When templates are sent again over UDP.
    pub refresh: Refresh,
    /// With which certificates TLS is spoken.
    pub tls: Tls,
    /// Whether packets of different VLANs are of different flows.
    pub vlan_in_key: bool,
    /// The interfaces that the flows come from, which records name; none if they come from files.
    pub interfaces: Interfaces,
    /// Which packets are metered, if not all.
    pub sampling: Option<Sampling>,
    /// Whom to ask how far the metering has come.
    pub meter: Option<Meter>,
    /// Bytes for blocks of each output that wait to be written.
    pub buffer_bytes: usize,
    /// Whether packets come from an interface. Then an output that is full loses records and does not hold up the run.
    pub live: bool,
    /// Whether the source may be quiet for long: an interface, a pipe. Then workers hand over what they have at every mark
    /// of time, and not only when the writer asks for it.
    pub prompt: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            observation_domain: 0,
            refresh: Refresh::default(),
            tls: Tls::default(),
            vlan_in_key: false,
            interfaces: Interfaces::default(),
            sampling: None,
            meter: None,
            buffer_bytes: BUFFER_BYTES,
            live: false,
            prompt: false,
        }
    }
}
