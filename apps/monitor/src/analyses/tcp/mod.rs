//! TCP performance: sums of all connections, the slowest round trips, and the pairs with most loss.
//!
//! The flow table measures each connection; this analysis adds up its records. A row takes the same place in any order
//! of records, so the section is exact while there is room; records without room in a list are counted.

pub(crate) mod responses;
pub(crate) mod rows;
mod servers;
mod table;

use std::cmp::Reverse;

use ringtap_enrich::Stage;
use ringtap_flow::{FlowKey, FlowRecord, IpVersion, RESPONSE_BYTES, Response, TCP_BYTES};
use ringtap_stage::Shard;
use ringtap_state::{Op, Row, Rows as StateRows, Schema};
use ringtap_terminal::numbers::{count, of};
use ringtap_terminal::page::Page;
use ringtap_terminal::table::Lean::{Left, Right};
use ringtap_terminal::table::{Cell, Table};
use ringtap_wire::HashKey;

use super::analysis::{About, Analysis, Context, Merge, Section, Signals};
use crate::totals::Totals;
use responses::{RESPONSES, ResponseTable};
use rows::{LossyPair, RoundTrips, Tcp, TcpTotals};
use servers::{Delay, SERVERS, Server, Servers};
use table::{Host, Rows, first, milliseconds};

/// Memory of a row with its share of an index, bytes; a flow has at most one of each kind.
const ROW_BYTES: u64 = 80;

/// One row: the sums of all connections.
static TOTALS: Schema = Schema::new("tcp_totals", 0, &[Op::Add; 9]);
/// Version and addresses, the lower first; the sums of a [`Loss`].
static PAIRS: Schema = Schema::new("tcp_pairs", 33, &[Op::Add; 3]);

/// Both addresses, the lower first.
type Pair = (Host, Host);

#[derive(Clone, Copy, Default)]
struct Loss {
    retransmissions: u64,
    out_of_order: u64,
    packets: u64,
}

impl Loss {
    fn add(&mut self, more: &Self) {
        self.retransmissions += more.retransmissions;
        self.out_of_order += more.out_of_order;
        self.packets += more.packets;
    }
}

/// The sums of one shard.
pub struct TcpTable {
    totals: TcpTotals,
    servers: Servers,
    pairs: Rows<Pair, Loss>,
    responses: ResponseTable,
    ignored: u64,
}

impl TcpTable {
    fn with_room(key: HashKey, capacity: usize) -> Self {
        Self {
            totals: TcpTotals::default(),
            servers: Servers::with_room(key, capacity),
            pairs: Rows::new(key, capacity),
            responses: ResponseTable::with_room(key, capacity),
            ignored: 0,
        }
    }

    fn take(&mut self, key: &FlowKey, record: &FlowRecord) {
        let Some(tcp) = &record.tcp else { return };
        let totals = TcpTotals::of(tcp);
        self.totals.add(&totals);
        if tcp.rtt_count[0] > 0 {
            let delay = Delay {
                rtt_ns: tcp.rtt_ns[0],
                samples: u64::from(tcp.rtt_count[0]),
                handshake_us: tcp.handshake_us[0].map_or(0, u64::from),
                handshakes: u64::from(tcp.handshake_us[0].is_some()),
                records: 1,
            };
            self.servers.add(&(key.version, key.dst), key.dst_port, delay);
        }
        if totals.retransmissions + totals.out_of_order > 0 {
            let ends = [(key.version, key.src), (key.version, key.dst)];
            let loss = Loss {
                retransmissions: totals.retransmissions,
                out_of_order: totals.out_of_order,
                packets: record.packets.iter().sum(),
            };
            let pair = (ends[0].min(ends[1]), ends[0].max(ends[1]));
            self.ignored += u64::from(!self.add_pair(pair, &loss));
        }
    }

    fn add_pair(&mut self, pair: Pair, loss: &Loss) -> bool {
        let hash = self.pairs.key.pair(&pair.0.1, &pair.1.1);
        self.pairs.row(pair, hash).map(|row| row.add(loss)).is_some()
    }

    fn merge(&mut self, other: Self) {
        self.totals.add(&other.totals);
        self.responses.merge(other.responses);
        self.ignored += other.ignored;
        self.servers.merge(other.servers);
        for (pair, loss) in other.pairs.rows.into_rows() {
            // A pair has one owner.
            self.ignored += u64::from(!self.add_pair(pair, &loss));
        }
    }

    fn report(self, top: usize) -> Tcp {
        let (servers, ignored) = self.servers.slowest(top);
        let pairs = first(self.pairs.rows.into_rows(), top, |(pair, loss)| {
            (Reverse(loss.retransmissions), Reverse(loss.out_of_order), *pair)
        });
        let server = |(((version, address), port), delay): (Server, Delay)| RoundTrips {
            server: version.address(&address),
            port,
            rtt_us: delay.mean_us(),
            rtt_samples: delay.samples,
            handshake_us: delay.handshake_us.checked_div(delay.handshakes),
            records: delay.records,
        };
        let pair = |((low, high), loss): (Pair, Loss)| LossyPair {
            addresses: [low, high].map(|(version, address)| version.address(&address)),
            retransmissions: loss.retransmissions,
            out_of_order: loss.out_of_order,
            packets: loss.packets,
        };
        Tcp {
            totals: self.totals,
            slowest_round_trips: servers.into_iter().map(server).collect(),
            lossy_pairs: pairs.into_iter().map(pair).collect(),
            records_ignored: self.ignored + ignored,
            responses_ignored: self.responses.ignored,
            slowest_responses: self.responses.report(top),
        }
    }
}

impl Analysis for TcpTable {
    /// False: the analysis doubles the memory of a flow.
    const IN_ALL: bool = false;
    const TAKES_RECORDS: bool = true;
    const FLOW_BYTES: u64 = TCP_BYTES + RESPONSE_BYTES + 2 * ROW_BYTES + responses::ROW_BYTES;
    const TABLES: &'static [&'static Schema] = &[&TOTALS, &SERVERS, &PAIRS, &RESPONSES];

    type Found = Box<Self>;
    type Merger = TcpMerger;

    fn new(context: &Context, shard: Shard) -> Self {
        Self::with_room(context.hash_key, context.capacity_of(shard))
    }

    #[inline]
    fn on_record(&mut self, record: &FlowRecord) {
        if record.tcp.is_some() {
            self.take(&record.key, record);
        }
    }

    #[inline]
    fn on_response(&mut self, response: &Response) {
        self.responses.take(response);
    }

    fn add_totals(&self, totals: &mut Totals) {
        totals.tcp.get_or_insert_default().add(&self.totals);
        totals.responses = Some(self.responses.totals);
    }

    fn save(&mut self, table: &'static Schema, rows: &mut StateRows) {
        if *table == TOTALS {
            rows.push(&[], &self.totals.numbers(), &[]);
        } else if *table == RESPONSES {
            self.responses.save(rows);
        } else if *table == SERVERS {
            self.servers.save(rows);
        } else {
            for (((version, low), (_, high)), loss) in self.pairs.rows.rows() {
                let Loss { retransmissions, out_of_order, packets } = *loss;
                let key: [&[u8]; 3] = [&[*version as u8], low, high];
                rows.push(&key, &[retransmissions, out_of_order, packets], &[]);
            }
        }
    }

    fn load(&mut self, table: &'static Schema, row: &Row<'_>) -> Option<()> {
        if *table == TOTALS {
            self.totals.add_numbers(row.numbers());
            return Some(());
        }
        if *table == RESPONSES {
            return self.responses.load(row);
        }
        if *table == SERVERS {
            return self.servers.load(row);
        }
        let (&[byte], rest) = row.key().split_first_chunk()?;
        let version = IpVersion::from_number(byte)?;
        let (low, rest) = rest.split_first_chunk()?;
        let high = rest.first_chunk()?;
        let [retransmissions, out_of_order, packets] = row.numbers();
        let loss = Loss { retransmissions, out_of_order, packets };
        let has_room = self.add_pair(((version, *low), (version, *high)), &loss);
        self.ignored += u64::from(!has_room);
        Some(())
    }

    fn end(self) -> Box<Self> {
        Box::new(self)
    }
}

/// The sums of all shards.
pub struct TcpMerger {
    all: TcpTable,
    top: usize,
}

impl Merge<TcpTable> for TcpMerger {
    type Section = Tcp;

    fn new(context: &Context) -> Self {
        let capacity = context.max_flows as usize;
        Self { all: TcpTable::with_room(context.hash_key, capacity), top: context.top }
    }

    fn merge(&mut self, found: Box<TcpTable>) {
        self.all.merge(*found);
    }

    fn end(self, _: Signals<'_>) -> Tcp {
        self.all.report(self.top)
    }
}

impl Section for Tcp {
    fn pass(&mut self, stage: &mut Stage) {
        responses::pass(&mut self.slowest_responses, stage);
        self.slowest_round_trips.iter_mut().for_each(|row| stage.replace(&mut row.server));
        self.slowest_round_trips.sort_by_key(|row| (Reverse(row.rtt_us), row.server, row.port));
        for row in &mut self.lossy_pairs {
            row.addresses.iter_mut().for_each(|address| stage.replace(address));
            row.addresses.sort_unstable();
        }
        self.lossy_pairs.sort_by_key(|row| {
            (Reverse(row.retransmissions), Reverse(row.out_of_order), row.addresses)
        });
    }

    fn show(&self, page: &mut Page, _: &About) {
        let totals = &self.totals;
        responses::show(&self.slowest_responses, page);
        if totals.records == 0 {
            return;
        }
        page.heading("TCP");
        let mean = |sum: u64, number: u64| sum.checked_div(number).map(milliseconds);
        let handshake = mean(totals.handshake_rtt_sum_us, totals.handshakes);
        let rtt = mean(totals.rtt_sum_us, totals.rtt_samples);
        let mut times = of(totals.handshakes, "handshake");
        if let Some(handshake) = handshake {
            times += &format!(", mean {handshake}");
        }
        times += &format!("; {}", of(totals.rtt_samples, "round-trip time"));
        if let Some(rtt) = rtt {
            times += &format!(", mean {rtt}");
        }
        page.line(&times);
        page.line(&format!(
            "{}, {} out of order, {}, {}",
            of(totals.retransmissions, "retransmission"),
            count(totals.out_of_order),
            of(totals.duplicate_acks, "duplicate ACK"),
            of(totals.zero_windows, "zero window"),
        ));
        let mut servers = Table::with_head(&[
            ("server", Left),
            ("mean round trip", Right),
            ("samples", Right),
            ("flows", Right),
        ]);
        for row in &self.slowest_round_trips {
            servers.row([
                format!("{} port {}", row.server, row.port).into(),
                Cell::about(row.rtt_us, milliseconds(row.rtt_us)),
                Cell::count(row.rtt_samples),
                Cell::count(row.records),
            ]);
        }
        page.section("Slowest TCP round trips", servers);
        let mut pairs = Table::with_head(&[
            ("pair", Left),
            ("sent again", Right),
            ("out of order", Right),
            ("packets", Right),
        ]);
        for row in &self.lossy_pairs {
            let [low, high] = row.addresses;
            pairs.row([
                format!("{low} ↔ {high}").into(),
                Cell::count(row.retransmissions),
                Cell::count(row.out_of_order),
                Cell::count(row.packets),
            ]);
        }
        page.section("TCP loss", pairs);
    }
}

#[cfg(test)]
mod tests {
    use ringtap_flow::TcpPerformance;

    use super::*;

    const NONE: TcpPerformance = TcpPerformance {
        handshake_us: [None; 2],
        rtt_ns: [0; 2],
        rtt_count: [0; 2],
        retransmissions: [0; 2],
        out_of_order: [0; 2],
        duplicate_acks: [0; 2],
        zero_windows: [0; 2],
        octets: [0; 2],
    };

    fn record(server: u8, tcp: TcpPerformance) -> FlowRecord {
        let [mut src, mut dst] = [[0; 16]; 2];
        (src[0], dst[0]) = (1, server);
        let version = IpVersion::V4;
        let key = FlowKey { version, src, dst, src_port: 1000, dst_port: 443, protocol: 6 };
        FlowRecord { packets: [3, 4], tcp: Some(tcp), ..FlowRecord::new(key) }
    }

    fn table(room: usize, records: &[FlowRecord]) -> TcpTable {
        let mut table = TcpTable::with_room(HashKey::from_seed(1), room);
        records.iter().for_each(|record| table.on_record(record));
        table
    }

    #[test]
    fn the_slowest_and_the_lossiest_come_first() {
        let timed = |us: u64, count| TcpPerformance {
            rtt_ns: [us * 1000, 0],
            rtt_count: [count, 0],
            handshake_us: [Some(7), None],
            ..NONE
        };
        let lossy =
            |sent, late| TcpPerformance { retransmissions: sent, out_of_order: late, ..NONE };
        let records = [
            record(2, timed(100, 2)),
            record(3, timed(300, 3)),
            record(2, timed(500, 1)),
            record(3, lossy([1, 0], [0, 2])),
            record(4, lossy([2, 2], [0, 0])),
            record(5, NONE),
        ];
        let mut all = table(8, &records[..3]);
        all.merge(table(8, &records[3..]));
        let report = all.report(10);
        let servers = &report.slowest_round_trips;
        let means: Vec<_> = servers.iter().map(|row| (row.rtt_us, row.records)).collect();
        assert_eq!(means, [(200, 2), (100, 1)]);
        assert_eq!(servers[0].handshake_us, Some(7));
        let pairs: Vec<_> = report.lossy_pairs.iter().map(|row| row.retransmissions).collect();
        assert_eq!((pairs, report.records_ignored), (vec![4, 1], 0));
        assert_eq!((report.totals.records, report.totals.rtt_samples), (6, 6));
        assert_eq!(report.totals.retransmissions + report.totals.out_of_order, 7);
        // There is room for one server and one pair: the others' records are counted.
        let mut few = table(1, &records);
        assert_eq!(few.ignored, 1, "of the pairs");
        assert_eq!(table(1, &records).report(10).records_ignored, 3);
        few.merge(table(1, &records[1..2]));
        let report = few.report(10);
        let [server] = &report.slowest_round_trips[..] else { panic!("{report:?}") };
        assert_eq!((report.lossy_pairs.len(), server.records + report.records_ignored), (1, 4 + 1));
        assert_eq!(report.records_ignored, 3);
    }
}
