//! The state of a run: all that a report is made of, in a form that can be merged.
//!
//! ```text
//! worker at the end, before flows are drained ─▶ tables of ended flows, and live flows ─┐
//! merger ─▶ volumes                                                                     ├─▶ state
//! outcome ─▶ where the packets went                                                     ┘     │
//!                                                         states of other runs ──▶ merge ◀────┘
//!                                                                                    └─▶ state, or report
//! ```
//!
//! A state is an image of sorted tables ([`ringtap_state`]) with a [`Header`]. Each analysis saves its own rows and
//! loads them again, so a merged report is made by the code that makes the report of a run. What a report cuts or
//! compares with a threshold is whole in a state. Live flows are stored as they were, and end when the report is made,
//! by the latest time of all states. A run may save a state for each interval (`parts.rs`).
//!
//! docs/NETWORK.md states what a merge equals, and when.

mod columns;
mod counts;
mod early;
#[cfg(feature = "fuzz")]
mod fuzz;
mod header;
mod image;
mod inputs;
mod live;
mod parts;
mod restore;
mod saved;
mod saver;
mod tables;

pub use columns::{Cell, Columns, Stored, read_columns, tables};
pub use counts::{Counts, Earlier};
#[cfg(feature = "fuzz")]
pub use fuzz::fuzz;
pub use header::{Header, MOST_PROBE, MergeError, Run, Settings, Span, is_probe};
pub use image::Identity;
pub use inputs::merge_states;
pub use parts::{OnPart, StatePart};
pub use restore::{Choices, Merged, report};
pub use ringtap_state::{Error, MAGIC, Reader};
pub use saved::SavedParts;

pub(crate) use self::early::EARLY_LOST;
pub(crate) use self::header::RunEnd;
pub(crate) use self::image::{Content, image, part_bytes, saved, tables_of};
pub(crate) use self::inputs::write_state;
pub(crate) use self::parts::{Collector, PACKETS_DROPPED};
pub(crate) use self::saver::{Metered, Saver, WorkerRows, WorkerState};
pub(crate) use self::tables::{CONVERSATIONS_LOST, STATE_FLOW_BYTES};
