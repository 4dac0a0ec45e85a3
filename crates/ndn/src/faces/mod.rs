//! Faces of an NDN forwarder: to neighbours over UDP, TCP, WebSocket and Ethernet, and to programs
//! on this machine over a Unix socket.
//!
//! ```text
//!  UDP, Ethernet ───▶ bursts of datagrams ────┬─▶ Intake: face, reassembly ─▶ Handler::packets
//!  TCP, Unix socket ───▶ streams of frames ───┘
//!
//!  Faces::send (face, headers, packet) ─▶ frames, fragmented if necessary ─▶ Faces::flush: bursts
//! ```
//!
//! Follows NDNLPv2; addresses, ports and face numbers are those of NFD.
//!
//! Invariants: every received frame is delivered, held for reassembly, or counted as lost with a
//! reason. Every frame to send is sent, buffered, or counted as lost with a reason. Memory is
//! bounded for any input. Only [`Intake::wait`] blocks. There is no clock: the caller passes the
//! time. `unsafe` is only in `src/faces/sys/`. There are no forwarding tables here.
#![deny(missing_docs)]

mod channel;
mod channels;
mod connection;
mod counters;
mod egress;
mod error;
mod eviction;
mod face;
mod handler;
mod intake;
mod lifecycle;
mod listener;
mod multicast;
mod outgoing;
mod own_queues;
mod queue;
mod registry;
mod remote;
mod settings;
mod slots;
mod stream;
mod streams;
#[allow(unsafe_code, reason = "system calls")]
mod sys;
mod table;
mod waiting;
#[cfg_attr(not(feature = "websocket"), path = "no_websocket.rs")]
mod websocket;
mod xdp;

pub use counters::{Counters, Lost};
pub(crate) use egress::{Egress, FaceInfo, Sent};
pub use error::OpenError;
pub use face::{Face, Persistence};
pub use handler::{Handler, ReceivedPacket};
pub use intake::Intake;
pub use lifecycle::close_idle;
pub(crate) use outgoing::Outgoing;
pub use registry::Faces;
pub use remote::{MULTICAST_GROUP, MULTICAST_PORT, Mac, Remote, RemoteError};
pub use settings::{EthernetMethod, EthernetSettings, MTU_MIN, MulticastSettings, Settings};
pub use sys::{receive_drops, widen_receive_queue};
