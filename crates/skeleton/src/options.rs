//! Options of parallel runs, shared by all skeletons.

use ringtap_ring::Kind;

use crate::seats::Seating;
use crate::shards::ShardMap;

/// Options of a run.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// The owner of each key; its number of workers, 1 to 1,024, is the run's.
    pub shards: ShardMap,
    /// The flavour of all rings.
    pub ring: Kind,
    /// Most items in flight: in the farm to each worker, in the pipeline to all.
    pub capacity: usize,
    /// Items after which a lane's index is published; some flavours ignore it.
    pub batch: usize,
    /// Capacity of a worker's ring to the merger, in reports.
    pub report_capacity: usize,
    /// The seat of each role. A missing role runs on the calling thread.
    pub seating: Seating,
}
