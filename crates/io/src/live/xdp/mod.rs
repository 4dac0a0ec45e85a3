//! Frames by AF_XDP: a program at the driver gives each queue's frames to a socket.
//!
//! ```text
//!  queue 0 ─▶ program: ask the map for queue 0 ─▶ socket 0: buffers ─▶ XdpReceiver
//!  queue 1 ─▶ program: ask the map for queue 1 ─▶ socket 1: buffers ─▶ XdpReceiver
//!                      no socket there: on to the host's network stack
//! ```
//!
//! Only received frames come this way, and the host does not get them. A VLAN tag that the network
//! card takes out is lost to us (`ethtool -K IF rxvlan off` leaves it in).
//!
//! Invariants: somebody else's program is never replaced. The kernel takes ours out when the last
//! receiver is dropped, or the process is no more.

mod program;
mod receiver;
mod setup;

pub(crate) use receiver::XdpReceiver;
pub(crate) use setup::open;
