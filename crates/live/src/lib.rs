//! Live interfaces: frames received without copying them, and frames sent.
//!
//! ```text
//!              ┌ AF_PACKET: a copy, the host sees it too ┐
//!  interface ──┤                                         ├──▶ Receiver (one a queue) ──▶ burst: Frame, …
//!              └ AF_XDP: taken, the host sees nothing    ┘
//! ```
//!
//! [`open`] gives a [`Receiver`] for each queue. All frames between two addresses come by the same
//! one, both directions and all fragments of a datagram (AF_XDP: if the network card is set to share
//! out that way). What was lost is in its [`Counters`]. [`Notice`] has what there is to say besides.
//!
//! Invariants: every frame that came is handed out, waits, or is counted under a reason; `burst`
//! allocates nothing and copies no frame; no call but [`Receiver::wait`] sleeps; whatever happens to
//! the process, the kernel takes out of an interface what was put in. `unsafe` code is in the module
//! `sys` alone. It knows no applications.
#![deny(missing_docs)]

mod capability;
mod code;
mod counters;
mod error;
mod frame;
mod interface;
mod link;
mod notice;
mod options;
mod packet;
mod queue;
mod receiver;
mod send;
mod sys;
mod xdp;

pub use capability::Capability;
pub use counters::{Counters, Dropped};
pub use error::OpenError;
pub use frame::Frame;
pub use interface::State;
pub use notice::Notice;
pub use options::{Attach, Method, Options};
pub use receiver::{Description, Path, Receiver, Wake, open};
pub use send::{LiveSender, Pace, SendError, SendOptions, Sender, Sent, TemplateError};
