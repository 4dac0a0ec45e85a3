//! Capture files: read in place, without a copy, and written.
//!
//! ```text
//! path, stdin ─▶ input (gzip, zstd) ─▶ buffer (256 KiB) ─▶ pcap | pcapng parser ─▶ chunk: bytes, places
//! ```
//!
//! [`Files`] reads several inputs one after the other, in [`Chunk`]s; a [`Frame`] borrows from its chunk. Diagnostics
//! about a file (truncated, damaged, not a capture) are [`Notice`]s, never a panic.
//!
//! Invariants: formats are recognised by magic number, never by name. Nothing seeks, so pipes work as files do. Memory
//! is bounded for any bytes. No allocation per packet.
#![forbid(unsafe_code)]

mod buffer;
mod chunk;
mod files;
mod format;
mod frame;
#[cfg(any(test, feature = "fuzz"))]
mod fuzz;
mod input;
mod interface;
mod notice;
mod pcap;
mod pcapng;
mod writer;
mod writer_ng;

pub use chunk::{Chunk, Place};
pub use files::{Files, Input, Position};
pub use frame::{Frame, MAX_CAPTURED_LEN};
#[cfg(any(test, feature = "fuzz"))]
pub use fuzz::{fuzz_pcap, fuzz_pcapng};
pub use notice::{Notice, NoticeKind, Severity};
pub use writer::PcapWriter;
pub use writer_ng::PcapngWriter;
