//! The published benchmark traffic, bit for bit: eight mixes of control and data packets.
//!
//! The generator goes back to the firewall project of MIT's course 6.816 and was used by the
//! paper's prototype. Every number is drawn from generators that start alike, so a mix is one
//! sequence of packets for all times; the tests hold it to what the Java original prints.
//!
//! ```text
//! trains:   2ᵏ of them under way, each between two addresses; a data packet picks one at random
//! addresses: sources walk up, destinations walk down, scattered and hashed
//! control:  after every so many data packets, for the address a source would have had
//! ```
//!
//! Invariant: the same mix gives the same packets on every machine (logarithms are rounded up to
//! whole numbers, so a last bit matters once in some 10¹² draws).

mod generator;
mod mix;
mod random;

pub use generator::Generator;
pub use mix::Mix;
