//! Frames by AF_PACKET: a ring of blocks that the kernel fills, a socket for each queue.
//!
//! ```text
//!                  ┌─ fanout: hash of the address pair ─▶ ring 0 ─▶ PacketReceiver
//!  interface ─copy─┤                                   └▶ ring 1 ─▶ PacketReceiver
//!                  └▶ the host's network stack
//! ```
//!
//! What is seen is what the kernel handles: segments that it has joined (`gro`) or not split yet
//! (`tso`) come as one large frame. Who must count packets as they were on the wire turns both off.
//! Frames that somebody sends past the queueing discipline are not seen on the sending interface.
//!
//! Invariants: frames are lent where the kernel put them, with the VLAN tag that it took out put
//! back. All frames between two addresses come to the same queue.

mod fanout;
mod promiscuous;
mod receiver;
mod setup;
mod vlan;

pub(crate) use promiscuous::Promiscuous;
pub(crate) use receiver::PacketReceiver;
pub(crate) use setup::open;
