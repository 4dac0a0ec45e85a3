//! The worker that owns each part of the key space, and the queue of each worker.
//!
//! ```text
//! key space │ part 0 │ part 1 │ …                                        │ part 1023 │
//! workers   │ 0          │ 1          │ 2          │ 3          │           equal, or weighted
//! queues    │ 0                       │ 1                       │           whole 64ths
//! ```

/// The key space in equal parts: an indirection table, as network cards have for RSS.
const PARTS: usize = 1024;

/// The most queues. A queue owns whole 64ths of the key space, so other state can be divided in the
/// same way.
pub const MOST_QUEUES: usize = 64;

/// A fixed map from shard keys to workers, and to the queues before them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardMap {
    owners: Vec<u16>,
    /// By 64ths.
    queue_of: [u8; MOST_QUEUES],
    queues: usize,
    workers: usize,
}

impl ShardMap {
    /// Equal shares.
    pub fn even(workers: usize) -> Self {
        Self::weighted(&vec![1; workers])
    }

    /// Shares in proportion to `weights`, one for each worker. A worker of weight 0 gets nothing.
    pub fn weighted(weights: &[u32]) -> Self {
        Self::queued(1, weights)
    }

    /// Shares in proportion to `weights`, one for each worker, with the workers in `queues` groups
    /// of equal size in order: the first ones belong to queue 0. Queues beyond [`MOST_QUEUES`] or
    /// beyond the number of workers get nothing.
    pub fn queued(queues: usize, weights: &[u32]) -> Self {
        let workers = weights.len();
        let each = workers.checked_div(queues).unwrap_or(0).max(1);
        let sum = |weights: &[u32]| weights.iter().map(|&w| u64::from(w)).sum::<u64>();
        let total = sum(weights).max(1);
        let mut queue_of = [0; MOST_QUEUES];
        let mut owners = Vec::with_capacity(PARTS);
        let mut before = 0;
        let mut first = 0;
        for (queue, group) in weights.chunks(each).enumerate().take(MOST_QUEUES) {
            let own = sum(group);
            let last = ((before + own) * MOST_QUEUES as u64 / total) as usize;
            queue_of[first..last].fill(queue as u8);
            let (begin, parts) = (owners.len() as u64, (last - first) * PARTS / MOST_QUEUES);
            let mut upto = 0;
            for (worker, &weight) in group.iter().enumerate() {
                upto += u64::from(weight);
                let end = begin + upto * parts as u64 / own.max(1);
                owners.resize(end as usize, (queue * each + worker) as u16);
            }
            before += own;
            first = last;
        }
        owners.resize(PARTS, 0);
        Self { owners, queue_of, queues, workers }
    }

    /// Number of workers.
    pub fn workers(&self) -> usize {
        self.workers
    }

    /// Number of queues.
    pub fn queues(&self) -> usize {
        self.queues
    }

    /// Number of workers of each queue.
    pub fn workers_each(&self) -> usize {
        self.workers.checked_div(self.queues).unwrap_or(0)
    }

    /// The owner of a key.
    #[inline(always)]
    pub fn owner(&self, key: u32) -> usize {
        usize::from(self.owners[(key >> 22) as usize])
    }

    /// The owner of a key within a queue: one of that queue's workers, even if the queue was not
    /// chosen by this key.
    #[inline(always)]
    pub fn owner_in(&self, queue: usize, key: u32) -> usize {
        let owner = self.owner(key);
        if self.queues == 1 {
            return owner;
        }
        let each = self.workers_each();
        queue * each + owner % each
    }

    /// The queue of a key: its owner's.
    #[inline(always)]
    pub fn queue(&self, key: u32) -> usize {
        usize::from(self.queue_of[(key >> 26) as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_follow_the_weights() {
        for weights in [vec![1], vec![1, 1, 1], vec![3, 7], vec![0, 5, 1, 1, 1, 1, 1]] {
            let map = ShardMap::weighted(&weights);
            let total: u32 = weights.iter().sum();
            for (worker, &weight) in weights.iter().enumerate() {
                let own = (0..PARTS as u32).filter(|&p| map.owner(p << 22) == worker).count();
                let fair = PARTS as f64 * f64::from(weight) / f64::from(total);
                assert!((own as f64 - fair).abs() <= 1.0, "{weights:?}: {own} for {worker}");
            }
        }
    }

    #[test]
    fn a_queue_owns_whole_64ths_and_its_workers_share_them() {
        for queues in [1, 2, 3, 7, 16, 64] {
            for each in [1, 2, 3, 8] {
                let map = ShardMap::queued(queues, &vec![1000; queues * each]);
                assert_eq!((map.queues(), map.workers_each()), (queues, each));
                let mut own = vec![0; queues * each];
                for part in 0..PARTS as u32 {
                    let key = part << 22 | 12_345;
                    assert_eq!(map.queue(key), map.owner(key) / each, "{queues} × {each}");
                    assert_eq!(map.queue(key), map.queue((part / 16 * 16) << 22));
                    own[map.owner(key)] += 1;
                }
                let fair = PARTS as f64 / own.len() as f64;
                let slack = 1.0 + 16.0 / each as f64;
                assert!(own.iter().all(|&n| (f64::from(n) - fair).abs() <= slack), "{own:?}");
            }
        }
    }
}
