//! Live interfaces: receives frames without copying them, and sends frames.
//!
//! ```text
//!              ┌ AF_PACKET: the host gets frames, too  ┐
//!  interface ──┤                                       ├──▶ Receiver (one per queue) ──▶ burst: Frame, …
//!              ├ AF_XDP: the host does not get them    ┤
//!              └ DPDK: the host does not get them      ┘
//! ```
//!
//! [`open`] returns a [`Receiver`] for each queue. One queue receives all frames between two addresses: both directions
//! and all fragments of a datagram. With AF_XDP and DPDK this requires that the network card distributes frames
//! symmetrically. A [`MergedReceiver`] reads several interfaces as one stream. [`Counters`] count received and dropped
//! frames. Diagnostics about an interface are [`Notice`]s; a [`LinkFollower`] reports its changes. [`Sender`] and
//! [`LiveSender`] send. A [`Port`] receives and sends the frames of one EtherType. [`Ethtool`] reads and changes settings
//! of an interface's driver.
//!
//! ```no_run
//! use std::time::Duration;
//! use ringtap_io::live::{Options, State, Wake, open};
//!
//! let mut receivers = open("eth0", &Options::default())?;
//! let mut octets = 0;
//! loop {
//!     while receivers[0].burst(256, |frame| octets += u64::from(frame.original_len)) > 0 {}
//!     if receivers[0].wait(Duration::from_millis(100)) == Wake::Nothing(State::Gone) {
//!         break;
//!     }
//! }
//! println!("{octets} octets, {} frames lost", receivers[0].counters().dropped.total());
//! # Ok::<(), ringtap_io::live::OpenError>(())
//! ```
//!
//! Invariants: every received frame is lent, waits, or is counted as dropped with a reason. (DPDK: as far as its driver
//! counts.) `burst` never waits, allocates nothing and copies no frame. (DPDK: it copies frames that arrive in several
//! buffers.) When the process ends for any reason, the kernel restores the interface. `unsafe` code is in the module
//! `sys` only. No code here depends on an application.
#![deny(missing_docs, unsafe_code)]

mod capability;
mod code;
mod counters;
mod description;
#[cfg_attr(not(feature = "dpdk"), path = "no_dpdk.rs")]
mod dpdk;
mod drain;
mod error;
mod ethtool;
mod follower;
mod frame;
mod interface;
mod link;
mod merged;
mod notice;
mod offload;
mod options;
mod packet;
mod port;
mod port_sender;
mod queue;
mod receiver;
mod send;
mod state;
#[allow(unsafe_code, reason = "all unsafe code of live interfaces is in this module")]
mod sys;
mod xdp;

pub use capability::Capability;
pub use counters::{Counters, Dropped};
pub use description::{Description, Path};
pub use drain::Drain;
pub use error::OpenError;
pub use ethtool::Ethtool;
pub use follower::{LinkChanges, LinkFollower};
pub use frame::Frame;
pub use merged::MergedReceiver;
pub use notice::Notice;
pub use offload::{Marks, Offload, OffloadError, Segments, complete};
pub use options::{Attach, Method, Options};
pub use port::Port;
pub use port_sender::PortSender;
pub use receiver::{Lost, Receiver, Wake, interface_number, open, required_queues};
pub use send::{LiveSender, Pace, SendError, SendOptions, Sender, Sent, TemplateError};
pub use state::State;
