//! Flow records on their way to collectors: NetFlow v5, NetFlow v9 (RFC 3954) and IPFIX (RFC 7011, biflows by
//! RFC 5103), over UDP, TCP, TLS and into IPFIX files (RFC 5655).
//!
//! ```text
//!            Feed ──ring──▶ exporting thread: encoder ─▶ message ─▶ link ─▶ collector 0
//!  records ─▶  ├────ring──▶ exporting thread: encoder ─▶ message ─▶ link ─▶ collector 1
//!              └──────────▶ encoder ─▶ message ─▶ regular file
//! ```
//!
//! The path: a [`Collector`] is what a URL says. [`start`] gives each one a thread and a ring, but for regular files,
//! which never wait, and returns the [`Feed`] where records go in and the [`Exports`] that ends it all and tells, in a
//! [`Summary`] for each collector, what was sent and what was not, with the reason.
//!
//! Invariants: [`encode`] is pure: bytes out, no clock, no socket; its time is packet time. Every record offered is
//! either sent or counted under one [`Reason`]. Memory is bounded by the rings. No wait is longer than a collector's
//! patience ([`Feed`]) or, at the end, [`LINGER`].
#![forbid(unsafe_code)]

mod collector;
pub mod encode;
mod exporter;
mod exports;
mod feed;
mod link;
mod metered;
mod refresh;
mod sampling;
mod shared;
mod summary;

pub use collector::{Collector, Protocol, Transport, UnknownCollector};
pub use exports::{Exports, LINGER, StartError, start};
pub use feed::Feed;
pub use link::{Store, Tls};
pub use metered::{Meter, Metered};
pub use refresh::Refresh;
pub use sampling::Sampling;
pub use summary::{Reason, Sent, Summary, Tally};

/// What holds for all collectors of a run.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Observation domain (IPFIX), source identifier (NetFlow v9); its low 16 bits are the engine (NetFlow v5).
    pub observation_domain: u32,
    /// When templates are sent again over UDP.
    pub refresh: Refresh,
    /// With which certificates TLS is spoken.
    pub tls: Tls,
    /// Whether packets of different VLANs are of different flows.
    pub vlan_in_key: bool,
    /// Which packets are metered, if not all.
    pub sampling: Option<Sampling>,
    /// Whom to ask how far the metering has come.
    pub meter: Option<Meter>,
}
