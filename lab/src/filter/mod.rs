//! The published packet filter: who may send to whom, changed by packets among the others.
//!
//! ```text
//! control ─┐                ┌─▶ worker 0 ─┐
//!          ├─▶ dispatcher ══╪═▶ worker 1 ═╪═▶ verdicts, histogram
//! data ────┘                └─▶ worker 2 ─┘
//! ```
//!
//! A control packet takes effect exactly at its place in the stream, for every packet before and
//! behind it, on all workers. Two designs do that: the paper's ([`paper`]; M. B. Smith, *A Prototype of
//! an Efficient Multithreaded Packet Filter*, Brown University), a shared table with striped locks and
//! caches, and ours ([`sharded`]), where nothing mutable is shared. Both are held to one serial
//! [`oracle`], verdict by verdict, on the published [`traffic`]. [`mod@bench`] measures them.

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
