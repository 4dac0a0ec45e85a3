//! Receiving with AF_PACKET: a ring of blocks that the kernel fills, and a socket for each queue.
//!
//! ```text
//!                  ┌─ fanout: hash of the address pair ─▶ ring 0 ─▶ PacketReceiver
//!  interface ─copy─┤                                   └▶ ring 1 ─▶ PacketReceiver
//!                  └▶ the host's network stack
//! ```
//!
//! Frames arrive as the kernel processes them: segments that it has joined (`gro`) or not split yet
//! (`tso`) arrive as one large frame. To count packets as they are on the wire, turn both off.
//! Frames that a program sends past the queueing discipline are not received on the sending
//! interface.
//!
//! Invariants: frames are borrowed in place, where the kernel put them, with the removed VLAN tag
//! restored. All frames between two addresses go to the same queue.

mod fanout;
mod promiscuous;
mod receiver;
mod setup;
mod vlan;

pub(crate) use promiscuous::Promiscuous;
pub(crate) use receiver::PacketReceiver;
pub(crate) use setup::open;
