//! Which worker owns which part of the key space.

/// Key space in equal parts: an indirection table as network cards have one for RSS.
const PARTS: usize = 1024;

/// A fixed map from shard keys to workers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardMap {
    owners: Vec<u16>,
    workers: usize,
}

impl ShardMap {
    /// Equal shares.
    pub fn even(workers: usize) -> Self {
        Self::weighted(&vec![1; workers])
    }

    /// Shares in proportion to `weights`, one per worker. A worker of weight 0 gets nothing.
    pub fn weighted(weights: &[u32]) -> Self {
        let total: u64 = weights.iter().map(|&w| u64::from(w)).sum::<u64>().max(1);
        let mut owners = Vec::with_capacity(PARTS);
        let mut upto = 0;
        for (worker, &weight) in weights.iter().enumerate() {
            upto += u64::from(weight);
            owners.resize((upto * PARTS as u64 / total) as usize, worker as u16);
        }
        owners.resize(PARTS, 0);
        Self { owners, workers: weights.len() }
    }

    /// How many workers there are.
    pub fn workers(&self) -> usize {
        self.workers
    }

    /// The owner of a key.
    #[inline(always)]
    pub fn owner(&self, key: u32) -> usize {
        usize::from(self.owners[(key >> 22) as usize])
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
}
