//! What was asked for ([`Request`]) and what runs ([`Plan`]).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use ringtap_extract::Extractors;
use ringtap_flow::Metering;
use ringtap_io::bpf::Expression;
use ringtap_monitor::{Analyses, Limits, MOST_INTERVALS, ROW_UNITS};
use ringtap_ring::Kind;
use ringtap_skeleton::{MOST_QUEUES, RunOptions, Seating, ShardMap, Skeleton};
use ringtap_wire::{HashKey, REGIONS, Tunnels};
use serde::{Serialize, Serializer};
use thiserror::Error;

use crate::arrange::{Arrangement, MOST_WORKERS, arrange};
use crate::budget::{Budget, Needs};
use crate::{MOST_INTERFACES, Machine};

/// Slots of a lane: 256 KiB of packets, a good part of a core's second-level cache.
const RING_CAPACITY: usize = 4_096;
/// The paper's batch size.
const RING_BATCH: usize = 50;
/// State reports on their way from one worker.
const REPORT_CAPACITY: usize = 4_096;
/// The reporting interval of an interface.
const LIVE_INTERVAL_NS: u64 = 60_000_000_000;
/// The paper's threshold for both kinds of scans.
const SCAN_THRESHOLD: u32 = 20;
/// Rows in each list of talkers.
const TOP: usize = 10;
/// What the user asked for; `None` leaves the choice to the plan.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// What to call the source in the plan: file names, or interfaces.
    pub source: Vec<String>,
    /// Whether the source is interfaces.
    pub live: bool,
    /// Which analyses.
    pub analyses: Option<Analyses>,
    /// What is read from payloads.
    pub extract: Option<Extractors>,
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
    /// How many outputs flow records go to.
    pub outputs: usize,
    /// Memory that these take beside the buffers of records that wait to be written, bytes.
    pub output_fixed_bytes: u64,
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
    /// A core was named that threads of this process cannot be pinned to.
    #[error("core {core} is not available to this process; --cores takes some of {allowed}")]
    NoCore {
        /// As given.
        core: usize,
        /// All that are available, as a list for `--cores`.
        allowed: String,
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
    /// What is read from payloads; nothing without flow records.
    #[serde(serialize_with = "extractors")]
    pub extract: Extractors,
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
    /// Bytes for frames that wait to be read from interfaces, all together.
    #[serde(skip_serializing_if = "is_zero")]
    pub buffer_bytes: u64,
    /// Bytes for encoded flow records that wait to be written, of each output.
    #[serde(skip_serializing_if = "is_zero")]
    pub output_bytes: u64,
    /// Live flows at the most.
    pub max_flows: u64,
    /// Bytes for the facts of live flows.
    #[serde(skip_serializing_if = "is_zero")]
    pub fact_bytes: u64,
    /// Datagrams in fragments, at the most, whose later fragments get the ports of the first one.
    pub max_datagrams: u64,
    /// Room for the rows of intervals: [`ROW_UNITS`] each, and 1 for each protocol in one.
    pub interval_units: u64,
    /// Intervals whose activity is in the report, at the most.
    #[serde(skip_serializing_if = "is_zero")]
    pub max_activities: u64,
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

fn extractors<S: Serializer>(extract: &Extractors, s: S) -> Result<S::Ok, S::Error> {
    s.collect_seq(extract.names())
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

pub(crate) fn within(
    what: &'static str,
    given: u64,
    least: u64,
    most: u64,
) -> Result<u64, PlanError> {
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
        let interfaces = if request.live { request.source.len().max(1) } else { 0 };
        if request.live {
            within("the number of interfaces", interfaces as u64, 1, MOST_INTERFACES as u64)?;
        }
        if let Some(queues) = request.queues {
            within("the number of queues", queues as u64, 1, MOST_QUEUES as u64)?;
        }
        if let Some(workers) = request.workers {
            let most = MOST_WORKERS / request.queues.unwrap_or(1) as u64;
            within("the number of workers", workers as u64, 1, most)?;
        }
        let mut analyses = request.analyses.unwrap_or(Analyses::ALL);
        analyses.activity |= request.limits.any();
        let extract = request.extract.unwrap_or(Extractors::ALL);
        let extract = if analyses.flows { extract } else { Extractors::NONE };
        let Arrangement { queues, weights, mut seating } =
            arrange(skeleton, request.queues, request.workers, cores, analyses)?;
        seating.pin = request.cores.clone().unwrap_or_default();
        machine.check_cores(&seating.pin)?;
        let total: u32 = weights.iter().sum();
        let top = request.top.unwrap_or(TOP);
        within("the number of rows", top as u64, 0, 100_000)?;
        let capacity = request.ring_capacity.unwrap_or(RING_CAPACITY);
        within("the ring capacity", capacity as u64, 1, 1 << 24)?;
        let many_intervals = request.interval_ns.is_some() || request.live;
        let budget = Budget::new(&Needs {
            memory_bytes: request.memory_bytes,
            machine_bytes: machine.memory_bytes,
            analyses,
            extracts: extract != Extractors::NONE,
            workers: weights.len() as u64,
            ring_capacity: capacity as u64,
            interfaces: interfaces as u64,
            outputs: request.outputs as u64,
            output_fixed_bytes: request.output_fixed_bytes,
            many_intervals,
            top,
            max_flows: request.max_flows,
        })?;
        let batch = request.ring_batch.unwrap_or(RING_BATCH);
        within("the ring batch", batch as u64, 1, 1 << 24)?;
        let sample = request.sample.unwrap_or(1);
        within("the sampling", sample.into(), 1, u32::MAX.into())?;
        if let Some(interval_ns) = request.interval_ns {
            within("the interval in nanoseconds", interval_ns, 1, u64::MAX)?;
        }
        Ok(Self {
            source: request.source,
            app: "monitor",
            analyses,
            extract,
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
            buffer_bytes: budget.buffer_bytes,
            output_bytes: budget.output_bytes,
            max_flows: budget.max_flows,
            fact_bytes: budget.fact_bytes,
            max_datagrams: budget.max_datagrams,
            interval_units: budget.interval_units,
            max_activities: budget.max_activities,
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

    /// Whether packets go from one thread to another by rings.
    pub fn packets_cross_rings(&self) -> bool {
        !matches!(self.skeleton, Skeleton::Reference | Skeleton::MultiQueue)
    }

    /// The key of all hash functions.
    pub fn hash_key(&self) -> HashKey {
        HashKey::from_seed(self.seed)
    }

    /// How many intervals the report has room for, if there are so many protocols in each.
    pub fn interval_rows(&self, protocols: u64) -> u64 {
        (self.interval_units / (ROW_UNITS as u64 + protocols)).min(MOST_INTERVALS as u64)
    }

    /// Datagrams of which the decoder of a queue remembers the first fragment, and the regions of the pair hash that these
    /// are of. Who shares out the frames of an interface need not know the hash, so each queue is for all regions there.
    pub(crate) fn fragments(&self, queue: usize, live: bool) -> (usize, u64) {
        let datagrams = |part: u64, of: u64| (self.max_datagrams * part).div_ceil(of) as usize;
        if live {
            return (datagrams(1, self.queues as u64), !0);
        }
        let shards = self.options().shards;
        let is_own = |region: &usize| shards.queue((region * (1 << 32) / REGIONS) as u32) == queue;
        let regions = (0..REGIONS).filter(is_own).fold(0, |own, region| own | 1 << region);
        (datagrams(u64::from(u64::count_ones(regions)), REGIONS as u64), regions)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::{BASE_BYTES, BUFFER_BYTES};
    use ringtap_skeleton::Role;

    fn machine(cores: usize) -> Machine {
        Machine { cores, allowed_cores: (0..cores).collect(), memory_bytes: 8 << 30 }
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
        assert!(with(|r| r.cores = Some(vec![0, 2])).contains("core 2 is not available"));
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
    fn each_interface_has_room_for_frames_within_the_memory() {
        let plan = |interfaces: usize, memory_bytes| {
            let source = (0..interfaces).map(|number| format!("eth{number}")).collect();
            let request = Request { source, live: true, memory_bytes, ..Request::default() };
            Plan::new(request, &machine(1))
        };
        let bytes = |interfaces, memory| plan(interfaces, memory).unwrap().buffer_bytes;
        assert_eq!(bytes(1, None), BUFFER_BYTES);
        assert_eq!(bytes(3, None), 3 * BUFFER_BYTES);
        assert_eq!(bytes(3, Some(400 << 20)), 100 << 20);
        assert_eq!(bytes(1, Some(400 << 20)), BUFFER_BYTES);
        assert_eq!(Plan::new(Request::default(), &machine(1)).unwrap().buffer_bytes, 0);
        let refused = plan(MOST_INTERFACES + 1, None).unwrap_err().to_string();
        assert!(refused.contains("interfaces must be from 1 to 16, not 17"), "{refused}");
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
