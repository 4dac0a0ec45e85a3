//! Applications: flows, packets and octets by the label of each flow record.
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

use super::analysis::{About, Analysis, Context, Merge, Section, Signals};
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

/// The sums of one shard. Flows without a label are counted as [`Label::EMPTY`], because those with and without one mix
/// at random.
pub struct ApplicationTable {
    rows: BTreeMap<Label, ApplicationVolume>,
    /// Sums that are not in `rows` yet, each at a place given by its label; without flows there is none.
    recent: Box<[(Label, ApplicationVolume); RECENT]>,
}

impl Default for ApplicationTable {
    fn default() -> Self {
        Self {
            rows: BTreeMap::new(),
            recent: Box::new([(Label::EMPTY, ApplicationVolume::default()); RECENT]),
        }
    }
}

impl ApplicationTable {
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
        if volume.flows > 0 {
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

impl Analysis for ApplicationTable {
    const TAKES_RECORDS: bool = true;
    const TABLES: &'static [&'static Schema] = &[&APPLICATIONS];

    type Found = Self;
    type Merger = ApplicationMerger;

    fn new(_: &Context, _: Shard) -> Self {
        Self::default()
    }

    #[inline]
    fn on_record(&mut self, record: &FlowRecord) {
        let label = record.application.map_or(Label::EMPTY, |application| application.label);
        self.add(
            label,
            ApplicationVolume {
                flows: 1,
                packets: record.packets.iter().sum(),
                octets: record.octets.iter().sum(),
            },
        );
    }

    fn save(&mut self, _: &'static Schema, rows: &mut StateRows) {
        self.settle();
        for (label, volume) in &self.rows {
            let ApplicationVolume { flows, packets, octets } = *volume;
            rows.push(&[], &[flows, packets, octets], label.as_str().as_bytes());
        }
    }

    fn load(&mut self, _: &'static Schema, row: &Row<'_>) -> Option<()> {
        let label = match row.tail {
            [] => Label::EMPTY,
            text => Label::new(text)?,
        };
        let [flows, packets, octets] = row.numbers();
        self.add(label, ApplicationVolume { flows, packets, octets });
        Some(())
    }

    fn end(self) -> Self {
        self
    }
}

/// The sums of all shards.
pub struct ApplicationMerger {
    all: ApplicationTable,
    top: usize,
}

impl Merge<ApplicationTable> for ApplicationMerger {
    type Section = Applications;

    fn new(context: &Context) -> Self {
        Self { all: ApplicationTable::default(), top: context.top }
    }

    fn merge(&mut self, found: ApplicationTable) {
        self.all.merge(found);
    }

    fn end(self, _: Signals<'_>) -> Applications {
        self.all.report(self.top)
    }
}

impl Section for Applications {
    /// Labels are those of a list, not of packets.
    fn pass(&mut self, _: &mut Stage) {}

    fn show(&self, page: &mut Page, _: &About) {
        let mut table = Table::named(&[
            ("application", Left),
            ("octets", Right),
            ("packets", Right),
            ("flows", Right),
        ]);
        let unlabelled = Some(("(without a label)", self.unlabelled));
        let rows = self.rows.iter().map(|row| (row.application.as_str(), row.volume));
        for (name, volume) in rows.chain(unlabelled.filter(|(_, volume)| volume.flows > 0)) {
            table.row([
                name.into(),
                Cell::bytes(volume.octets),
                Cell::count(volume.packets).with("packets"),
                Cell::of(volume.flows, "flow"),
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
        let mut parts = [ApplicationTable::default(), ApplicationTable::default()];
        for (number, record) in records.iter().enumerate() {
            parts[number % 2].on_record(record);
        }
        let [mut one, other] = parts;
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
