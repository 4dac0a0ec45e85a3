//! Flows that had not ended: how a state stores them, and how those of several states become records.

use std::collections::BTreeMap;

use ringtap_flow::{
    Class, EndReason, Facts, FlowRecord, FlowStatistics, ResponseTimes, TcpPerformance, Timeouts,
};
use ringtap_state::{Row, Rows, Schema};

/// Bytes of the endpoints, in an order that both directions share.
const ENDS: usize = 1 + 16 + 2 + 16 + 2 + 1;
/// Of [`FlowRecord::canonical`] the bytes behind the key and the reason of the end.
const REST: usize = FlowRecord::CANONICAL_LEN - 39;
/// Of [`TcpPerformance::canonical`] the bytes that older states have, too. The others are the last ones of a key.
const OLD_TCP: usize = 64;
const TCP: usize = 1 + OLD_TCP;
/// Response times, and the rest of the performance of TCP.
const MORE: usize = ResponseTimes::CANONICAL_LEN + TcpPerformance::CANONICAL_LEN - OLD_TCP;
/// The first time in a canonical record, and the last one behind it.
const FIRST_NS: usize = 66;

/// Bytes of a key in [`UNTIMED`].
const UNTIMED_KEY: usize = ENDS + 1 + 8 + 1 + REST + 4 + TCP;

/// The endpoints, the direction, the run, the class, the rest of the record, the number of facts left
/// out, the performance of TCP, the response times, the octets of TCP; the tail is 1 and the reverse path, or 0 without one;
/// then the facts.
pub(super) static LIVE: Schema = Schema::many("live_paths", UNTIMED_KEY + MORE);

/// As [`LIVE`], in states with the analysis of packet statistics: before the facts the tail has 1 and the statistics, or 0
/// without any.
pub(super) static MEASURED: Schema = Schema::many("live_measured_paths", UNTIMED_KEY + MORE);

/// [`LIVE`] in older states: without reverse paths.
pub(super) static ONE_PATH: Schema = Schema::many("live_octets", UNTIMED_KEY + MORE);

/// [`MEASURED`] in older states: without reverse paths.
pub(super) static MEASURED_ONE_PATH: Schema = Schema::many("live_measured", UNTIMED_KEY + MORE);

/// [`ONE_PATH`] in older states: without response times and octets of TCP.
pub(super) static UNTIMED: Schema = Schema::many("live", UNTIMED_KEY);

/// Whether a table has live flows.
pub(super) fn is_live(table: &Schema) -> bool {
    [&LIVE, &MEASURED, &ONE_PATH, &MEASURED_ONE_PATH, &UNTIMED].contains(&table)
}

/// A flow that had not ended.
pub(super) struct Live {
    pub(super) run: u64,
    pub(super) class: Class,
    /// Its end reason is [`EndReason::Forced`].
    pub(super) record: FlowRecord,
}

/// The endpoints of a key in the order that both directions share, and whether the source is the first.
pub(super) fn ends(key: &ringtap_flow::FlowKey) -> ([u8; ENDS], bool) {
    let one = (key.src, key.src_port);
    let other = (key.dst, key.dst_port);
    let forward = one <= other;
    let (low, high) = if forward { (one, other) } else { (other, one) };
    let mut out = [0; ENDS];
    out[0] = key.version as u8;
    out[1..17].copy_from_slice(&low.0);
    out[17..19].copy_from_slice(&low.1.to_be_bytes());
    out[19..35].copy_from_slice(&high.0);
    out[35..37].copy_from_slice(&high.1.to_be_bytes());
    out[37] = key.protocol;
    (out, forward)
}

impl Live {
    pub(super) fn save(&self, rows: &mut Rows) {
        let mut tail = Vec::new();
        if rows.is_of(&LIVE) || rows.is_of(&MEASURED) {
            let path = self.record.canonical_reverse_path();
            tail.push(path.is_some().into());
            tail.extend(path.iter().flatten());
        }
        if rows.is_of(&MEASURED) || rows.is_of(&MEASURED_ONE_PATH) {
            let statistics = self.record.statistics.as_ref().map(|own| own.bytes());
            tail.push(statistics.is_some().into());
            tail.extend(statistics.into_iter().flatten());
        }
        tail.extend_from_slice(self.record.facts.bytes());
        self.push(&self.record.responses.unwrap_or_default().canonical(), &tail, rows);
    }

    /// Adds a row of [`UNTIMED`], as older programs did.
    #[cfg(test)]
    pub(super) fn save_untimed(&self, rows: &mut Rows) {
        self.push(&[], self.record.facts.bytes(), rows);
    }

    fn push(&self, times: &[u8], tail: &[u8], rows: &mut Rows) {
        let Self { run, class, record } = self;
        let (ends, forward) = ends(&record.key);
        let mut rest = record.canonical();
        // The duration varies less than the time.
        let duration = record.last_ns.wrapping_sub(record.first_ns);
        rest[FIRST_NS + 8..FIRST_NS + 16].copy_from_slice(&duration.to_le_bytes());
        let tcp = record.tcp.map_or([0; _], |tcp| tcp.canonical());
        let (tcp, octets) = tcp.split_at(OLD_TCP);
        let key: [&[u8]; 10] = [
            &ends,
            &[u8::from(forward)],
            &run.to_be_bytes(),
            &[*class as u8],
            &rest[39..],
            &record.facts.beyond().to_be_bytes(),
            &[u8::from(record.tcp.is_some())],
            tcp,
            times,
            if times.is_empty() { &[] } else { octets },
        ];
        rows.push(&key, &[], tail);
    }

    /// The run of a row.
    pub(super) fn run_of(row: &Row<'_>) -> Option<u64> {
        row.key().get(ENDS + 1..)?.first_chunk().copied().map(u64::from_be_bytes)
    }

    /// The flow of a row of this table; `None` if no flow has such a row.
    pub(super) fn load(table: &Schema, row: &Row<'_>) -> Option<Self> {
        let rest = row.key();
        let (ends, rest) = rest.split_first_chunk::<ENDS>()?;
        let (&[forward], rest) = rest.split_first_chunk()?;
        let (run, rest) = rest.split_first_chunk()?;
        let (&[class], rest) = rest.split_first_chunk()?;
        let (canonical, rest) = rest.split_first_chunk::<REST>()?;
        let (beyond, rest) = rest.split_first_chunk()?;
        let (&[measured], rest) = rest.split_first_chunk()?;
        let (tcp, more) = rest.split_at_checked(OLD_TCP)?;
        let (times, octets) = match more.split_first_chunk() {
            Some((times, octets)) => (Some(times), octets),
            None => (None, more),
        };
        let mut bytes = [0; FlowRecord::CANONICAL_LEN];
        let (low, high) = (&ends[1..19], &ends[19..37]);
        let (src, dst) = if forward > 0 { (low, high) } else { (high, low) };
        bytes[..16].copy_from_slice(&src[..16]);
        bytes[16..32].copy_from_slice(&dst[..16]);
        bytes[32..34].copy_from_slice(&[src[17], src[16]]);
        bytes[34..36].copy_from_slice(&[dst[17], dst[16]]);
        bytes[36..39].copy_from_slice(&[ends[37], ends[0], EndReason::Forced as u8]);
        bytes[39..].copy_from_slice(canonical);
        let mut record = FlowRecord::from_canonical(&bytes)?;
        record.last_ns = record.first_ns.checked_add(record.last_ns)?;
        let mut facts = row.tail;
        if *table == LIVE || *table == MEASURED {
            let (&has_path, rest) = facts.split_first()?;
            facts = rest;
            if has_path > 0 {
                let (path, rest) = facts.split_first_chunk()?;
                record.set_canonical_reverse_path(path).then_some(())?;
                facts = rest;
            }
        }
        if *table == MEASURED || *table == MEASURED_ONE_PATH {
            let (&is_measured, rest) = facts.split_first()?;
            facts = rest;
            if is_measured > 0 {
                let (statistics, rest) = FlowStatistics::split_from(rest)?;
                (record.statistics, facts) = (Some(Box::new(statistics)), rest);
            }
        }
        record.facts = Facts::restore(facts, u32::from_be_bytes(*beyond))?;
        // Absent in older states, as the octets.
        record.responses = times.and_then(ResponseTimes::from_canonical);
        let mut performance = [0; TcpPerformance::CANONICAL_LEN];
        let places = performance.iter_mut().zip(tcp.iter().chain(octets));
        places.for_each(|(place, byte)| *place = *byte);
        record.tcp = (measured > 0).then(|| TcpPerformance::from_canonical(&performance));
        let class = *Class::ALL.get(usize::from(class))?;
        Some(Self { run: u64::from_be_bytes(*run), class, record })
    }

    /// The record of the flow if the run had ended at this time.
    pub(super) fn end(self, now_ns: u64, timeouts: &Timeouts) -> FlowRecord {
        let silent_ns = now_ns.saturating_sub(self.record.last_ns);
        let end_reason = match silent_ns > timeouts.of(self.class) {
            _ if self.class.is_closed() => EndReason::EndDetected,
            true => EndReason::Idle,
            false => EndReason::Forced,
        };
        FlowRecord { end_reason, ..self.record }
    }

    /// Whether no timeout separates a later flow of the same endpoints from this one.
    fn reaches(&self, later: &Self, timeouts: &Timeouts) -> bool {
        let gap_ns = later.record.first_ns.saturating_sub(self.record.last_ns);
        gap_ns <= timeouts.of(self.class)
    }

    /// Adds a flow of the same endpoints that began no earlier.
    fn join(&mut self, other: Self) {
        self.record.join(other.record);
        self.class = self.class.max(other.class);
    }
}

/// Most live flows of the same endpoints: of different VLANs and runs.
const MOST_OF_ENDS: usize = 1 << 16;

/// The live flows of the same endpoints, joined where no idle timeout separates them.
pub(super) struct Joiner {
    timeouts: Timeouts,
    /// Whether each direction is a flow.
    uniflow: bool,
    vlan_in_key: bool,
    waiting: Vec<Live>,
    /// Flows that became part of another one.
    pub(super) joined: u64,
}

impl Joiner {
    pub(super) fn new(metering: &ringtap_flow::Metering) -> Self {
        let &ringtap_flow::Metering { timeouts, uniflow, vlan_in_key, .. } = metering;
        Self { timeouts, uniflow, vlan_in_key, waiting: Vec::new(), joined: 0 }
    }

    /// Adds a flow; those of the same endpoints come one after the other. Calls `done` with complete ones. `None`:
    /// there are too many.
    pub(super) fn add(&mut self, flow: Live, done: &mut impl FnMut(Live)) -> Option<()> {
        let other = |one: &Live| ends(&one.record.key).0 != ends(&flow.record.key).0;
        if self.waiting.first().is_some_and(other) {
            self.finish(done);
        }
        self.waiting.push(flow);
        (self.waiting.len() <= MOST_OF_ENDS).then_some(())
    }

    /// Calls `done` with the flows that are left.
    pub(super) fn finish(&mut self, done: &mut impl FnMut(Live)) {
        if let [_] = self.waiting[..] {
            self.waiting.drain(..).for_each(done);
            return;
        }
        self.waiting.sort_by_key(|flow| flow.record.first_ns);
        // What else separates flows: the direction, the VLANs.
        let mut open: BTreeMap<_, Live> = BTreeMap::new();
        for flow in self.waiting.drain(..) {
            let path = &flow.record.path;
            let vlans = self.vlan_in_key.then_some((path.vlan_tags.min(2), path.vlans));
            let apart = (self.uniflow.then_some(flow.record.key), vlans);
            match open.remove(&apart) {
                Some(mut before)
                    if before.run != flow.run && before.reaches(&flow, &self.timeouts) =>
                {
                    before.join(flow);
                    self.joined += 1;
                    open.insert(apart, before);
                }
                before => {
                    before.into_iter().for_each(&mut *done);
                    open.insert(apart, flow);
                }
            }
        }
        open.into_values().for_each(done);
    }
}
