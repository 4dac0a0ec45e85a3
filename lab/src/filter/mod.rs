//! The published packet filter: it decides which sources may send to which destinations. Control
//! packets in the stream change its permissions.
//!
//! ```text
//! control ─┐                ┌─▶ worker 0 ─┐
//!          ├─▶ dispatcher ══╪═▶ worker 1 ═╪═▶ verdicts, histogram
//! data ────┘                └─▶ worker 2 ─┘
//! ```
//!
//! A control packet takes effect exactly at its place in the stream: for every packet after it and
//! none before it, on all workers. There are two designs. The paper's ([`paper`]; M. B. Smith, *A
//! Prototype of an Efficient Multithreaded Packet Filter*, Brown University) is a shared table with
//! striped locks and caches. Ours ([`sharded`]) shares no mutable state. Tests compare every
//! verdict of both with those of the serial [`oracle`], on the published [`traffic`]. [`mod@bench`]
//! measures them.

mod accepting;
pub mod bench;
pub mod history;
pub mod oracle;
mod outcome;
mod packet;
pub mod paper;
mod permissions;
mod settings;
pub mod sharded;
pub mod traffic;
mod window;
mod work;

pub use accepting::Accepting;
pub use outcome::{Outcome, OutcomeMerger, Partial};
pub use packet::{Address, Control, Data, Packet};
pub use permissions::Permissions;
pub use settings::{Distribution, Settings};
pub use window::{Dispatch, Stamp};
pub use work::{FINGERPRINTS, Job, UnknownWork, Work};
