//! DPDK devices: frames received and sent by poll-mode drivers, without the kernel.
//!
//! ```text
//!  "net_pcap0,rx_pcap=FILE" ─┐             ┌ queue 0 ─▶ Receiver ─ burst ─▶ Frame, …
//!  "net_af_packet0,iface=…" ─┼─▶ one port ─┤
//!  "0000:03:00.0" ───────────┘             └ queue 1 ─▶ Receiver ─ burst ─▶ Frame, …
//! ```
//!
//! A device has DPDK's name: a virtual device with its arguments, or the address of a card on the PCI bus. `open`
//! returns a `Receiver` for each receive queue, and a `Sender`. DPDK's environment (EAL) is started once in a process,
//! with the first device.
//!
//! Source: DPDK's programmer's guide, 22.11, chapters *Environment Abstraction Layer* and *Poll Mode Driver*.
//!
//! Invariants: every frame that the driver received is lent to the caller or still waits in the driver's ring; losses
//! of the device are in `Counters`, as far as its driver counts them. `burst` never waits, does not allocate, and
//! copies only frames that arrive in several segments. `unsafe` code is only in the module `sys`. This module does not depend on packet formats or analyses.
#![deny(missing_docs, unsafe_code)]

mod device;
mod eal;
mod error;
mod options;
mod queues;
mod receiver;
mod send;
#[allow(unsafe_code, reason = "calls into a C library")]
mod sys;

pub use error::OpenError;
pub use options::Options;
pub use queues::Queues;
pub use receiver::{Frame, Receiver, State, open, queues};
pub use send::{SendError, Sender};
pub use sys::port::Counters;
