//! The plan of a run: the options with all choices made.

use std::sync::Arc;

use ringtap_skeleton::{MOST_QUEUES, RunOptions, ShardMap};
use ringtap_wire::{HashKey, REGIONS};
use serde::Serialize;

use crate::arrangement::{Arrangement, MOST_WORKERS};
use crate::duplicates::Duplicates;
use crate::recent::{Keeper, LEAST_QUEUE_BYTES};
use crate::{
    AppOptions, Buffers, MOST_INTERFACES, Machine, Memory, Options, PlanError, Recent, within,
};

/// Capacity of the ring of messages from one worker.
const REPORT_CAPACITY: usize = 4_096;

/// A plan: all choices made, printable.
#[derive(Clone, Debug, Serialize)]
pub struct Plan<A> {
    /// The application's name.
    #[serde(rename = "app")]
    pub name: &'static str,
    /// The run's options.
    #[serde(flatten)]
    pub options: Options,
    /// Queues, workers and threads.
    #[serde(flatten)]
    pub arrangement: Arrangement,
    /// Memory of the buffers.
    #[serde(flatten)]
    pub buffers: Buffers,
    /// The latest frames, if they are kept.
    #[serde(skip)]
    pub recent: Option<Arc<Recent>>,
    /// The application's own options.
    #[serde(flatten)]
    pub app: A,
}

impl<A: AppOptions> Plan<A> {
    /// Fills in all options that were not given.
    ///
    /// # Errors
    /// If an option is out of its range, options contradict each other, or the memory is too small.
    pub fn new(mut options: Options, mut app: A, machine: &Machine) -> Result<Self, PlanError> {
        if options.live {
            let interfaces = options.interfaces() as u64;
            within("number of interfaces", interfaces, 1, MOST_INTERFACES as u64)?;
        }
        if let Some(queues) = options.queues {
            within("number of queues", queues as u64, 1, MOST_QUEUES as u64)?;
        }
        if let Some(workers) = options.workers {
            let most = MOST_WORKERS / options.queues.unwrap_or(1) as u64;
            within("number of workers", workers as u64, 1, most)?;
        }
        within("ring capacity", options.ring_capacity as u64, 1, 1 << 24)?;
        within("ring batch", options.ring_batch as u64, 1, 1 << 24)?;
        within("sampling rate", options.sample.into(), 1, u32::MAX.into())?;
        options.shed &= options.live;
        let arrangement = Arrangement::new(&options, machine, app.dispatch_share())?;
        let (queues, workers) = (arrangement.queues as u64, arrangement.workers as u64);
        let worker_bytes = app.worker_bytes();
        let mut fit = |options: &Options| {
            let (buffers, memory) =
                Buffers::new(options, machine.memory_bytes, queues, workers, worker_bytes);
            let recent = options.recent.map(|_| recent(buffers.recent_bytes, queues, &memory));
            let recent = recent.transpose()?;
            app.settle(&memory)?;
            Ok((buffers, recent))
        };
        let (buffers, recent) = match fit(&options) {
            Err(PlanError::TooLittleMemory { given, mut least }) => loop {
                // The buffers grow with the memory, so repeat until the memory is enough.
                options.memory_bytes = Some(least.next_multiple_of(1 << 20));
                match fit(&options) {
                    Err(PlanError::TooLittleMemory { least: more, .. }) if more > least => {
                        least = more;
                    }
                    _ => return Err(PlanError::TooLittleMemory { given, least }),
                }
            },
            other => other?,
        };
        Ok(Self { name: A::NAME, options, arrangement, buffers, recent, app })
    }
}

/// Memory for the latest frames, of which each queue has an equal part.
fn recent(bytes: u64, queues: u64, memory: &Memory) -> Result<Arc<Recent>, PlanError> {
    // In whole megabytes, as the user may give them.
    let (least, most) = (queues * LEAST_QUEUE_BYTES, ((memory.bytes / 2) >> 20) << 20);
    if least > most {
        return Err(PlanError::TooLittleMemory { given: memory.bytes, least: 2 * least });
    }
    if !(least..=most).contains(&bytes) {
        return Err(PlanError::RecentMemory { given: bytes, least, most });
    }
    Ok(Arc::new(Recent::new(bytes)))
}

impl<A> Plan<A> {
    /// Whether packets cross from one thread to another through rings.
    pub fn packets_cross_rings(&self) -> bool {
        self.arrangement.packets_cross_rings()
    }

    /// The key of all hash functions.
    pub fn hash_key(&self) -> HashKey {
        HashKey::from_seed(self.options.seed)
    }

    /// The owner of each part of the key space.
    pub fn shards(&self) -> ShardMap {
        ShardMap::queued(self.arrangement.queues, &self.arrangement.shares)
    }

    /// The number of fragmented datagrams that a queue's decoder stores, and the regions of the
    /// pair hash that they may belong to. On interfaces each queue covers all regions, because
    /// frames need not be distributed by our hash.
    pub(crate) fn fragments(&self, queue: usize) -> (usize, u64) {
        let datagrams =
            |part: u64, of: u64| (self.buffers.max_datagrams * part).div_ceil(of) as usize;
        if self.options.live {
            return (datagrams(1, self.arrangement.queues as u64), !0);
        }
        let shards = self.shards();
        let is_own = |region: &usize| shards.queue((region * (1 << 32) / REGIONS) as u32) == queue;
        let regions = (0..REGIONS).filter(is_own).fold(0, |own, region| own | 1 << region);
        (datagrams(u64::from(u64::count_ones(regions)), REGIONS as u64), regions)
    }

    /// The table of a queue that finds duplicates, if they are left out.
    pub(crate) fn duplicates(&self) -> Option<Duplicates> {
        let most = self.buffers.max_duplicates.div_ceil(self.arrangement.queues as u64);
        let window_ns = self.options.dedup_ns?;
        Some(Duplicates::new(self.hash_key(), window_ns, most as usize))
    }

    /// What keeps the frames of a queue, if they are kept.
    pub(crate) fn keeper(&self) -> Option<Keeper> {
        let recent = self.recent.as_ref()?;
        Some(recent.keeper(self.arrangement.queues))
    }

    /// The skeleton's options for this plan.
    pub fn run_options(&self) -> RunOptions {
        let Options { ring, ring_capacity: capacity, ring_batch: batch, .. } = self.options;
        RunOptions {
            shards: self.shards(),
            ring,
            capacity,
            batch,
            report_capacity: REPORT_CAPACITY.min(capacity.max(16)),
            seating: self.arrangement.seating.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use ringtap_skeleton::{Role, Skeleton};

    use super::*;
    use crate::RecentBytes;
    use crate::application::tests::Toy;
    use crate::memory::BUFFER_BYTES;

    fn machine(cores: usize) -> Machine {
        Machine { cores, allowed_cores: (0..cores).collect(), memory_bytes: 8 << 30 }
    }

    fn made(options: Options, machine: &Machine) -> Result<Plan<Toy>, PlanError> {
        Plan::new(options, Toy { tick_ns: 1 }, machine)
    }

    #[test]
    fn every_number_of_cores_gets_a_plan_that_uses_it() {
        for cores in 1..64 {
            let plan = made(Options::default(), &machine(cores)).unwrap();
            assert_eq!(plan.arrangement.seating.seats.len(), cores, "{plan:?}");
            assert!(
                plan.arrangement.workers >= cores - 1
                    && plan.arrangement.shares.iter().all(|&s| s > 0)
            );
        }
    }

    #[test]
    fn every_arrangement_has_a_plan_on_any_machine() {
        for (skeleton, cores) in
            Skeleton::ALL.into_iter().flat_map(|s| [1, 2, 3, 8].map(|c| (s, c)))
        {
            for queues in [None, Some(1), Some(2), Some(5), Some(64)] {
                for workers in [None, Some(1), Some(3), Some(8)] {
                    let options =
                        Options { skeleton: Some(skeleton), queues, workers, ..Options::default() };
                    let plan = match made(options, &machine(cores)) {
                        Ok(plan) => plan,
                        Err(PlanError::WorkersOfReference) if skeleton == Skeleton::Reference => {
                            continue;
                        }
                        Err(PlanError::WorkersOfQueues) if workers.is_some() => continue,
                        Err(error) => panic!("{skeleton}, {queues:?}, {workers:?}: {error}"),
                    };
                    assert_eq!(plan.arrangement.queues, queues.unwrap_or(plan.arrangement.queues));
                    assert_eq!(plan.arrangement.workers % plan.arrangement.queues, 0, "{plan:?}");
                    assert_eq!(plan.shards().queues(), plan.arrangement.queues);
                    assert!(plan.arrangement.seating.seats.len() <= cores.max(1), "{plan:?}");
                    let mut roles: Vec<_> = plan.arrangement.seating.seats.concat();
                    roles.sort_by_key(ToString::to_string);
                    roles.dedup();
                    let of_queues =
                        if skeleton == Skeleton::MultiQueue { 0 } else { plan.arrangement.queues };
                    assert_eq!(roles.len(), of_queues + plan.arrangement.workers + 1, "{plan:?}");
                    let mut all = plan.arrangement.seating.seats.concat();
                    if skeleton == Skeleton::MultiQueue {
                        // All seats take part in merging.
                        assert!(
                            plan.arrangement
                                .seating
                                .seats
                                .iter()
                                .all(|s| s.last() == Some(&Role::Merger))
                        );
                        all.retain(|role| *role != Role::Merger);
                        all.push(Role::Merger);
                    }
                    assert_eq!(roles.len(), all.len(), "twice: {plan:?}");
                }
            }
        }
    }

    #[test]
    fn numbers_out_of_range_are_errors_with_a_message() {
        let with = |change: fn(&mut Options)| {
            let mut request = Options::default();
            change(&mut request);
            made(request, &machine(2)).unwrap_err().to_string()
        };
        assert!(with(|r| r.workers = Some(0)).contains("workers 0: use 1 to 512"));
        assert!(with(|r| r.queues = Some(65)).contains("invalid number of queues 65: use 1 to 64"));
        assert!(with(|r| (r.queues, r.workers) = (Some(4), Some(129))).contains("use 1 to 128"));
        assert!(with(|r| r.cores = Some(vec![0, 2])).contains("core 2 is not available"));
        assert!(with(|r| r.sample = 0).contains("sampling"));
        assert!(with(|r| r.ring_capacity = 0).contains("ring capacity"));
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

    /// A plan with recent frames.
    fn with_recent(
        recent: RecentBytes,
        memory_bytes: Option<u64>,
        queues: usize,
        machine: &Machine,
    ) -> Result<Plan<Toy>, PlanError> {
        let (recent, queues) = (Some(recent), Some(queues));
        made(Options { recent, memory_bytes, queues, ..Options::default() }, machine)
    }

    #[test]
    fn the_least_memory_in_an_error_is_enough_and_the_least() {
        let with = |megabytes: u64| {
            let memory_bytes = Some(megabytes << 20);
            let options = Options { memory_bytes, outputs: 3, live: true, ..Options::default() };
            made(options, &machine(4))
        };
        let least = |megabytes| match with(megabytes).map(drop) {
            Err(PlanError::TooLittleMemory { given, least }) => {
                assert_eq!(given, megabytes << 20);
                least.div_ceil(1 << 20)
            }
            other => panic!("{other:?}"),
        };
        let enough = least(1);
        assert!(with(enough).is_ok());
        for given in [2, enough / 2, enough - 1] {
            assert_eq!(least(given), enough, "{given}");
        }
    }

    #[test]
    fn recent_frames_are_a_part_of_the_memory() {
        let fixed = |recent| {
            let options = Options { recent, ..Options::default() };
            Buffers::new(&options, 4 << 30, 1, 1, 0).1.fixed
        };
        let given = RecentBytes::Given(100 << 20);
        assert_eq!(fixed(Some(given)) - fixed(None), 100 << 20);
        let plan = with_recent(given, Some(1 << 30), 1, &machine(1)).unwrap();
        assert_eq!(plan.buffers.recent_bytes, 100 << 20);
        assert!(plan.keeper().is_some());
        let plan = made(Options::default(), &machine(1)).unwrap();
        assert!(plan.buffers.recent_bytes == 0 && plan.keeper().is_none());
    }

    #[test]
    fn the_default_of_recent_frames_fits_any_memory() {
        let bytes = |memory, queues, machine: &Machine| {
            let plan = with_recent(RecentBytes::Default, memory, queues, machine);
            plan.map(|plan| plan.buffers.recent_bytes)
        };
        let machine = |memory_bytes| Machine { memory_bytes, ..machine(1) };
        // Without a limit a quarter of the machine's memory is for the run.
        for (of_machine, expected) in [(8 << 30, 64), (1 << 30, 64), (512 << 20, 32), (96 << 20, 6)]
        {
            assert_eq!(bytes(None, 1, &machine(of_machine)), Ok(expected << 20), "{of_machine}");
        }
        let machine = machine(8 << 30);
        for (memory, expected) in [(1 << 30, 64), (256, 64), (255, 63), (100, 25)] {
            let memory = if memory < 1 << 20 { memory << 20 } else { memory };
            let given = bytes(Some(memory), 1, &machine).unwrap();
            assert_eq!(given >> 20, expected, "{memory}");
        }
        // The queues need more than a quarter.
        assert_eq!(bytes(Some(100 << 20), 30, &machine), Ok(30 << 20));
        let error = bytes(Some(100 << 20), 64, &machine).unwrap_err();
        let PlanError::TooLittleMemory { given, least } = error else { panic!("{error}") };
        assert_eq!(given, 100 << 20);
        let enough = bytes(Some(least.next_multiple_of(1 << 20)), 64, &machine).unwrap();
        assert_eq!(enough, 64 << 20);
    }

    #[test]
    fn the_memory_of_recent_frames_has_room_for_each_queue() {
        let of = |bytes, queues| {
            let recent = RecentBytes::Given(bytes);
            with_recent(recent, Some((1 << 30) + 5), queues, &machine(1)).map(|_| ())
        };
        for (bytes, queues) in [(1 << 20, 1), (512 << 20, 1), (64 << 20, 64)] {
            assert_eq!(of(bytes, queues), Ok(()));
        }
        for (bytes, queues, words) in [
            (1, 1, "packets 1: use 1M to 512M (a megabyte for each queue"),
            (513 << 20, 1, "packets 513M: use 1M to 512M"),
            (256 << 40, 1, "use 1M to 512M"),
            (u64::MAX, 4, "use 4M to 512M"),
            ((64 << 20) - 1, 64, "packets 67108863: use 64M to 512M"),
        ] {
            let error = of(bytes, queues).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn each_interface_has_room_for_frames_within_the_memory() {
        let plan = |interfaces: usize, memory_bytes| {
            let source = (0..interfaces).map(|number| format!("eth{number}")).collect();
            let options = Options { source, live: true, memory_bytes, ..Options::default() };
            made(options, &machine(1))
        };
        let bytes = |interfaces, memory| plan(interfaces, memory).unwrap().buffers.buffer_bytes;
        assert_eq!(bytes(1, None), BUFFER_BYTES);
        assert_eq!(bytes(3, None), 3 * BUFFER_BYTES);
        assert_eq!(bytes(3, Some(400 << 20)), 100 << 20);
        assert_eq!(bytes(1, Some(400 << 20)), BUFFER_BYTES);
        assert_eq!(made(Options::default(), &machine(1)).unwrap().buffers.buffer_bytes, 0);
        let refused = plan(MOST_INTERFACES + 1, None).unwrap_err().to_string();
        assert!(refused.contains("invalid number of interfaces 17: use 1 to 16"), "{refused}");
    }
}
