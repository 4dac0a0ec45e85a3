//! Live interfaces: frames received without copying them, and frames sent.
//!
//! ```text
//!              ┌ AF_PACKET: a copy, the host sees it too ┐
//!  interface ──┤                                         ├──▶ Receiver (one a queue) ──▶ burst: Frame, …
//!              ├ AF_XDP: taken, the host sees nothing    ┤
//!              └ DPDK (a device of its own): the same    ┘
//! ```
//!
//! [`open`] gives a [`Receiver`] for each queue. All frames between two addresses come by the same
//! one, both directions and all fragments of a datagram (AF_XDP: if the network card is set to share
//! out that way). A [`MergedReceiver`] reads several interfaces as one. What was lost is in its [`Counters`]. What there is to say besides is a [`Notice`].
//! [`Sender`] and [`LiveSender`] send.
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
//! Invariants: every frame that came is handed out, waits, or is counted under a reason. `burst` never
//! waits, allocates nothing and copies no frame. Whatever happens to the process, the kernel takes
//! out of an interface what was put in. (By DPDK: waits, or is counted as far as its driver counts, and frames that came
//! in pieces are copied.) `unsafe` code is in the module `sys` alone. The crate knows
//! no applications.
#![deny(missing_docs, unsafe_code)]

mod capability;
mod code;
mod counters;
mod description;
#[cfg_attr(not(feature = "dpdk"), path = "no_dpdk.rs")]
mod dpdk;
mod drain;
mod error;
mod frame;
mod interface;
mod link;
mod merged;
mod notice;
mod offload;
mod options;
mod packet;
mod queue;
mod receiver;
mod send;
#[allow(unsafe_code, reason = "the module is there for it")]
mod sys;
mod xdp;

pub use capability::Capability;
pub use counters::{Counters, Dropped};
pub use description::{Description, Path};
pub use drain::Drain;
pub use error::OpenError;
pub use frame::Frame;
pub use interface::State;
pub use merged::MergedReceiver;
pub use notice::Notice;
pub use offload::{Offload, OffloadError, Segments, complete};
pub use options::{Attach, Method, Options};
pub use receiver::{Lost, Receiver, Wake, interface_index, open, required_queues};
pub use send::{LiveSender, Pace, SendError, SendOptions, Sender, Sent, TemplateError};
