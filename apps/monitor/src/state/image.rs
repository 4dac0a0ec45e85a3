//! An image of sorted tables: which tables it has, and its memory.

use ringtap_state::{Error, Rows, Schema};

use super::early::EARLY_BYTES;
use super::live::{LIVE, MEASURED, MEASURED_ONE_PATH, ONE_PATH, UNTIMED};
use super::tables::FIRST;
use crate::analyses::custom::CustomSet;
use crate::analyses::tcp::responses::RESPONSES;
use crate::analyses::{Analyses, Parts};

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

/// The analyses that a state holds; activity is measured by sketches, watched entries are found during a run, and not all
/// analyses of other crates have tables.
pub(crate) fn saved(on: Analyses) -> Analyses {
    let custom = on.custom.only(|own| !own.tables().is_empty());
    Analyses { activity: false, watch: false, changes: false, custom, ..on }
}

/// What a state has, and older ones lack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Content {
    /// Tables of slices alone.
    pub(crate) by_time: bool,
    /// Response times.
    pub(crate) timed: bool,
    /// Reverse paths of live flows.
    pub(crate) reverse_paths: bool,
}

impl Content {
    /// What this program writes.
    pub(crate) const NOW: Self = Self { by_time: true, timed: true, reverse_paths: true };
}

/// The tables of a state with these analyses, in order.
pub(crate) fn tables_of(on: Analyses, content: Content) -> Vec<&'static Schema> {
    let mut all = FIRST.to_vec();
    let of_analyses = Parts::tables(on, content.by_time).into_iter();
    all.extend(of_analyses.filter(|table| content.timed || **table != RESPONSES));
    all.push(match (content.timed, content.reverse_paths) {
        (_, true) if on.statistics => &MEASURED,
        (_, false) if on.statistics => &MEASURED_ONE_PATH,
        (true, true) => &LIVE,
        (true, false) => &ONE_PATH,
        (false, _) => &UNTIMED,
    });
    all
}

/// The tables that any state may have.
pub(super) fn known_tables() -> Vec<&'static Schema> {
    let on = Analyses { passive_dns: true, statistics: true, tcp: true, ..Analyses::ALL };
    let mut all = tables_of(on, Content::NOW);
    all.extend([&LIVE, &ONE_PATH, &MEASURED_ONE_PATH, &UNTIMED]);
    all.extend(CustomSet::tables());
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

/// Rows of parts in memory at a time: of the part that is written, and of one that waits for it; of each live flow.
const PART_FLOW_BYTES: u64 = 2 * 600;

/// Memory of parts, in bytes: for a live flow, and in each worker.
pub(crate) fn part_bytes(on: Analyses) -> [u64; 2] {
    [saved(on).flow_bytes() + PART_FLOW_BYTES, saved(on).worker_bytes() + EARLY_BYTES as u64]
}
