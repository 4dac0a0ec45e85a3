//! Statistics of flows: lengths of packets and gaps between them, the first packets, bursts, active and idle times.
//!
//! Sums are integers, and mean and deviation follow from them. A packet's gap is the time since the packet before it in
//! the order of arrival; below zero it counts as zero, and is counted. So two pieces of a flow, one after the other, are
//! joined to exactly what the whole flow has: the time between the last packet of the earlier piece and the first one of
//! the later piece is one more gap.
//!
//! ```text
//! flows    | 3 first packets | …                  same positions as the flows (shelf.rs)
//! packets  | 5 packets | 5 packets | …            chains of the first packets behind these
//! sums     | what each packet changes | …         of flows with more than their first packets
//! rares    | what few packets change | …          of these with gaps of a second, a clock that stepped back, or large squares
//! bursts   | 3 bursts | …                         chains of bursts, of these with any
//! octets   | 60 octets | 60 octets | …            chains of the first octets of payload, if they are asked for
//! ```
//!
//! While a flow has no packets but its first ones, all else follows from them, and is computed once a reader of its record asks.
//!
//! Invariant: a state has a fixed size, lists are bounded, and both depend on the flow's packets in their order alone,
//! unless there was no room for a list ([`FlowStatistics::is_cut`]).

mod bursts;
mod chains;
mod first;
mod live;
mod moments;
mod octets;
mod slab;
mod start;
mod sums;
mod value;

pub use bursts::{BURST_GAP_NS, BURST_PACKETS, BURSTS_MOST, Burst, IDLE_NS};
pub(crate) use chains::Room;
pub use first::{FIRST_PACKETS_MOST, FirstPacket};
pub use moments::Moments;
pub use octets::OCTETS_MOST;
pub(crate) use slab::{Measure, Slab};
pub use slab::{OCTETS_BYTES, STATISTICS_BYTES};
pub use value::{FlowStatistics, StatisticsCounts};

#[cfg(test)]
mod tests;
