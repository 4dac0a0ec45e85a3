//! TCP performance: sums of all connections, the slowest servers, and the pairs with most loss.
//!
//! The flow table measures each connection; this analysis adds up its records. A row takes the same place in any order
//! of records, so the section is exact while there is room; records without room are counted.

mod rows;

use std::cmp::Reverse;
use std::net::IpAddr;

use ringtap_enrich::Stage;
use ringtap_flow::{FlowRecord, IpVersion, Row, TCP_BYTES, TcpPerformance};
use ringtap_stage::Shard;
use ringtap_terminal::numbers::{count, of};
use ringtap_terminal::page::Page;
use ringtap_terminal::table::Lean::{Left, Right};
use ringtap_terminal::table::Table;
use ringtap_wire::HashKey;

use rows::Rows;

use super::{About, Analysis, Merge, Section};
use crate::report::{LossyPair, SlowServer, Tcp, TcpTotals};
use crate::{Alert, Setup};

/// Memory of a row with its share of an index, bytes; a flow has at most one of each kind.
const ROW_BYTES: u64 = 80;

/// An address of either version, as in a flow key.
type Host = (IpVersion, [u8; 16]);

/// The connections to the port of a responder.
#[derive(Clone, Copy)]
struct Server {
    host: Host,
    port: u16,
    rtt_ns: u64,
    samples: u64,
    handshake_us: u64,
    handshakes: u64,
    records: u64,
}

impl Server {
    fn mean_us(&self) -> u64 {
        self.rtt_ns / 1000 / self.samples.max(1)
    }
}

impl Row for Server {
    #[inline(always)]
    fn place(&self, key: &HashKey) -> u32 {
        let hash = key.address(&self.host.1) >> 32;
        hash as u32 ^ u32::from(self.port).wrapping_mul(0x9e37_79b1)
    }

    #[inline(always)]
    fn has_key_of(&self, other: &Self) -> bool {
        (self.host, self.port) == (other.host, other.port)
    }

    #[inline(always)]
    fn add(&mut self, later: &Self) {
        self.rtt_ns = self.rtt_ns.saturating_add(later.rtt_ns);
        self.samples += later.samples;
        self.handshake_us += later.handshake_us;
        self.handshakes += later.handshakes;
        self.records += later.records;
    }
}

/// The connections between two addresses, the lower first.
#[derive(Clone, Copy)]
struct Pair {
    ends: (Host, Host),
    retransmissions: u64,
    out_of_order: u64,
    packets: u64,
}

impl Row for Pair {
    #[inline(always)]
    fn place(&self, key: &HashKey) -> u32 {
        key.pair(&self.ends.0.1, &self.ends.1.1)
    }

    #[inline(always)]
    fn has_key_of(&self, other: &Self) -> bool {
        self.ends == other.ends
    }

    #[inline(always)]
    fn add(&mut self, later: &Self) {
        self.retransmissions += later.retransmissions;
        self.out_of_order += later.out_of_order;
        self.packets += later.packets;
    }
}

/// The sums of one shard.
pub struct TcpTable {
    totals: TcpTotals,
    servers: Rows<Server>,
    pairs: Rows<Pair>,
    ignored: u64,
}

impl TcpTable {
    fn with_room(key: HashKey, capacity: usize) -> Self {
        Self {
            totals: TcpTotals::default(),
            servers: Rows::new(key, capacity),
            pairs: Rows::new(key, capacity),
            ignored: 0,
        }
    }

    /// Sums of the records so far.
    pub(crate) fn totals(&self) -> TcpTotals {
        self.totals
    }

    fn take(&mut self, record: &FlowRecord, tcp: &TcpPerformance) {
        let key = &record.key;
        let totals = TcpTotals::of(tcp);
        self.totals.add(&totals);
        let mut has_room = true;
        if tcp.rtt_count[0] > 0 {
            has_room &= self.servers.push(Server {
                host: (key.version, key.dst),
                port: key.dst_port,
                rtt_ns: tcp.rtt_ns[0],
                samples: u64::from(tcp.rtt_count[0]),
                handshake_us: tcp.handshake_us[0].map_or(0, u64::from),
                handshakes: u64::from(tcp.handshake_us[0].is_some()),
                records: 1,
            });
        }
        if totals.retransmissions + totals.out_of_order > 0 {
            let ends = [(key.version, key.src), (key.version, key.dst)];
            has_room &= self.pairs.push(Pair {
                ends: (ends[0].min(ends[1]), ends[0].max(ends[1])),
                retransmissions: totals.retransmissions,
                out_of_order: totals.out_of_order,
                packets: record.packets.iter().sum(),
            });
        }
        self.ignored += u64::from(!has_room);
    }

    fn merge(&mut self, other: Self) {
        self.totals.add(&other.totals);
        self.ignored += other.ignored;
        let Self { servers, pairs, ignored, .. } = self;
        servers.merge(other.servers, |server| *ignored += server.records);
        // A pair has one owner.
        pairs.merge(other.pairs, |_| *ignored += 1);
    }

    fn report(self, top: usize) -> Tcp {
        let servers = self
            .servers
            .first(top, |server| (Reverse(server.mean_us()), (server.host, server.port)))
            .into_iter()
            .map(|server| SlowServer {
                server: ip(server.host),
                port: server.port,
                rtt_us: server.mean_us(),
                rtt_samples: server.samples,
                handshake_us: server.handshake_us.checked_div(server.handshakes),
                records: server.records,
            });
        let pairs = self
            .pairs
            .first(top, |pair| {
                (Reverse(pair.retransmissions), Reverse(pair.out_of_order), pair.ends)
            })
            .into_iter()
            .map(|pair| LossyPair {
                addresses: [ip(pair.ends.0), ip(pair.ends.1)],
                retransmissions: pair.retransmissions,
                out_of_order: pair.out_of_order,
                packets: pair.packets,
            });
        Tcp {
            totals: self.totals,
            slowest_servers: servers.collect(),
            lossy_pairs: pairs.collect(),
            records_ignored: self.ignored,
        }
    }
}

fn ip((version, address): Host) -> IpAddr {
    match (version, address) {
        (IpVersion::V4, [a, b, c, d, ..]) => [a, b, c, d].into(),
        (IpVersion::V6, address) => address.into(),
    }
}

impl Analysis for TcpTable {
    /// It doubles the memory of a flow.
    const IN_ALL: bool = false;
    const TAKES_RECORDS: bool = true;
    const FLOW_BYTES: u64 = TCP_BYTES + 2 * ROW_BYTES;

    type Found = Box<Self>;
    type Merger = TcpMerger;

    fn new(setup: &Setup, shard: Shard) -> Self {
        Self::with_room(setup.hash_key, setup.capacity_of(shard))
    }

    #[inline]
    fn on_record(&mut self, record: &FlowRecord) {
        if let Some(tcp) = &record.tcp {
            self.take(record, tcp);
        }
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

    fn new(setup: &Setup) -> Self {
        let capacity = setup.options.max_flows() as usize;
        Self { all: TcpTable::with_room(setup.hash_key, capacity), top: setup.options.top }
    }

    fn merge(&mut self, found: Box<TcpTable>) {
        self.all.merge(*found);
    }

    fn end(self, _: &mut dyn FnMut(&Alert)) -> Tcp {
        self.all.report(self.top)
    }
}

/// Microseconds as milliseconds with three digits.
fn milliseconds(us: u64) -> String {
    format!("{}.{:03} ms", us / 1000, us % 1000)
}

impl Section for Tcp {
    fn pass(&mut self, stage: &mut Stage) {
        self.slowest_servers.iter_mut().for_each(|row| stage.replace(&mut row.server));
        self.slowest_servers.sort_by_key(|row| (Reverse(row.rtt_us), row.server, row.port));
        for row in &mut self.lossy_pairs {
            row.addresses.iter_mut().for_each(|address| stage.replace(address));
            row.addresses.sort_unstable();
        }
        self.lossy_pairs.sort_by_key(|row| {
            (Reverse(row.retransmissions), Reverse(row.out_of_order), row.addresses)
        });
    }

    fn losses(&self) -> Vec<(&'static str, u64)> {
        vec![("TCP records without room in the lists", self.records_ignored)]
    }

    fn warnings(&self) -> Vec<String> {
        let count = self.records_ignored;
        let warning = format!(
            "{count} TCP records had no room in the lists of servers and pairs: raise --memory or --max-flows"
        );
        (count > 0).then_some(warning).into_iter().collect()
    }

    fn show(&self, page: &mut Page, _: &About<'_>) {
        let totals = &self.totals;
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
        let mut servers = Table::new(&[Left, Right, Right, Right]);
        for row in &self.slowest_servers {
            servers.row([
                format!("{} port {}", row.server, row.port),
                milliseconds(row.rtt_us),
                of(row.rtt_samples, "sample"),
                of(row.records, "flow"),
            ]);
        }
        page.section("Slowest TCP servers", &servers);
        let mut pairs = Table::new(&[Left, Right, Right, Right]);
        for row in &self.lossy_pairs {
            let [low, high] = row.addresses;
            pairs.row([
                format!("{low} ↔ {high}"),
                of(row.retransmissions, "retransmission"),
                format!("{} out of order", count(row.out_of_order)),
                format!("of {}", of(row.packets, "packet")),
            ]);
        }
        page.section("TCP loss", &pairs);
    }
}

#[cfg(test)]
mod tests {
    use ringtap_flow::FlowKey;

    use super::*;

    const NONE: TcpPerformance = TcpPerformance {
        handshake_us: [None; 2],
        rtt_ns: [0; 2],
        rtt_count: [0; 2],
        retransmissions: [0; 2],
        out_of_order: [0; 2],
        duplicate_acks: [0; 2],
        zero_windows: [0; 2],
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
        let servers = &report.slowest_servers;
        let means: Vec<_> = servers.iter().map(|row| (row.rtt_us, row.records)).collect();
        assert_eq!(means, [(200, 2), (100, 1)]);
        assert_eq!(servers[0].handshake_us, Some(7));
        let pairs: Vec<_> = report.lossy_pairs.iter().map(|row| row.retransmissions).collect();
        assert_eq!((pairs, report.records_ignored), (vec![4, 1], 0));
        assert_eq!((report.totals.records, report.totals.rtt_samples), (6, 6));
        assert_eq!(report.totals.retransmissions + report.totals.out_of_order, 7);
        let mut few = table(1, &records);
        assert_eq!(few.ignored, 2);
        few.merge(table(1, &records[1..2]));
        assert_eq!(few.report(10).records_ignored, 3);
    }
}
