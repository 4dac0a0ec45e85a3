//! A store: a folder of records, events, alerts and totals, in files by UTC time and probe, with a manifest of them.
//!
//! ```text
//! STORE/flows/2026/11/26/1005-PROBE.parquet     records, one file a period
//! STORE/manifest/2026-11-26-PROBE.jsonl         a line for each finished file, chained by hashes
//! ```
//!
//! Invariants: no file that exists is replaced; one process at a time writes the files of a probe; what a process left
//! that ended early is completed by the next one.
#![forbid(unsafe_code)]

mod appended_file;
pub mod arrived;
mod clock;
mod folders;
mod free_space;
mod keep_free;
mod layout;
mod lock;
mod manifest;
mod measure;
mod names;
mod open_file;
mod record_file;
mod store;
mod store_file;
pub mod verify;
mod window;

pub use appended_file::{AppendedFile, Trace};
pub use folders::{Created, Denied, create, denied};
pub use free_space::{FreeSpace, NamedFiles, OutputFiles};
pub use keep_free::KeepFree;
pub use layout::{InvalidProbe, Kind, Layout};
pub use manifest::{Counts, FileLine, Flows, Line, Packets, Records, Start, What};
pub use open_file::OpenFile;
pub use record_file::{FileNames, FileRules, RecordFile};
pub use store::{Counting, Store, StoreOptions};
pub use store_file::StoreFile;
pub use window::{Found, find};
