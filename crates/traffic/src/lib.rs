//! Deterministic traffic whose truth is known: a seed and a [`Profile`] give Ethernet frames
//! with timestamps, and at any moment the [`Truth`] about the frames given so far.
//!
//! ```text
//! Profile ─▶ sizes (Zipf) ─▶ wheel ─▶ who sends next ─▶ script ─▶ frame ─▶ GeneratedFrame
//!                                     flow or actor       │
//!                                                         └─▶ counters ─▶ Truth
//! ```
//!
//! With [`Generator::meter`] every packet is also counted on its flow, by definitions and from its
//! maker's knowledge, and [`Generator::records`] are the flow records that a meter must find.
//!
//! *Flows* are the background: conversations whose sizes follow a Zipf law. *Actors* are scanners
//! and flooders that play a fixed script. The wheel lets them all take turns.
//!
//! A [`Stamp`] in a frame says which it is and when it was sent; [`Arrivals`] counts what became of
//! stamped frames.
//!
//! Invariants: no clock and no I/O; the same profile and seed give the same bytes on every
//! machine; memory grows with flows and actors, never with packets, and is taken at the start.
//!
//! ```
//! use ringtap_traffic::{Generator, Profile, ScanSpec};
//!
//! let scan = ScanSpec { ports: 21, ..ScanSpec::default() };
//! let profile = Profile { packets: 5_000, flows: 100, scans: vec![scan], ..Profile::default() };
//! let mut generator = Generator::new(&profile, 1)?;
//! let mut octets = 0;
//! while let Some(frame) = generator.next() {
//!     octets += u64::from(frame.original_len);
//! }
//! let truth = generator.truth();
//! assert_eq!((truth.packets, truth.octets.wire), (5_000, octets));
//! assert_eq!(truth.scans(20).vertical[0].ports, 21);
//! assert!(truth.scans(21).vertical.is_empty());
//! # Ok::<(), ringtap_traffic::ProfileError>(())
//! ```
#![forbid(unsafe_code)]

mod actor;
mod address;
mod arrivals;
mod flow;
mod frame;
mod generator;
mod keyed;
mod named;
mod popularity;
mod profile;
mod records;
mod segment;
mod sizes;
mod stamp;
mod truth;
mod wheel;

pub use arrivals::{ArrivalCounts, Arrivals};
pub use generator::{GeneratedFrame, Generator};
pub use popularity::{Draw, Popularity, UnknownPopularity};
pub use profile::{FloodSpec, Profile, ProfileError, ScanSpec, Seen, Size};
pub use records::{Began, EndReasons, Ended, FlowRules, RecordSums, RecordTruth};
pub use ringtap_base::Latency;
pub use stamp::{Reading, Stamp};
pub use truth::{
    Conversations, HorizontalScan, Octets, Protocols, Scans, Talker, Talkers, Truth, VerticalScan,
};
