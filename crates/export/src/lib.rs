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
//! [`Summary`] of each. [`Handle`] shows the same during the run.
//!
//! # The contract of all outputs
//!
//! - **Prepared** before the change of user: hosts, certificates, sockets. **Started** after it: files. A collector that
//!   is down is tried again and again; a file that cannot be opened is an error.
//! - **Buffered**: at most [`Settings::buffer_bytes`], as encoded records in blocks; alerts have 2 MiB. Besides,
//!   [`Output::fixed_bytes`]. A worker takes no lock, makes no system call and allocates nothing once its blocks are used.
//! - **Blocks** a worker only over files, where losing records would be worse; live it drops them. Nothing waits for
//!   alerts.
//! - **Counted**: each item that a sink takes is sent, or lost with one [`Reason`]; at the end there are no others.
//!   Sent is what the system accepted, for a topic what the brokers acknowledged.
//! - **Renewed** by [`Handle::renew`]: files are finished and begun again, between two items; failed outputs are tried
//!   at once. A file gets its name when it is whole; a list of alerts has it from the start, and is opened again.
//! - **Rotated** at multiples of [`Settings::rotate_ns`]: files only, as by a renewal, at marks of packet time. Collectors
//!   get their statistics at multiples of [`Settings::statistics_ns`], after all records of the period.
//! - **Ended** by the sinks' `finish` and [`Exports::finish`]: everything is written, but a collector that accepts
//!   nothing for [`LINGER`] is given up; after [`Handle::interrupt`] so is everything else, sooner. A run that is
//!   dropped finishes no file.
//! - [`encode`] has no clock and no sockets; its time is packet time.
//!
//! A new output is a file with a `Place`, and a line in `output.rs`; a transport is a file and a line in `transports/`; a
//! format is a file and a line in `formats/`. `tests/export/contract.rs` holds all of them to this.
#![forbid(unsafe_code)]

mod alerts;
#[cfg(feature = "arrow")]
mod batches;
mod block;
mod collector;
mod cut;
pub mod encode;
mod event_file;
mod events;
mod exporter;
mod exports;
mod fields;
mod file;
mod file_link;
pub mod formats;
mod ipfix_file;
#[cfg_attr(not(feature = "kafka"), path = "no_kafka.rs")]
mod kafka;
mod launch;
mod messages;
mod metered;
mod output;
mod periods;
mod place;
mod protocol;
mod refresh;
#[cfg(feature = "parquet")]
mod rows;
mod sampling;
mod search;
mod settings;
mod shared;
mod space;
mod states;
mod store;
mod summary;
pub mod sums;
mod text;
mod topic;
mod totals;
mod transports;
mod writer;

pub use alerts::{
    AlertOutput, Alerts, InvalidAlertOutput, MOST_RUNNING, Notice, Reply, Request, Severity,
    WritePackets,
};
#[cfg(feature = "arrow")]
pub use batches::{Batches, Next as NextBatch, Only};
pub use collector::{Collector, UnknownCollector};
pub use cut::Cut;
pub use event_file::EventOutput;
pub use events::{EventFormat, UnknownEventFormat};
pub use exports::{ChangeError, Changer, Exports, Handle, Prepared, StartError};
#[cfg(feature = "arrow")]
pub use fields::Chosen;
pub use fields::{Cell, Cells, Column, ColumnType, Reader, parquet_columns};
pub use file::{FileOutput, InvalidFile};
pub use ipfix_file::IpfixFile;
pub use metered::{Meter, Metered};
pub use output::Output;
pub use protocol::Protocol;
pub use refresh::Refresh;
pub use sampling::Sampling;
pub use settings::{BUFFER_BYTES, Settings, Tls};
pub use shared::LINGER;
pub use space::Space;
pub use states::{StatePart, States};
pub use store::Store;
pub use summary::{Items, Reason, RecordTotals, Sent, Status, Summary};
pub use topic::{Compression, Contents, InvalidTopic, KafkaTopic, Login, Mechanism};
pub use totals::TotalsOutput;
