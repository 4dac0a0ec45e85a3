//! Sending frames on an interface.
//!
//! ```text
//!  Sender      the caller's frames ─▶ AF_PACKET, or AF_XDP on one queue ────────▶ interface
//!  LiveSender  one template ─▶ an XDP program makes copies in the kernel ───────▶ interface
//!  Pace        computes when the next frame is due
//! ```
//!
//! Invariant: frames reported as sent were accepted by the kernel. Frames that it refused or
//! dropped have counters of their own. No loss is silent.

mod error;
mod live;
mod options;
mod pace;
mod packet;
mod sender;
mod template;
mod xdp;
mod xdp_queue;

pub use error::SendError;
pub use live::LiveSender;
pub use options::{SendOptions, Sent};
pub use pace::Pace;
pub use sender::Sender;
pub use template::TemplateError;
pub(crate) use xdp::{XdpSender, open_socket};
pub(crate) use xdp_queue::XdpQueue;
