//! Frames sent by an interface.
//!
//! ```text
//!  Sender      frames of ours ─▶ AF_PACKET, or AF_XDP on a queue of our choice ─▶ interface
//!  LiveSender  one template ─▶ an XDP program makes copies in the kernel ───────▶ interface
//!  Pace        says when the next one is due
//! ```
//!
//! Invariant: what is said to be sent was taken by the kernel; what it refused or dropped is counted
//! as that. Nothing is lost in silence.

mod error;
mod live;
mod pace;
mod packet;
mod sender;
mod template;
mod xdp;

pub use error::SendError;
pub use live::LiveSender;
pub use pace::Pace;
pub use sender::{SendOptions, Sender, Sent};
pub use template::TemplateError;
