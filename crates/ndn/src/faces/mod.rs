//! Faces of an NDN forwarder: neighbours over UDP and on Ethernets, programs on this machine by a Unix socket.
//!
//! ```text
//!  UDP, Ethernet ─▶ bursts of datagrams ─┐                        ┌─▶ Handler::packets (face, headers, packet)
//!  Unix socket ───▶ a stream of frames ──┴─▶ Intake: whose? whole?┘
//!
//!  Faces::send (face, headers, packet) ─▶ frames, in pieces if they must be ─▶ Faces::flush: bursts
//! ```
//!
//! After the NDN Link Protocol, version 2; addresses, ports and numbers of faces as in NFD.
//!
//! Invariants: every frame that came was handed on, is part of a packet that waits, or is counted under its reason; so is
//! every frame that was to leave. Memory is bounded, whatever comes. Nothing waits but [`Intake::wait`]. No clock:
//! the caller says what time it is. `unsafe` stands in `src/sys/` alone. It knows no tables.
#![deny(missing_docs)]

mod channel;
mod counters;
mod error;
mod face;
mod intake;
mod registry;
mod remote;
mod settings;
mod stream;
#[allow(unsafe_code, reason = "system calls")]
mod sys;
mod waiting;

pub use counters::{Counters, Lost};
pub use error::OpenError;
pub use face::{Face, Persistence};
pub use intake::{Handler, Intake, Whole, tidy};
pub use registry::Faces;
pub use remote::{Mac, Remote, RemoteError};
pub use settings::{EthernetSettings, Settings};
pub use sys::{receive_drops, widen_receive_queue};
