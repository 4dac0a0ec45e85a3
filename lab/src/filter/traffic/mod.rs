//! The published benchmark traffic, bit for bit: eight mixes of control and data packets.
//!
//! The generator comes from the firewall project of MIT's course 6.816; the paper's prototype used
//! it. All random generators have fixed seeds, so a mix is always the same sequence of packets. The
//! tests compare it with the output of the Java original.
//!
//! ```text
//! trains:    2ᵏ sequences of packets at a time, each between two addresses; each data packet is
//!            the next one of a random train
//! addresses: a counter that rises for sources and one that falls for destinations, each plus a
//!            random offset, hashed
//! control:   after a random number of data packets; its address is drawn like a source
//! ```
//!
//! Invariant: a mix yields the same packets on every machine (results of logarithms are rounded up
//! to integers, so a difference in the last bit affects about one draw in 10¹²).

mod generator;
mod mix;
mod random;

pub use generator::Generator;
pub use mix::Mix;
