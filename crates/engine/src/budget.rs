//! What the memory of a run is spent on: buffers first, then rows of intervals, and flows with the rest.

use ringtap_flow::FlowTable;
use ringtap_monitor::{ACTIVE_HOSTS, Analyses, MOST_INTERVALS, ROW_UNITS};
use ringtap_wire::BYTES_PER_DATAGRAM;

use crate::PlanError;
use crate::request::within;

/// For frames of each interface that wait: 64 ms of 60-byte frames at 10 million a second.
pub(crate) const BUFFER_BYTES: u64 = 64 << 20;
/// A block or two for each of many queues.
const LEAST_BUFFER_BYTES: u64 = 4 << 20;
/// For encoded flow records that wait for an output: a second of what two workers make, or an outage of minutes.
const OUTPUT_BYTES: u64 = 32 << 20;
/// Some blocks for each of a few workers.
const LEAST_OUTPUT_BYTES: u64 = 1 << 20;
/// What a run takes before it keeps any flow: the program and its buffers for reading and writing.
/// Measured: 6 MB, 9 MB with records to a file, 15 MB with two collectors.
pub(crate) const BASE_BYTES: u64 = 20 << 20;
/// What each worker takes beside its lane. Measured with all analyses: 1.3 MB, the ports of the talkers above all.
const WORKER_BYTES: u64 = 2 << 20;
/// Of a slot of a lane: a packet.
const SLOT_BYTES: u64 = 64;
/// More live flows than this only when asked for.
const MOST_FLOWS_UNASKED: u64 = 16 << 20;

/// Sketches of the intervals that a worker has under way, and as many on their way to the merger.
const ACTIVITY_BYTES: u64 = 8 << 20;

/// First fragments that are remembered: their memory is this part of all, and these are the bounds of their number.
const FRAGMENTS_PART: u64 = 64;
const LEAST_DATAGRAMS: u64 = 4_096;
const MOST_DATAGRAMS: u64 = 1 << 20;

/// The part of the memory left for tables that facts of flows may take, and the most that they take unasked: some 5
/// million names.
const FACTS_PART: u64 = 8;
const MOST_FACT_BYTES: u64 = 512 << 20;

/// The part of the memory left for tables that the rows of intervals may take.
const INTERVALS_PART: u64 = 4;
/// Bytes for a unit of an interval's row ([`ROW_UNITS`]): in the merger, the report and its text; and in each worker.
const UNIT_BYTES: u64 = 240;
const WORKER_UNIT_BYTES: u64 = 60;
/// Protocols in each of [`MOST_INTERVALS`] intervals that there is room for, if there is memory enough.
const USUAL_PROTOCOLS: u64 = 16;
/// One row always has room.
const LEAST_UNITS: u64 = ROW_UNITS as u64 + 256;
/// Bytes for the activity of an interval in the report and its text, and those for a rank of all its lists.
const ACTIVITY_ROW_BYTES: u64 = 2_048;
const ACTIVITY_RANK_BYTES: u64 = 1_700;
/// Blocks of records that a worker has for an output at the least, all together.
const LEAST_WORKER_OUTPUT_BYTES: u64 = 64 << 10;

/// What a run needs memory for.
pub(crate) struct Needs {
    /// As asked; otherwise a quarter of the machine's.
    pub(crate) memory_bytes: Option<u64>,
    pub(crate) machine_bytes: u64,
    pub(crate) analyses: Analyses,
    /// Whether flows have facts.
    pub(crate) extracts: bool,
    pub(crate) workers: u64,
    pub(crate) ring_capacity: u64,
    /// 0 for files.
    pub(crate) interfaces: u64,
    pub(crate) outputs: u64,
    pub(crate) output_fixed_bytes: u64,
    /// Whether the run has more than one interval.
    pub(crate) many_intervals: bool,
    /// Rows in each list of talkers.
    pub(crate) top: usize,
    /// As asked.
    pub(crate) max_flows: Option<u64>,
}

/// What there is room for; the fields are those of the plan.
pub(crate) struct Budget {
    pub(crate) buffer_bytes: u64,
    pub(crate) output_bytes: u64,
    pub(crate) max_datagrams: u64,
    pub(crate) interval_units: u64,
    pub(crate) max_activities: u64,
    pub(crate) fact_bytes: u64,
    pub(crate) max_flows: u64,
}

impl Budget {
    /// Spends the memory.
    ///
    /// # Errors
    /// If it does not suffice for a single flow, or if the number of flows asked for is out of range.
    pub(crate) fn new(needs: &Needs) -> Result<Self, PlanError> {
        let Needs { memory_bytes, analyses, workers, top, .. } = *needs;
        let sketches = if analyses.activity { ACTIVITY_BYTES } else { 0 };
        let per_worker = WORKER_BYTES + needs.ring_capacity * SLOT_BYTES + sketches;
        let per_flow = bytes_per_flow(analyses);
        let buffer_bytes = buffer_bytes(needs.interfaces, memory_bytes);
        let output_bytes = if needs.outputs > 0 { output_bytes(workers, memory_bytes) } else { 0 };
        let memory = memory_bytes.unwrap_or(needs.machine_bytes / 4);
        let max_datagrams =
            (memory / FRAGMENTS_PART / BYTES_PER_DATAGRAM).clamp(LEAST_DATAGRAMS, MOST_DATAGRAMS);
        let intervals = Intervals {
            many: needs.many_intervals,
            volumes: analyses.volumes,
            activity: analyses.activity,
            unit_bytes: UNIT_BYTES + WORKER_UNIT_BYTES * workers,
            activity_bytes: activity_bytes(top),
        };
        let fixed = BASE_BYTES
            + buffer_bytes
            + needs.outputs * output_bytes
            + needs.output_fixed_bytes
            + per_worker * workers
            + max_datagrams * BYTES_PER_DATAGRAM
            + intervals.least_bytes();
        let least = fixed + per_flow;
        if let Some(given) = memory_bytes.filter(|&given| given < least) {
            return Err(PlanError::TooLittleMemory { given, least });
        }
        let rest = memory.saturating_sub(fixed);
        let rows = intervals.within(rest / INTERVALS_PART);
        let fact_bytes = if needs.extracts { (rest / FACTS_PART).min(MOST_FACT_BYTES) } else { 0 };
        let affordable = ((rest - rows.bytes - fact_bytes) / per_flow).max(1);
        let most_flows = FlowTable::MOST as u64 * workers;
        let asked =
            needs.max_flows.map(|flows| within("the number of flows", flows, 1, most_flows));
        let max_flows = match (asked.transpose()?, memory_bytes) {
            (Some(flows), None) => flows,
            (Some(flows), Some(_)) => flows.min(affordable),
            (None, Some(_)) => affordable.min(most_flows),
            (None, None) => affordable.min(MOST_FLOWS_UNASKED).min(most_flows),
        };
        Ok(Self {
            buffer_bytes,
            output_bytes,
            max_datagrams,
            interval_units: rows.units,
            max_activities: rows.activities,
            fact_bytes,
            max_flows,
        })
    }
}

/// Bytes a live flow takes at the most, by what is on: entries, their share of an index as large as it can get, and
/// what the analysis keeps for a flow that no other resembles.
///
/// Measured as the slope of the peak resident memory of whole runs over --max-flows, from 1 to 2^20 + 1 (an index is
/// largest one row beyond a power of two), over SYNs of 2 M forged sources: with the flow table alone, then with each
/// analysis. All at once took 537 (IPv4) and 560 bytes (IPv6), for not everything is largest at the same time.
///
/// | | IPv4 | IPv6 | planned |
/// |---|---|---|---|
/// | flow table, with the place of facts | 100 | 124 | 128 |
/// | scans | 192 | 192 | 200 |
/// | talkers | 219 | 219 | 224 |
/// | volumes | 95 | 95 | 100 |
///
/// Not in it: the room of expired flows of one IP version, which flows of the other cannot use.
fn bytes_per_flow(on: Analyses) -> u64 {
    let rows = [(on.need_flows(), 128), (on.scans, 200), (on.talkers, 224), (on.volumes, 100)];
    let needed: u64 = rows.into_iter().filter_map(|(on, bytes)| on.then_some(bytes)).sum();
    needed.max(1)
}

/// Which rows of intervals a run has, and what they take.
struct Intervals {
    /// More than the whole run as one.
    many: bool,
    volumes: bool,
    activity: bool,
    unit_bytes: u64,
    activity_bytes: u64,
}

/// Room for rows of intervals.
struct Rows {
    units: u64,
    activities: u64,
    /// What they take beyond [`Intervals::least_bytes`].
    bytes: u64,
}

impl Intervals {
    /// What they take at the least.
    fn least_bytes(&self) -> u64 {
        LEAST_UNITS * self.unit_bytes + if self.activity { self.activity_bytes } else { 0 }
    }

    /// As many as `bytes` suffice for, beyond the least.
    fn within(&self, bytes: u64) -> Rows {
        let bytes = if self.many { bytes } else { 0 };
        let each = bytes / (u64::from(self.volumes) + u64::from(self.activity)).max(1);
        let most_units = MOST_INTERVALS as u64 * (ROW_UNITS as u64 + USUAL_PROTOCOLS);
        let units = if self.volumes { (each / self.unit_bytes).min(most_units) } else { 0 };
        let more = each / self.activity_bytes;
        let activities = if self.activity { more.min(MOST_INTERVALS as u64) } else { 0 };
        let bytes = units * self.unit_bytes + activities * self.activity_bytes;
        Rows {
            units: LEAST_UNITS + units,
            activities: activities + u64::from(self.activity),
            bytes,
        }
    }
}

/// Bytes for the activity of an interval in the report and its text.
fn activity_bytes(top: usize) -> u64 {
    ACTIVITY_ROW_BYTES + ACTIVITY_RANK_BYTES * top.min(ACTIVE_HOSTS) as u64
}

/// What of the whole run's memory, if that is bounded, frames of all interfaces may wait in.
fn buffer_bytes(interfaces: u64, memory_bytes: Option<u64>) -> u64 {
    let most = interfaces * BUFFER_BYTES;
    let least = interfaces * LEAST_BUFFER_BYTES;
    memory_bytes.map_or(most, |memory| (memory / 4).max(least).min(most))
}

/// What of it encoded records of one output may wait in.
fn output_bytes(workers: u64, memory_bytes: Option<u64>) -> u64 {
    let bytes = memory_bytes
        .map_or(OUTPUT_BYTES, |memory| (memory / 16).clamp(LEAST_OUTPUT_BYTES, OUTPUT_BYTES));
    bytes.max(workers * LEAST_WORKER_OUTPUT_BYTES)
}
