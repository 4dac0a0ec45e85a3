//! How an application is run in parallel: the options that all skeletons share.

use ringtap_ring::Kind;

use crate::seats::Seating;
use crate::shards::ShardMap;

/// How a run is built.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Which worker owns which keys; its number of workers, 1 to 1,024, is the run's.
    pub shards: ShardMap,
    /// The flavour of all rings.
    pub ring: Kind,
    /// Items on their way to the workers, at the most: in the farm to each, in the pipeline to all.
    pub capacity: usize,
    /// Items after which a lane's index is published; only some flavours use it.
    pub batch: usize,
    /// State reports a worker's ring to the merger holds.
    pub report_capacity: usize,
    /// Who sits where. A role that is left out sits with the calling thread.
    pub seating: Seating,
}
