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

#[cfg(feature = "fuzz")]
mod fuzz;
mod header;
mod inputs;
mod live;
mod parts;
mod restore;
mod saver;
mod tables;

#[cfg(feature = "fuzz")]
pub use fuzz::fuzz;
pub use header::{Header, MOST_PROBE, MergeError, Run, Settings, Span, is_probe};
pub use inputs::merge_states;
pub use parts::{Earlier, OnPart, StatePart};
pub use restore::{Choices, Counts, Merged, report};
pub use ringtap_state::{Error, MAGIC, Reader};

use ringtap_state::{Rows, Schema};

use crate::Analyses;
use crate::analyses::Parts;

pub(crate) use self::header::saved;
pub(crate) use self::inputs::write_state;
pub(crate) use self::parts::{Collector, PACKETS_DROPPED, RunEnd};
pub(crate) use self::saver::{Metered, Saver, WorkerRows, WorkerState, part_bytes};
pub(crate) use self::tables::{CONVERSATIONS_LOST, INTERVALS, PROTOCOLS, STATE_FLOW_BYTES};

/// The identity of a run whose state is saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// A number that no other run has: random.
    pub run: u64,
    /// The name of the machine or link.
    pub probe: String,
    /// Whether each interval has a state of its own.
    pub in_parts: bool,
}

/// The parts of a run's state.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SavedParts {
    /// An image of each worker and of the merger, or why there is none.
    pub(crate) images: Vec<Result<Vec<u8>, String>>,
    /// The number of parts before.
    pub(crate) part: u64,
    /// The times at the end of the part before and at the end, nanoseconds.
    pub(crate) from_ns: u64,
    pub(crate) until_ns: u64,
    /// Conversations without room.
    pub(crate) conversations_lost: u64,
}

impl SavedParts {
    /// The number of the last part.
    pub fn part(&self) -> u64 {
        self.part
    }

    /// When it began and ended, in packet time, nanoseconds since 1970.
    pub fn times_ns(&self) -> [u64; 2] {
        [self.from_ns, self.until_ns]
    }
}

/// The tables of a state with these analyses, in order.
pub(crate) fn tables_of(on: Analyses) -> Vec<&'static Schema> {
    let mut all = tables::FIRST.to_vec();
    all.extend(Parts::tables(on));
    all.push(&live::LIVE);
    all
}

/// An image with this header and these tables; `fill` adds the rows of each.
pub(crate) fn image(
    header: &[u8],
    tables: &[&'static Schema],
    mut fill: impl FnMut(&'static Schema, &mut Rows),
) -> Result<Vec<u8>, Error> {
    let mut writer = ringtap_state::Writer::new(Vec::new(), header, tables.iter().copied())?;
    for table in tables {
        let mut rows = Rows::new(table);
        fill(table, &mut rows);
        rows.write(&mut writer)?;
        writer.end_table()?;
    }
    writer.finish()
}
