//! Response times by server, application and exchange, from each response.
//!
//! ```text
//! server, application, exchange, bucket of the time │ number, sum, longest, round-trip times
//! ```
//!
//! Quantiles come from the numbers by bucket ([`ringtap_sketch::bucket_of`]), so rows of workers and of states add up. The
//! section is exact, but for the bound of quantiles, while there is room; responses without room are counted. Responses
//! without a time have a bucket of their own.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use ringtap_enrich::Stage;
use ringtap_flow::{Exchange, IpVersion, Label, Response};
use ringtap_sketch::{bucket_of, quantiles};
use ringtap_state::{Op, Row, Rows as StateRows, Schema};
use ringtap_terminal::page::Page;
use ringtap_terminal::table::Lean::{Left, Right};
use ringtap_terminal::table::{Cell, Table};
use ringtap_wire::HashKey;

use super::rows::ResponseRow;
use super::table::{Host, Rows, first, milliseconds};
use crate::totals::Responses;

/// Memory of a row with its share of an index, bytes.
pub(super) const ROW_BYTES: u64 = (size_of::<(Key, Times)>() + 16) as u64;

/// Version, address, exchange, bucket; the tail is the application. The sums of [`Times`].
pub(crate) static RESPONSES: Schema =
    Schema::new("responses", 20, &[Op::Add, Op::Add, Op::Max, Op::Add, Op::Add]);

/// The bucket of responses without a time, behind all others.
const UNTIMED: u16 = bucket_of(u64::MAX) + 1;

type Service = (Host, Label, Exchange);
type Key = (Service, u16);

#[derive(Clone, Copy, Default)]
pub(super) struct Times {
    number: u64,
    sum_us: u64,
    longest_us: u64,
    rtts: u64,
    rtt_sum_us: u64,
}

impl Times {
    fn numbers(&self) -> [u64; 5] {
        [self.number, self.sum_us, self.longest_us, self.rtts, self.rtt_sum_us]
    }

    fn add(&mut self, more: &Self) {
        self.number += more.number;
        self.sum_us = self.sum_us.saturating_add(more.sum_us);
        self.longest_us = self.longest_us.max(more.longest_us);
        self.rtts += more.rtts;
        self.rtt_sum_us = self.rtt_sum_us.saturating_add(more.rtt_sum_us);
    }
}

/// What the rows of a service have.
#[derive(Default)]
struct Found {
    sums: Times,
    counts: Vec<(u16, u64)>,
    untimed: u64,
}

/// The response times of one shard, or of all.
pub(super) struct ResponseTable {
    rows: Rows<Key, Times>,
    pub(super) ignored: u64,
    /// All so far, also those without room, in the order of [`Exchange::ALL`].
    pub(super) totals: [Responses; Exchange::ALL.len()],
}

impl ResponseTable {
    pub(super) fn with_room(key: HashKey, capacity: usize) -> Self {
        Self { rows: Rows::new(key, capacity), ignored: 0, totals: Default::default() }
    }

    pub(super) fn take(&mut self, response: &Response) {
        let &Response { ref key, from_source, exchange, time_us, rtt_us, application } = response;
        let address = if from_source { key.src } else { key.dst };
        let label = application.map_or(Label::EMPTY, |own| own.label);
        if let Some(time_us) = time_us {
            self.totals[exchange as usize].add_one(time_us);
        }
        let times = Times {
            number: 1,
            sum_us: time_us.unwrap_or(0),
            longest_us: time_us.unwrap_or(0),
            rtts: rtt_us.is_some().into(),
            rtt_sum_us: rtt_us.unwrap_or(0),
        };
        self.add(
            (((key.version, address), label, exchange), time_us.map_or(UNTIMED, bucket_of)),
            &times,
        );
    }

    fn add(&mut self, wanted: Key, times: &Times) {
        let (((_, address), label, exchange), bucket) = wanted;
        let key = self.rows.key;
        let rest = label.head() ^ u64::from(bucket) << 48 ^ u64::from(exchange as u8) << 40;
        let hash = (key.word(key.address(&address) ^ key.word(rest)) >> 32) as u32;
        match self.rows.row(wanted, hash) {
            Some(row) => row.add(times),
            None => self.ignored += times.number,
        }
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.ignored += other.ignored;
        for (key, times) in other.rows.rows.into_rows() {
            self.add(key, &times);
        }
    }

    pub(super) fn save(&self, rows: &mut StateRows) {
        for ((((version, address), label, exchange), bucket), times) in self.rows.rows.rows() {
            let key: [&[u8]; 4] =
                [&[*version as u8], address, &[*exchange as u8], &bucket.to_be_bytes()];
            rows.push(&key, &times.numbers(), label.as_str().as_bytes());
        }
    }

    pub(super) fn load(&mut self, row: &Row<'_>) -> Option<()> {
        let (&[version], rest) = row.key().split_first_chunk()?;
        let (&address, rest) = rest.split_first_chunk()?;
        let (&[exchange], rest) = rest.split_first_chunk()?;
        let bucket = u16::from_be_bytes(*rest.first_chunk()?);
        (bucket <= UNTIMED).then_some(())?;
        let version = IpVersion::from_number(version)?;
        let exchange = *Exchange::ALL.get(usize::from(exchange))?;
        let label = if row.tail.is_empty() { Label::EMPTY } else { Label::new(row.tail)? };
        let [number, sum_us, longest_us, rtts, rtt_sum_us] = row.numbers();
        let times = Times { number, sum_us, longest_us, rtts, rtt_sum_us };
        self.add((((version, address), label, exchange), bucket), &times);
        Some(())
    }

    /// The slowest services by the time of 95 of 100 responses.
    pub(super) fn report(self, top: usize) -> Vec<ResponseRow> {
        let mut services = BTreeMap::<Service, Found>::new();
        for ((service, bucket), times) in self.rows.rows.into_rows() {
            let found = services.entry(service).or_default();
            if bucket == UNTIMED {
                found.untimed += times.number;
            } else {
                found.sums.add(&times);
                found.counts.push((bucket, times.number));
            }
        }
        let row = |((server, label, exchange), found): (Service, Found)| {
            let Found { sums, mut counts, untimed } = found;
            counts.sort_unstable();
            let of = quantiles(&counts, [500, 950, 990]);
            let [p50_us, p95_us, p99_us] = of.map(|time| time.min(sums.longest_us));
            let (version, address) = server;
            let application = (label != Label::EMPTY).then(|| label.as_str().to_owned());
            ResponseRow {
                server: version.address(&address),
                application,
                exchange: exchange.name(),
                responses: sums.number,
                mean_us: sums.sum_us / sums.number.max(1),
                p50_us,
                p95_us,
                p99_us,
                longest_us: sums.longest_us,
                rtt_us: sums.rtt_sum_us.checked_div(sums.rtts),
                untimed,
            }
        };
        first(services.into_iter().map(row).collect(), top, order)
    }
}

fn order(row: &ResponseRow) -> impl Ord + use<> {
    let slowest = Reverse((row.p95_us, row.longest_us, row.responses));
    (slowest, row.server, row.application.clone(), row.exchange)
}

pub(super) fn pass(rows: &mut [ResponseRow], stage: &mut Stage) {
    rows.iter_mut().for_each(|row| stage.replace(&mut row.server));
    rows.sort_by_key(order);
}

pub(super) fn show(rows: &[ResponseRow], page: &mut Page) {
    let mut table = Table::with_head(&[
        ("server", Left),
        ("application", Left),
        ("of", Left),
        ("responses", Right),
        ("mean", Right),
        ("p50", Right),
        ("p95", Right),
        ("p99", Right),
        ("longest", Right),
        ("network", Right),
    ]);
    let time = |us: u64| Cell::about(us, milliseconds(us));
    for row in rows {
        table.row([
            row.server.to_string().into(),
            row.application.clone().unwrap_or_default().into(),
            row.exchange.into(),
            Cell::count(row.responses),
            time(row.mean_us),
            time(row.p50_us),
            time(row.p95_us),
            time(row.p99_us),
            time(row.longest_us),
            row.rtt_us.map_or_else(|| "".into(), time),
        ]);
    }
    page.section("Slowest responses", table);
}

#[cfg(test)]
mod tests {
    use ringtap_flow::FlowKey;

    use super::*;

    fn response(server: u8, exchange: Exchange, time_us: impl Into<Option<u64>>) -> Response {
        let [mut src, mut dst] = [[0; 16]; 2];
        (src[0], dst[0]) = (1, server);
        let version = IpVersion::V4;
        let key = FlowKey { version, src, dst, src_port: 1000, dst_port: 80, protocol: 6 };
        let time_us = time_us.into();
        Response { key, from_source: false, exchange, time_us, rtt_us: Some(7), application: None }
    }

    fn table(room: usize, responses: &[Response]) -> ResponseTable {
        let mut table = ResponseTable::with_room(HashKey::from_seed(1), room);
        responses.iter().for_each(|response| table.take(response));
        table
    }

    #[test]
    fn the_slowest_services_come_first_with_their_quantiles() {
        let mut responses: Vec<_> =
            (1..=100).map(|at| response(2, Exchange::Http, at * 1000)).collect();
        responses.push(response(3, Exchange::Tls, 99_000));
        responses.push(response(2, Exchange::Tls, 10));
        responses.extend([None; 3].map(|time| response(2, Exchange::Http, time)));
        let whole = table(1000, &responses).report(10);
        let mut parts = table(1000, &responses[..40]);
        parts.merge(table(1000, &responses[40..]));
        assert_eq!(parts.report(10), whole);
        let services: Vec<_> = whole.iter().map(|row| (row.exchange, row.responses)).collect();
        assert_eq!(services, [("tls", 1), ("http", 100), ("tls", 1)]);
        let http = &whole[1];
        assert_eq!((whole[0].untimed, http.untimed), (0, 3));
        assert_eq!((http.mean_us, http.longest_us, http.rtt_us), (50_500, 100_000, Some(7)));
        for (found, exact) in
            [(http.p50_us, 50_000_u64), (http.p95_us, 95_000), (http.p99_us, 99_000)]
        {
            assert!(found.abs_diff(exact) <= exact / 64, "{found} {exact}");
        }
        // A quantile is not above the longest time.
        assert_eq!((whole[0].p99_us, whole[0].longest_us), (99_000, 99_000));
        assert_eq!(table(1000, &responses).report(1).len(), 1);
    }

    #[test]
    fn responses_without_room_are_counted() {
        let responses = [1, 2, 3, 100_000].map(|time| response(2, Exchange::Dns, time));
        let mut few = table(2, &responses);
        assert_eq!(few.ignored, 2);
        few.merge(table(2, &responses[2..]));
        assert_eq!(few.ignored, 4);
    }
}
