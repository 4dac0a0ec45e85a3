//! Packet filters: expressions such as "tcp port 80 and not net 10.0.0.0/8", as in tcpdump and Wireshark.
//!
//! ```text
//! text ─ libpcap compiles it, once for each link type ─▶ Expression ─ selects(link, frame)? ─▶ yes, no, unknown
//! ```
//!
//! The language is that of pcap-filter(7), because libpcap compiles it. The library is loaded when the first expression
//! is compiled; only filters need it. Programs run in libpcap's interpreter.
//!
//! Invariants: an expression is immutable, so threads can share it. Frames may have any bytes and lengths; bytes that
//! were not captured never match. `unsafe` code is only in the module `sys`.
#![deny(missing_docs, unsafe_code)]

mod expression;
#[allow(unsafe_code, reason = "calls into a C library")]
mod sys;

pub use expression::{Expression, ExpressionError};
