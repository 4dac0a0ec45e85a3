//! From what was asked and what there is to a plan.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use ringtap_bpf::Expression;
use ringtap_flow::{FlowTable, Metering};
use ringtap_monitor::{Analyses, Limits};
use ringtap_ring::Kind;
use ringtap_skeleton::{HIGHEST_CORE, MOST_QUEUES, Role, RunOptions, Seating, ShardMap, Skeleton};
use ringtap_wire::{HashKey, Tunnels};
use serde::{Serialize, Serializer};
use thiserror::Error;

use crate::Machine;

/// Slots of a lane: 256 KiB of packets, a good part of a core's second-level cache.
const RING_CAPACITY: usize = 4_096;
/// The paper's batch size.
const RING_BATCH: usize = 50;
/// State reports on their way from one worker.
const REPORT_CAPACITY: usize = 4_096;
/// For frames of an interface that wait: 64 ms of 60-byte frames at 10 million a second.
const BUFFER_BYTES: u64 = 64 << 20;
/// A block or two for each of many queues.
const LEAST_BUFFER_BYTES: u64 = 4 << 20;
/// The reporting interval of an interface.
const LIVE_INTERVAL_NS: u64 = 60_000_000_000;
/// The paper's threshold for both kinds of scans.
const SCAN_THRESHOLD: u32 = 20;
/// Rows in each list of talkers.
const TOP: usize = 10;
/// What a run takes before it keeps any flow: the program, its buffers for reading and writing, the fragments.
/// Measured: 6 MB, 9 MB with records to a file, 15 MB with two collectors.
const BASE_BYTES: u64 = 20 << 20;
/// What each worker takes beside its lane. Measured with all analyses: 1.3 MB, the ports of the talkers above all.
const WORKER_BYTES: u64 = 2 << 20;
/// Of a slot of a lane: a packet.
const SLOT_BYTES: u64 = 64;
/// More workers than any machine has cores for; each still has a share of the key space.
const MOST_WORKERS: u64 = 512;
/// More live flows than this only when asked for.
const MOST_FLOWS_UNASKED: u64 = 16 << 20;

/// Sketches of the intervals that a worker has under way, and as many on their way to the merger.
const ACTIVITY_BYTES: u64 = 8 << 20;

/// Bytes a live flow takes at the most, by what is on: entries, their share of an index as large as it can get, and
/// what the analysis keeps for a flow that no other resembles.
///
/// Measured as the slope of the peak resident memory of whole runs over --max-flows, from 1 to 2^20 + 1 (an index is
/// largest one row beyond a power of two), over SYNs of 2 M forged sources: with the flow table alone, then with each
/// analysis. All at once took 537 (IPv4) and 560 bytes (IPv6), for not everything is largest at the same time.
///
/// | | IPv4 | IPv6 | planned |
/// |---|---|---|---|
/// | flow table | 92 | 116 | 120 |
/// | scans | 192 | 192 | 200 |
/// | talkers | 219 | 219 | 224 |
/// | volumes | 95 | 95 | 100 |
///
/// Not in it: the room of expired flows of one IP version, which flows of the other cannot use.
fn bytes_per_flow(on: Analyses) -> u64 {
    let rows = [(on.need_flows(), 120), (on.scans, 200), (on.talkers, 224), (on.volumes, 100)];
    let needed: u64 = rows.into_iter().filter_map(|(on, bytes)| on.then_some(bytes)).sum();
    needed.max(1)
}

/// What the user asked for; `None` leaves the choice to the plan.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// What to call the source in the plan: file names, or an interface.
    pub source: Vec<String>,
    /// Whether the source is an interface.
    pub live: bool,
    /// Which analyses.
    pub analyses: Option<Analyses>,
    /// Of tunnels, whose packets make flows, talkers and scans.
    pub tunnels: Tunnels,
    /// Which arrangement.
    pub skeleton: Option<Skeleton>,
    /// How many queues the source is read through.
    pub queues: Option<usize>,
    /// How many workers, behind each queue.
    pub workers: Option<usize>,
    /// Which ring.
    pub ring: Option<Kind>,
    /// Slots per lane.
    pub ring_capacity: Option<usize>,
    /// Items after which an index is published.
    pub ring_batch: Option<usize>,
    /// Cores to pin the seats to, in order.
    pub cores: Option<Vec<usize>>,
    /// What a flow is and when it ends.
    pub metering: Metering,
    /// Reporting interval, nanoseconds of packet time.
    pub interval_ns: Option<u64>,
    /// Live flows at the most.
    pub max_flows: Option<u64>,
    /// Memory for the whole run, bytes.
    pub memory_bytes: Option<u64>,
    /// More failed attempts than this are a scan.
    pub scan_threshold: Option<u32>,
    /// What is too much for one host in an interval; if any, activity is looked at.
    pub limits: Limits,
    /// Rows in each list of talkers.
    pub top: Option<usize>,
    /// Packets that this selects count, the others are left out.
    pub filter: Option<Arc<Expression>>,
    /// One packet in so many counts, the others are left out; at least 1.
    pub sample: Option<u32>,
    /// Whether an interface's flows are left out, some of them, when more comes than can be worked off.
    pub shed: bool,
    /// Whether to make a digest.
    pub digest: bool,
    /// Seed of all hash functions; the caller draws one if the user gave none.
    pub seed: u64,
}

/// Why a request cannot become a plan.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PlanError {
    /// A number out of its range.
    #[error("{what} must be from {least} to {most}, not {given}")]
    OutOfRange {
        /// The flag's meaning.
        what: &'static str,
        /// Smallest allowed.
        least: u64,
        /// Largest allowed.
        most: u64,
        /// As given.
        given: u64,
    },
    /// The program itself takes more memory than it may.
    #[error(
        "{given} bytes of memory are too few: this arrangement takes {least} before it keeps a flow"
    )]
    TooLittleMemory {
        /// As given.
        given: u64,
        /// Smallest allowed.
        least: u64,
    },
    /// Workers were asked of a skeleton that has none to choose.
    #[error(
        "the reference runs on one thread; leave out workers and queues or take another --skeleton"
    )]
    WorkersOfReference,
    /// Workers were asked of a skeleton that has one a queue.
    #[error("multi-queue has one worker a queue; leave out the workers or take another --skeleton")]
    WorkersOfQueues,
}

/// What will run. All choices made; printable.
#[derive(Clone, Debug, Serialize)]
pub struct Plan {
    /// Names of the source.
    pub source: Vec<String>,
    /// The application.
    pub app: &'static str,
    /// Its analyses.
    #[serde(serialize_with = "analyses")]
    pub analyses: Analyses,
    /// Of tunnels, whose packets make flows, talkers and scans.
    #[serde(serialize_with = "display")]
    pub tunnels: Tunnels,
    /// The arrangement.
    #[serde(serialize_with = "display")]
    pub skeleton: Skeleton,
    /// Queues that the source is read through.
    pub queues: usize,
    /// Workers of all queues.
    pub workers: usize,
    /// Share of the key space of each worker, in thousandths.
    pub shares: Vec<u32>,
    /// Who sits on which thread.
    #[serde(serialize_with = "seats")]
    pub seating: Seating,
    /// The ring's flavour.
    #[serde(serialize_with = "display")]
    pub ring: Kind,
    /// Slots of each lane.
    pub ring_capacity: usize,
    /// Items after which an index is published.
    pub ring_batch: usize,
    /// Slots of each worker's ring to the merger.
    pub report_capacity: usize,
    /// What a flow is and when it ends.
    #[serde(flatten, serialize_with = "metering")]
    pub metering: Metering,
    /// Reporting interval, nanoseconds of packet time; absent: the whole run.
    pub interval_ns: Option<u64>,
    /// Bytes for frames that wait to be read from an interface.
    #[serde(skip_serializing_if = "is_zero")]
    pub buffer_bytes: u64,
    /// Live flows at the most.
    pub max_flows: u64,
    /// More failed attempts than this are a scan.
    pub scan_threshold: u32,
    /// What is too much for one host in an interval.
    #[serde(skip_serializing_if = "has_none")]
    pub limits: Limits,
    /// Rows in each list of talkers.
    pub top: usize,
    /// Packets that this selects count; absent: all.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "expression")]
    pub filter: Option<Arc<Expression>>,
    /// One packet in so many counts, of those.
    pub sample: u32,
    /// Whether flows are left out, some of them, when more comes than can be worked off.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub shed: bool,
    /// Whether a digest is made.
    pub digest: bool,
    /// Seed of all hash functions.
    pub seed: u64,
}

fn has_none(limits: &Limits) -> bool {
    !limits.any()
}

fn analyses<S: Serializer>(analyses: &Analyses, s: S) -> Result<S::Ok, S::Error> {
    s.collect_seq(analyses.names())
}

fn expression<S: Serializer>(filter: &Option<Arc<Expression>>, s: S) -> Result<S::Ok, S::Error> {
    s.collect_str(filter.as_ref().map_or("", |filter| filter.text()))
}

pub(crate) fn display<T: fmt::Display, S: Serializer>(value: &T, s: S) -> Result<S::Ok, S::Error> {
    s.collect_str(value)
}

fn metering<S: Serializer>(metering: &Metering, s: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Shown {
        uniflow: bool,
        vlan_in_key: bool,
        timeouts: BTreeMap<String, u64>,
    }
    let Metering { timeouts, uniflow, vlan_in_key } = *metering;
    let named = |(name, ns): (&str, u64)| match name {
        "general" => ("idle_ns".into(), ns),
        "maxlife" => ("active_ns".into(), ns),
        _ => (name.replace('.', "_") + "_ns", ns),
    };
    let timeouts = timeouts.named().into_iter().map(named).collect();
    Shown { uniflow, vlan_in_key, timeouts }.serialize(s)
}

fn seats<S: Serializer>(seating: &Seating, s: S) -> Result<S::Ok, S::Error> {
    s.collect_seq(seating.seats.iter().enumerate().map(|(seat, roles)| {
        let names = roles.iter().map(ToString::to_string).collect::<Vec<_>>().join(" + ");
        match seating.pin.as_slice() {
            [] => names,
            pin => format!("{names} on core {}", pin[seat % pin.len()]),
        }
    }))
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

fn within(what: &'static str, given: u64, least: u64, most: u64) -> Result<u64, PlanError> {
    if (least..=most).contains(&given) {
        Ok(given)
    } else {
        Err(PlanError::OutOfRange { what, least, most, given })
    }
}

impl Plan {
    /// Makes all choices left open.
    pub fn new(request: Request, machine: &Machine) -> Result<Self, PlanError> {
        let cores = request.cores.as_ref().map_or(machine.cores, Vec::len).max(1);
        let skeleton = request.skeleton.unwrap_or(match (request.queues, request.workers) {
            (None, None) if cores == 1 => Skeleton::Reference,
            (_, None) => Skeleton::MultiQueue,
            (_, Some(_)) => Skeleton::Farm,
        });
        if let Some(queues) = request.queues {
            within("the number of queues", queues as u64, 1, MOST_QUEUES as u64)?;
        }
        if let Some(workers) = request.workers {
            let most = MOST_WORKERS / request.queues.unwrap_or(1) as u64;
            within("the number of workers", workers as u64, 1, most)?;
        }
        let mut analyses = request.analyses.unwrap_or(Analyses::ALL);
        analyses.activity |= request.limits.any();
        let Arrangement { queues, weights, mut seating } =
            arrange(skeleton, request.queues, request.workers, cores, dispatch_share(analyses))?;
        seating.pin = request.cores.clone().unwrap_or_default();
        for &core in request.cores.iter().flatten() {
            within("a core's number", core as u64, 0, HIGHEST_CORE as u64)?;
        }
        let total: u32 = weights.iter().sum();
        let capacity = request.ring_capacity.unwrap_or(RING_CAPACITY);
        within("the ring capacity", capacity as u64, 1, 1 << 24)?;
        let sketches = if analyses.activity { ACTIVITY_BYTES } else { 0 };
        let per_worker = WORKER_BYTES + capacity as u64 * SLOT_BYTES + sketches;
        let per_flow = bytes_per_flow(analyses);
        let buffer_bytes = if request.live { buffer_bytes(request.memory_bytes) } else { 0 };
        let fixed = BASE_BYTES + buffer_bytes + per_worker * weights.len() as u64;
        let least = fixed + per_flow;
        if let Some(given) = request.memory_bytes.filter(|&given| given < least) {
            return Err(PlanError::TooLittleMemory { given, least });
        }
        let memory = request.memory_bytes.unwrap_or(machine.memory_bytes / 4);
        let affordable = (memory.saturating_sub(fixed) / per_flow).max(1);
        let most_flows = FlowTable::MOST as u64 * weights.len() as u64;
        let max_flows = match (request.max_flows, request.memory_bytes) {
            (Some(flows), None) => within("the number of flows", flows, 1, most_flows)?,
            (Some(flows), Some(_)) => {
                within("the number of flows", flows, 1, most_flows)?.min(affordable)
            }
            (None, Some(_)) => affordable.min(most_flows),
            (None, None) => affordable.min(MOST_FLOWS_UNASKED).min(most_flows),
        };
        let batch = request.ring_batch.unwrap_or(RING_BATCH);
        within("the ring batch", batch as u64, 1, 1 << 24)?;
        let top = request.top.unwrap_or(TOP);
        within("the number of rows", top as u64, 0, 100_000)?;
        let sample = request.sample.unwrap_or(1);
        within("the sampling", sample.into(), 1, u32::MAX.into())?;
        if let Some(interval_ns) = request.interval_ns {
            within("the interval in nanoseconds", interval_ns, 1, u64::MAX)?;
        }
        Ok(Self {
            source: request.source,
            app: "monitor",
            analyses,
            tunnels: request.tunnels,
            skeleton,
            queues,
            workers: weights.len(),
            shares: weights.iter().map(|w| (w * 1000 / total.max(1)).max(1)).collect(),
            seating,
            ring: request.ring.unwrap_or_default(),
            ring_capacity: capacity,
            ring_batch: batch,
            report_capacity: REPORT_CAPACITY.min(capacity.max(16)),
            metering: request.metering,
            interval_ns: request.interval_ns.or(request.live.then_some(LIVE_INTERVAL_NS)),
            buffer_bytes,
            max_flows,
            scan_threshold: request.scan_threshold.unwrap_or(SCAN_THRESHOLD),
            limits: request.limits,
            top,
            filter: request.filter,
            sample,
            shed: request.shed && request.live,
            digest: request.digest,
            seed: request.seed,
        })
    }

    /// The key of all hash functions.
    pub fn hash_key(&self) -> HashKey {
        HashKey::from_seed(self.seed)
    }

    /// How the run of this plan is built.
    pub fn options(&self) -> RunOptions {
        RunOptions {
            shards: ShardMap::queued(self.queues, &self.shares),
            ring: self.ring,
            capacity: self.ring_capacity,
            batch: self.ring_batch,
            report_capacity: self.report_capacity,
            seating: self.seating.clone(),
        }
    }
}

/// What of the whole run's memory, if that is bounded, frames may wait in.
fn buffer_bytes(memory_bytes: Option<u64>) -> u64 {
    memory_bytes.map_or(BUFFER_BYTES, |memory| (memory / 4).clamp(LEAST_BUFFER_BYTES, BUFFER_BYTES))
}

/// Queues, workers behind them and their threads.
struct Arrangement {
    queues: usize,
    /// Of all workers.
    weights: Vec<u32>,
    seating: Seating,
}

fn arrange(
    skeleton: Skeleton,
    queues: Option<usize>,
    workers: Option<usize>,
    cores: usize,
    dispatch: u32,
) -> Result<Arrangement, PlanError> {
    let even = |queues: usize, each: usize, seating| {
        Ok(Arrangement { queues, weights: vec![1000; queues * each], seating })
    };
    match (skeleton, queues.unwrap_or(1), workers) {
        (Skeleton::Reference, 1, None) => {
            let seats = vec![vec![Role::Dispatcher(0), Role::Worker(0), Role::Merger]];
            even(1, 1, Seating { seats, pin: Vec::new() })
        }
        (Skeleton::Reference, ..) => Err(PlanError::WorkersOfReference),
        (Skeleton::MultiQueue, _, Some(_)) => Err(PlanError::WorkersOfQueues),
        (Skeleton::MultiQueue, _, None) => {
            let queues = queues.unwrap_or(cores.min(MOST_QUEUES));
            even(queues, 1, Seating::queues(queues, cores))
        }
        (Skeleton::SharedPipeline, _, _) => {
            let queues = queues.unwrap_or(2);
            let each = workers.unwrap_or(cores.saturating_sub(queues).max(1));
            even(queues, each, Seating::shared(queues, each, cores))
        }
        (_, 1, Some(workers)) => even(1, workers, Seating::apart(workers, cores)),
        (_, 1, None) => {
            let (weights, seating) = balanced(cores, dispatch);
            Ok(Arrangement { queues: 1, weights, seating })
        }
        (_, queues, _) => {
            let each = workers.unwrap_or((cores / queues).saturating_sub(1).max(1));
            even(queues, each, Seating::side_by_side(queues, each, cores))
        }
    }
}

/// Thousandths of the whole work that reading, decoding and handing over make up (measured, see
/// docs/PERFORMANCE.md): what the dispatcher's core is busy with before it can help. With one or
/// two analyses that is nearly half of everything.
fn dispatch_share(analyses: Analyses) -> u32 {
    if analyses.names().len() > 2 { 250 } else { 420 }
}

/// As many workers as pay on `cores`, and what each should get. The dispatcher's core takes a
/// share of the analysis, too, as long as reading leaves it time.
fn balanced(cores: usize, dispatch: u32) -> (Vec<u32>, Seating) {
    let cores = cores.min(MOST_WORKERS as usize);
    let each = 1000 / cores as u32;
    if cores == 1 {
        (vec![1000], Seating::apart(1, 1))
    } else if each > dispatch + 20 {
        let mut weights = vec![each; cores];
        weights[0] = each - dispatch;
        (weights, Seating::beside(cores, cores))
    } else {
        let workers = cores - 1;
        (vec![1000; workers], Seating::apart(workers, cores))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(cores: usize) -> Machine {
        Machine { cores, memory_bytes: 8 << 30 }
    }

    #[test]
    fn every_number_of_cores_gets_a_plan_that_uses_it() {
        for cores in 1..64 {
            let plan = Plan::new(Request::default(), &machine(cores)).unwrap();
            assert_eq!(plan.seating.seats.len(), cores, "{plan:?}");
            assert!(plan.workers >= cores - 1 && plan.shares.iter().all(|&s| s > 0));
        }
    }

    #[test]
    fn every_arrangement_has_a_plan_on_any_machine() {
        for (skeleton, cores) in
            Skeleton::ALL.into_iter().flat_map(|s| [1, 2, 3, 8].map(|c| (s, c)))
        {
            for queues in [None, Some(1), Some(2), Some(5), Some(64)] {
                for workers in [None, Some(1), Some(3), Some(8)] {
                    let request =
                        Request { skeleton: Some(skeleton), queues, workers, ..Request::default() };
                    let plan = match Plan::new(request, &machine(cores)) {
                        Ok(plan) => plan,
                        Err(PlanError::WorkersOfReference) if skeleton == Skeleton::Reference => {
                            continue;
                        }
                        Err(PlanError::WorkersOfQueues) if workers.is_some() => continue,
                        Err(error) => panic!("{skeleton}, {queues:?}, {workers:?}: {error}"),
                    };
                    assert_eq!(plan.queues, queues.unwrap_or(plan.queues));
                    assert_eq!(plan.workers % plan.queues, 0, "{plan:?}");
                    assert_eq!(plan.options().shards.queues(), plan.queues);
                    assert!(plan.seating.seats.len() <= cores.max(1), "{plan:?}");
                    let mut roles: Vec<_> = plan.seating.seats.concat();
                    roles.sort_by_key(ToString::to_string);
                    roles.dedup();
                    let of_queues = if skeleton == Skeleton::MultiQueue { 0 } else { plan.queues };
                    assert_eq!(roles.len(), of_queues + plan.workers + 1, "{plan:?}");
                    let mut all = plan.seating.seats.concat();
                    if skeleton == Skeleton::MultiQueue {
                        // Everybody has a hand in merging.
                        assert!(plan.seating.seats.iter().all(|s| s.last() == Some(&Role::Merger)));
                        all.retain(|role| *role != Role::Merger);
                        all.push(Role::Merger);
                    }
                    assert_eq!(roles.len(), all.len(), "twice: {plan:?}");
                }
            }
        }
    }

    #[test]
    fn absurd_numbers_are_refused_in_words() {
        let with = |change: fn(&mut Request)| {
            let mut request = Request::default();
            change(&mut request);
            Plan::new(request, &machine(2)).unwrap_err().to_string()
        };
        assert!(with(|r| r.workers = Some(0)).contains("from 1 to 512, not 0"));
        assert!(with(|r| r.queues = Some(65)).contains("queues must be from 1 to 64, not 65"));
        assert!(with(|r| (r.queues, r.workers) = (Some(4), Some(129))).contains("from 1 to 128"));
        assert!(with(|r| r.sample = Some(0)).contains("sampling"));
        assert!(with(|r| r.ring_capacity = Some(0)).contains("ring capacity"));
        assert!(with(|r| r.max_flows = Some(0)).contains("flows"));
        assert!(
            with(|r| {
                r.workers = Some(2);
                r.skeleton = Some(Skeleton::Reference);
            })
            .contains("one thread")
        );
        assert!(
            with(|r| {
                r.queues = Some(2);
                r.skeleton = Some(Skeleton::Reference);
            })
            .contains("one thread")
        );
        assert!(
            with(|r| {
                r.workers = Some(2);
                r.skeleton = Some(Skeleton::MultiQueue);
            })
            .contains("one worker a queue")
        );
    }

    #[test]
    fn memory_bounds_flows() {
        let flows = |analyses, memory_bytes, workers| {
            let request = Request {
                analyses: Some(analyses),
                memory_bytes: Some(memory_bytes),
                workers: Some(workers),
                ..Request::default()
            };
            Plan::new(request, &machine(2)).map(|plan| plan.max_flows)
        };
        let all = flows(Analyses::ALL, 1 << 30, 1).unwrap();
        let few = flows("flows".parse().unwrap(), 1 << 30, 1).unwrap();
        assert!(all * 644 + BASE_BYTES < 1 << 30 && few > 5 * all, "{all}, {few}");
        assert!(flows(Analyses::ALL, 1 << 30, 64).unwrap() < all, "rings take memory, too");
        let told = flows(Analyses::ALL, 1 << 20, 1).unwrap_err().to_string();
        assert!(told.starts_with("1048576 bytes of memory are too few"), "{told}");
    }
}
