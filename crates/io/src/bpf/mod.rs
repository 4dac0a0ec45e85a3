//! Which frames an expression selects: "tcp port 80 and not net 10.0.0.0/8", as tcpdump and Wireshark take it.
//!
//! ```text
//!  text ─ libpcap compiles it, once for each link type ─▶ Expression ─ selects(link, frame)? ─▶ yes, no, cannot tell
//! ```
//!
//! The language is that of pcap-filter(7), because libpcap compiles it. The library is loaded when the first expression
//! is compiled; only filters need it. Programs run in libpcap's interpreter.
//!
//! Invariants: an expression does not change once it is made, so threads share it; frames of any bytes and lengths are
//! judged, and what lies beyond their captured bytes selects nothing. `unsafe` code is in the module `sys` alone.
#![deny(missing_docs, unsafe_code)]

mod expression;
#[allow(unsafe_code, reason = "the module is there for it")]
mod sys;

pub use expression::{Expression, ExpressionError};
