//! Receiving with AF_XDP: an XDP program at the driver redirects each queue's frames to a socket.
//!
//! ```text
//!  queue 0 ─▶ program: look up queue 0 in the map ─▶ socket 0: buffers ─▶ XdpReceiver
//!  queue 1 ─▶ program: look up queue 1 in the map ─▶ socket 1: buffers ─▶ XdpReceiver
//!                      no socket in the map: frame goes to the host's network stack
//! ```
//!
//! This path has received frames only, and the host does not get them. A VLAN tag that the network
//! card removes is lost (`ethtool -K IF rxvlan off` keeps it in the frame).
//!
//! Invariants: another XDP program is never replaced. The kernel detaches this program when the
//! last receiver is dropped or the process exits.

mod program;
mod receiver;
mod setup;

pub(crate) use receiver::XdpReceiver;
pub(crate) use setup::{open, open_port};
