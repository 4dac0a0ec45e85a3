//! DPDK devices: frames received, and sent, by poll-mode drivers, past the kernel.
//!
//! ```text
//!  "net_pcap0,rx_pcap=FILE" ─┐             ┌ queue 0 ─▶ Receiver ─ burst ─▶ Frame, …
//!  "net_af_packet0,iface=…" ─┼─▶ one port ─┤
//!  "0000:03:00.0" ───────────┘             └ queue 1 ─▶ Receiver ─ burst ─▶ Frame, …
//! ```
//!
//! A device is named as DPDK does: a virtual device with its arguments, or the address of a card on the PCI bus.
//! `open` gives a `Receiver` for each of its receive queues; a `Sender` comes with them. DPDK's environment (EAL)
//! is started once a process, when the first device is opened.
//!
//! Source: DPDK's programmer's guide, 22.11, chapters *Environment Abstraction Layer* and *Poll Mode Driver*.
//!
//! Invariants: every frame that the driver handed over is lent or waits; what the device lost is in `Counters`, as
//! far as its driver counts it. `burst` never waits, allocates nothing, and copies only frames that came in pieces.
//! `unsafe` code is in the module `sys` alone. The crate knows no packets and no applications.
#![deny(missing_docs, unsafe_code)]

mod device;
mod eal;
mod error;
mod options;
mod queues;
mod receiver;
mod send;
#[allow(unsafe_code, reason = "the module is there for it")]
mod sys;

pub use error::OpenError;
pub use options::Options;
pub use queues::Queues;
pub use receiver::{Frame, Receiver, State, open, queues};
pub use send::{SendError, Sender};
pub use sys::port::Counters;
