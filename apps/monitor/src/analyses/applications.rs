//! Applications: flows, packets and octets by the label of each flow record; in some parts of a state, packets and octets
//! are those of slices.
//!
//! Labels come from the list of names, the protocols and the well-known ports, so there are at most as many rows as
//! those have labels. All sums are exact, and independent of the order of records.

use std::collections::BTreeMap;

use ringtap_enrich::Stage;
use ringtap_flow::{FlowRecord, Label};
use ringtap_stage::Shard;
use ringtap_state::{Op, Row, Rows as StateRows, Schema};
use ringtap_terminal::numbers::count;
use ringtap_terminal::page::Page;
use ringtap_terminal::table::Lean::{Left, Right};
use ringtap_terminal::table::{Cell, Table};
use serde::Serialize;

use super::analysis::{About, Analysis, Context, Merge, Scope, Section, Signals};
use crate::volume::is_zero;

/// Volumes by application, from flow records.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Applications {
    /// The largest by octets, then by name.
    pub rows: Vec<ApplicationRow>,
    /// Number of further applications.
    #[serde(skip_serializing_if = "is_zero")]
    pub further: u64,
    /// Flows without a label.
    pub unlabelled: ApplicationVolume,
}

/// An application.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ApplicationRow {
    /// Its label.
    pub application: String,
    /// Its volume, both directions together.
    #[serde(flatten)]
    pub volume: ApplicationVolume,
}

/// Flow records, packets and layer 3 octets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ApplicationVolume {
    /// Flow records.
    pub flows: u64,
    /// Packets.
    pub packets: u64,
    /// Layer 3 octets.
    pub octets: u64,
}

impl ApplicationVolume {
    pub(crate) fn add(&mut self, other: Self) {
        self.flows += other.flows;
        self.packets += other.packets;
        self.octets += other.octets;
    }
}

/// The label, or nothing for flows without one; flows, packets and octets.
static APPLICATIONS: Schema = Schema::new("applications", 0, &[Op::Add; 3]);

/// The same label; packets and octets of slices.
static SLICES: Schema = Schema::new("applications_by_time", 0, &[Op::Add; 2]);

/// Memory of a row in a map, bytes.
const ROW_BYTES: u64 = 100;
/// Labels that do not come from the list, at most.
const OTHER_LABELS: u64 = 256;

/// Most memory of the rows of a worker, or of the merger, for a list with this number of labels.
pub(crate) fn most_bytes(labels: usize) -> u64 {
    (labels as u64 + OTHER_LABELS) * ROW_BYTES
}

/// Labels that are found without a search, if they are met often.
const RECENT: usize = 256;

/// Sums by label. Flows without a label are counted as [`Label::EMPTY`], because those with and without one mix at
/// random.
struct Sums {
    rows: BTreeMap<Label, ApplicationVolume>,
    /// Sums that are not in `rows` yet, each at a place given by its label; without flows and packets there is none.
    recent: Box<[(Label, ApplicationVolume); RECENT]>,
}

impl Default for Sums {
    fn default() -> Self {
        Self {
            rows: BTreeMap::new(),
            recent: Box::new([(Label::EMPTY, ApplicationVolume::default()); RECENT]),
        }
    }
}

impl Sums {
    #[inline]
    fn add(&mut self, label: Label, more: ApplicationVolume) {
        let place = (label.head().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as usize;
        if self.recent[place].0 != label {
            self.make_room(place, label);
        }
        self.recent[place].1.add(more);
    }

    /// Moves the sums at a place to `rows`, and gives the place to another label.
    #[cold]
    fn make_room(&mut self, place: usize, label: Label) {
        let empty = (label, ApplicationVolume::default());
        let (label, volume) = std::mem::replace(&mut self.recent[place], empty);
        if volume.flows | volume.packets > 0 {
            self.rows.entry(label).or_default().add(volume);
        }
    }

    /// Moves all sums to `rows`.
    fn settle(&mut self) {
        (0..RECENT).for_each(|place| self.make_room(place, Label::EMPTY));
    }

    fn merge(&mut self, mut other: Self) {
        other.settle();
        for (label, more) in other.rows {
            self.add(label, more);
        }
    }

    fn report(mut self, top: usize) -> Applications {
        self.settle();
        let unlabelled = self.rows.remove(&Label::EMPTY).unwrap_or_default();
        let row = |(label, volume): (Label, _)| ApplicationRow {
            application: label.as_str().to_owned(),
            volume,
        };
        let mut rows: Vec<_> = self.rows.into_iter().map(row).collect();
        // Rows are in order of their labels, and the sort is stable.
        rows.sort_by_key(|row| std::cmp::Reverse(row.volume.octets));
        let further = rows.len().saturating_sub(top) as u64;
        rows.truncate(top);
        Applications { rows, further, unlabelled }
    }
}

/// The sums of one shard.
pub struct ApplicationTable {
    scope: Scope,
    flows: Sums,
    /// In a part of a state: the packets and octets of slices, by the label that a flow had then.
    slices: Option<Sums>,
}

impl ApplicationTable {
    fn of(scope: Scope) -> Self {
        let slices = (scope == Scope::Part).then(Sums::default);
        Self { scope, flows: Sums::default(), slices }
    }

    /// The label and the volume of a record, as one flow.
    #[inline(always)]
    fn row_of(record: &FlowRecord) -> (Label, ApplicationVolume) {
        let label = record.application.map_or(Label::EMPTY, |application| application.label);
        let volume = ApplicationVolume {
            flows: 1,
            packets: record.packets.iter().sum(),
            octets: record.octets.iter().sum(),
        };
        (label, volume)
    }
}

/// Adds a label to [`SLICES`].
fn save_volume(label: Label, volume: ApplicationVolume, rows: &mut StateRows) {
    rows.push(&[], &[volume.packets, volume.octets], label.as_str().as_bytes());
}

impl Analysis for ApplicationTable {
    const TAKES_RECORDS: bool = true;
    const TAKES_SLICES: bool = true;
    const TABLES: &'static [&'static Schema] = &[&APPLICATIONS];
    const SLICE_TABLES: &'static [&'static Schema] = &[&SLICES];

    type Found = Self;
    type Merger = ApplicationMerger;

    fn new(context: &Context, _: Shard) -> Self {
        Self::of(context.scope)
    }

    #[inline]
    fn on_record(&mut self, record: &FlowRecord) {
        let (label, volume) = Self::row_of(record);
        let only_flows = ApplicationVolume { flows: 1, ..ApplicationVolume::default() };
        self.flows.add(label, if self.scope == Scope::SomeParts { only_flows } else { volume });
    }

    #[inline]
    fn on_slice(&mut self, slice: &FlowRecord) {
        let (label, volume) = Self::row_of(slice);
        if let Some(slices) = &mut self.slices {
            slices.add(label, ApplicationVolume { flows: 0, ..volume });
        }
    }

    fn save(&mut self, table: &'static Schema, rows: &mut StateRows) {
        if *table == SLICES {
            // The records of a run have the packets of all of its slices but those of live flows.
            let all = self.slices.as_mut().unwrap_or(&mut self.flows);
            all.settle();
            all.rows.iter().for_each(|(label, volume)| save_volume(*label, *volume, rows));
            return;
        }
        self.flows.settle();
        for (label, volume) in &self.flows.rows {
            let ApplicationVolume { flows, packets, octets } = *volume;
            rows.push(&[], &[flows, packets, octets], label.as_str().as_bytes());
        }
    }

    fn save_slice(_: &'static Schema, slice: &FlowRecord, _: u64, rows: &mut StateRows) {
        let (label, volume) = Self::row_of(slice);
        save_volume(label, volume, rows);
    }

    fn load(&mut self, table: &'static Schema, row: &Row<'_>) -> Option<()> {
        let label = match row.tail {
            [] => Label::EMPTY,
            text => Label::new(text)?,
        };
        let by_time = self.scope == Scope::SomeParts;
        let volume = if *table == SLICES {
            let [packets, octets] = row.numbers();
            ApplicationVolume { flows: 0, packets, octets }
        } else {
            let [flows, packets, octets] = row.numbers();
            match by_time {
                true => ApplicationVolume { flows, ..ApplicationVolume::default() },
                false => ApplicationVolume { flows, packets, octets },
            }
        };
        if by_time || *table == APPLICATIONS {
            self.flows.add(label, volume);
        }
        Some(())
    }

    fn end(self) -> Self {
        self
    }
}

/// The sums of all shards.
pub struct ApplicationMerger {
    all: Sums,
    top: usize,
}

impl Merge<ApplicationTable> for ApplicationMerger {
    type Section = Applications;

    fn new(context: &Context) -> Self {
        Self { all: Sums::default(), top: context.top }
    }

    fn merge(&mut self, found: ApplicationTable) {
        self.all.merge(found.flows);
    }

    fn end(self, _: Signals<'_>) -> Applications {
        self.all.report(self.top)
    }
}

impl Section for Applications {
    /// Labels are those of a list, not of packets.
    fn pass(&mut self, _: &mut Stage) {}

    fn show(&self, page: &mut Page, _: &About) {
        let mut table = Table::with_head(&[
            ("application", Left),
            ("octets", Right),
            ("packets", Right),
            ("flows", Right),
        ]);
        let unlabelled = Some(("(without a label)", self.unlabelled));
        let rows = self.rows.iter().map(|row| (row.application.as_str(), row.volume));
        for (name, volume) in
            rows.chain(unlabelled.filter(|(_, volume)| volume.flows | volume.packets > 0))
        {
            table.row([
                name.into(),
                Cell::bytes(volume.octets),
                Cell::count(volume.packets),
                Cell::count(volume.flows),
            ]);
        }
        page.section("Applications", table);
        if self.further > 0 {
            page.line(&format!("({} further)", count(self.further)));
        }
    }
}

#[cfg(test)]
mod tests {
    use ringtap_flow::{Application, ApplicationReason, FlowKey, IpVersion};

    use super::*;

    fn record(label: &str, packets: [u64; 2], octets: [u64; 2]) -> FlowRecord {
        let [src, dst] = [[1; 16], [2; 16]];
        let version = IpVersion::V6;
        let key = FlowKey { version, src, dst, src_port: 1, dst_port: 2, protocol: 6 };
        let application = Label::new(label.as_bytes())
            .map(|label| Application { label, reason: ApplicationReason::Name });
        FlowRecord { packets, octets, application, ..FlowRecord::new(key) }
    }

    #[test]
    fn rows_are_sorted_by_octets_and_name() {
        let records = [
            record("b", [1, 2], [10, 20]),
            record("a", [1, 0], [30, 0]),
            record("c", [1, 0], [20, 0]),
            record("c", [1, 1], [5, 6]),
            record("d", [1, 0], [1, 0]),
            record("", [7, 0], [8, 0]),
        ];
        let mut parts = [Scope::Run; 2].map(ApplicationTable::of);
        for (number, record) in records.iter().enumerate() {
            parts[number % 2].on_record(record);
        }
        let [mut one, other] = parts.map(|part| part.flows);
        one.merge(other);
        let report = one.report(3);
        let row = |application: &str, flows, packets, octets| ApplicationRow {
            application: application.into(),
            volume: ApplicationVolume { flows, packets, octets },
        };
        assert_eq!(report.rows, [row("c", 2, 3, 31), row("a", 1, 1, 30), row("b", 1, 3, 30)]);
        assert_eq!(report.further, 1);
        let unlabelled = ApplicationVolume { flows: 1, packets: 7, octets: 8 };
        assert_eq!(report.unlabelled, unlabelled);
    }
}
