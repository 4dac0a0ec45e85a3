//! Deterministic traffic with known results: a seed and a [`Profile`] give Ethernet frames with timestamps, and at any
//! time the [`Truth`] about the frames returned so far.
//!
//! ```text
//! Profile ─▶ sizes (Zipf) ─▶ wheel ─▶ next sender ─▶ script ─▶ frame ─▶ GeneratedFrame
//!                                     flow or actor    │
//!                                                      └─▶ counters ─▶ Truth
//! ```
//!
//! With [`Generator::meter`] every packet is also counted in its flow, from the generator's own state, and
//! [`Generator::records`] are the flow records that a meter must produce.
//!
//! *Exchanges* are flows with real messages of TLS, QUIC, HTTP, SSH and DNS, whose packets have times of their own, so that
//! round trips are known. Frames of both kinds are merged by time.
//!
//! *Flows* are the background: conversations whose sizes follow a Zipf law. *Actors* are scanners and flooders that
//! send a fixed script. A timing wheel schedules both.
//!
//! A [`Stamp`] in a frame contains its number and sending time; [`Arrivals`] counts lost, duplicated and late stamped
//! frames.
//!
//! Invariants: no clock and no I/O; the same profile and seed give the same bytes on every machine; memory depends on
//! the number of flows, actors and exchanges, not of packets, and is allocated at the start.
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
mod exchanges;
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
pub use exchanges::{ApplicationTruth, ExchangeTruth, TcpTruth};
pub use generator::{GeneratedFrame, Generator};
pub use popularity::{Draw, Popularity, UnknownPopularity};
pub use profile::{Applications, FloodSpec, Profile, ProfileError, ScanSpec, Seen, Size};
pub use records::{Began, EndReasons, Ended, FlowRules, RecordSums, RecordTruth};
pub use ringtap_base::Latency;
pub use stamp::{Reading, Stamp};
pub use truth::{
    Conversations, HorizontalScan, Octets, Protocols, Scans, Talker, Talkers, Truth, VerticalScan,
};
