//! Packet statistics: the flow table measures them, and flow records have them; here are their sums.

use ringtap_enrich::Stage;
use ringtap_flow::{FlowRecord, STATISTICS_BYTES, StatisticsCounts};
use ringtap_stage::Shard;
use ringtap_state::{Op, Row, Rows, Schema};
use ringtap_terminal::numbers::{count, of};
use ringtap_terminal::page::Page;
use serde::Serialize;

use super::analysis::{About, Analysis, Context, Merge, Section, Signals};

/// One row: the numbers of [`PacketStatistics`].
static TOTALS: Schema = Schema::new("statistics_totals", 0, &[Op::Add; 6]);

/// Sums of the statistics of packets in flow records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PacketStatistics {
    /// Flow records with statistics.
    pub records: u64,
    /// Packets in their lists of first packets.
    pub first_packets: u64,
    /// Bursts in their lists.
    pub bursts: u64,
    /// Idle times.
    pub idle_times: u64,
    /// Gaps between packets that were below zero, because packets were out of order or a clock was set back.
    pub negative_gaps: u64,
    /// Records that lack first packets, bursts or octets for lack of memory.
    pub records_cut: u64,
}

impl PacketStatistics {
    fn numbers(&self) -> [u64; 6] {
        let Self { records, first_packets, bursts, idle_times, negative_gaps, records_cut } = *self;
        [records, first_packets, bursts, idle_times, negative_gaps, records_cut]
    }

    fn of_numbers(numbers: [u64; 6]) -> Self {
        let [records, first_packets, bursts, idle_times, negative_gaps, records_cut] = numbers;
        Self { records, first_packets, bursts, idle_times, negative_gaps, records_cut }
    }

    fn add(&mut self, more: &Self) {
        let (own, more) = (self.numbers(), more.numbers());
        *self = Self::of_numbers(std::array::from_fn(|at| own[at].saturating_add(more[at])));
    }
}

/// The sums of one shard.
#[derive(Default)]
pub struct StatisticsTable(PacketStatistics);

impl Analysis for StatisticsTable {
    /// False: the analysis takes several times the memory of a flow.
    const IN_ALL: bool = false;
    const TAKES_RECORDS: bool = true;
    const FLOW_BYTES: u64 = STATISTICS_BYTES;
    const TABLES: &'static [&'static Schema] = &[&TOTALS];

    type Found = PacketStatistics;
    type Merger = Self;

    fn new(_: &Context, _: Shard) -> Self {
        Self::default()
    }

    #[inline]
    fn on_record(&mut self, record: &FlowRecord) {
        let Some(own) = record.statistics.as_deref() else { return };
        let StatisticsCounts { bursts, idle_times, negative_gaps } = own.counts();
        self.0.add(&PacketStatistics {
            records: 1,
            first_packets: own.first_packets().len() as u64,
            bursts,
            idle_times,
            negative_gaps,
            records_cut: own.is_cut().into(),
        });
    }

    fn save(&mut self, _: &'static Schema, rows: &mut Rows) {
        rows.push(&[], &self.0.numbers(), &[]);
    }

    fn load(&mut self, _: &'static Schema, row: &Row<'_>) -> Option<()> {
        self.0.add(&PacketStatistics::of_numbers(row.numbers()));
        Some(())
    }

    fn end(self) -> PacketStatistics {
        self.0
    }
}

impl Merge<StatisticsTable> for StatisticsTable {
    type Section = PacketStatistics;

    fn new(_: &Context) -> Self {
        Self::default()
    }

    fn merge(&mut self, found: PacketStatistics) {
        self.0.add(&found);
    }

    fn end(self, _: Signals<'_>) -> PacketStatistics {
        self.0
    }
}

impl Section for PacketStatistics {
    fn pass(&mut self, _: &mut Stage) {}

    fn show(&self, page: &mut Page, _: &About) {
        if self.records == 0 {
            return;
        }
        page.heading("Packet statistics");
        page.line(&format!(
            "{} with statistics: {}, {}, {}",
            of(self.records, "flow record"),
            of(self.first_packets, "first packet"),
            of(self.bursts, "burst"),
            of(self.idle_times, "idle time"),
        ));
        if self.negative_gaps > 0 {
            page.line(&format!(
                "{} gaps between packets were below zero and count as zero",
                count(self.negative_gaps)
            ));
        }
    }
}
