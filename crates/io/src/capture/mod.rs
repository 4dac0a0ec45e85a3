//! Sources of packets: capture files, in place and without a copy, and the writer of them.
//!
//! ```text
//! path, stdin ─▶ input (gzip, zstd) ─▶ buffer (256 KiB) ─▶ pcap | pcapng walk ─▶ chunk: bytes, places
//! ```
//!
//! [`Files`] reads several inputs one after the other, by the [`Chunk`]; a [`Frame`] borrows from
//! it. What a reader has to say about a file (cut off, damaged, no capture) is a [`Notice`], never a panic.
//!
//! Invariants: formats are told by magic number, never by name; nothing seeks, so a pipe does as
//! well as a file; memory is bounded whatever the bytes; no allocation per packet.
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

pub use chunk::{Chunk, Place};
pub use files::{Files, Input, Position};
pub use frame::{Frame, MAX_CAPTURED_LEN};
#[cfg(any(test, feature = "fuzz"))]
pub use fuzz::{fuzz_pcap, fuzz_pcapng};
pub use notice::{Notice, NoticeKind, Severity};
pub use writer::PcapWriter;
