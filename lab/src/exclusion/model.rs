//! Two models of forwarding speed by the number of cores: the paper's (its Figure 2), in which a
//! compare-and-swap stalls all cores, and one in which it locks a cache line.
//!
//! ```text
//!  paper       a packet = C cycles in parallel + c cycles of compare-and-swap that stall all other cores:
//!              speed(n) = 1 / (C / n + c)            without exclusion: n / (C + c)
//!
//!  line lock   the compare-and-swap locks one line. It costs more if another core wrote the line last,
//!              and cores wait for each other at one lock only:
//!              speed(n) = min( n / (C + owned + (1 − 1/n) · transfer),
//!                              1 / (hottest · (held + (1 − 1/n) · transfer)) )
//! ```
//!
//! Since the P6 family a locked access to cached memory within one line locks no bus: the core
//! acquires the line exclusively and keeps it for the few cycles of the operation (Intel SDM,
//! volume 3A, "Effects of a LOCK operation on internal processor caches").
//! [`bystander`](super::bystander) tests this.

/// Cycles of a packet in the paper, without the compare-and-swap (Xeon E5-2699 v4).
pub const PAPER_PACKET: f64 = 1018.0;
/// Cycles in the paper of a compare-and-swap on a line that another core has written.
pub const PAPER_NAIVE: f64 = 226.0;
/// Cycles in the paper of a compare-and-swap on a prefetched line.
pub const PAPER_PREFETCHED: f64 = 41.0;

/// The paper's model: compare-and-swaps of all cores are serialised.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Serial {
    /// Cycles of a packet that cores spend in parallel.
    pub packet: f64,
    /// Cycles of a packet's compare-and-swap, during which all other cores stall.
    pub cas: f64,
}

impl Serial {
    /// The paper's own parameters.
    pub const PAPER: Self = Self { packet: PAPER_PACKET, cas: PAPER_PREFETCHED };

    /// Packets per cycle of all cores, without exclusion.
    pub fn without(&self, cores: usize) -> f64 {
        cores as f64 / (self.packet + self.cas)
    }

    /// Packets per cycle of all cores, if a compare-and-swap stalls all other cores.
    pub fn with(&self, cores: usize) -> f64 {
        1.0 / (self.packet / cores.max(1) as f64 + self.cas)
    }
}

/// The model in which a compare-and-swap locks one cache line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LineLock {
    /// Cycles of a packet, without the compare-and-swap.
    pub packet: f64,
    /// Cycles of a compare-and-swap on a line in the core's own cache.
    pub owned: f64,
    /// Additional cycles if another core wrote the line last; with prefetching, the remainder of
    /// them.
    pub transfer: f64,
    /// Cycles that a lock is held.
    pub held: f64,
    /// Share of packets that use the most used lock: 1 / locks if names are spread evenly, 1 for a
    /// single name.
    pub hottest: f64,
}

impl LineLock {
    /// Packets per cycle of all cores, with packets assigned to cores at random.
    pub fn with(&self, cores: usize) -> f64 {
        let cores = cores.max(1) as f64;
        let transfer = (1.0 - 1.0 / cores) * self.transfer;
        let all = cores / (self.packet + self.owned + transfer);
        // One packet at a time holds the hottest lock.
        let hottest = 1.0 / (self.hottest * (self.held + transfer)).max(f64::MIN_POSITIVE);
        all.min(hottest)
    }

    /// Packets per cycle of shards: no lock, and `hottest_shard` (a share of all packets) has one
    /// core.
    pub fn sharded(&self, cores: usize, hottest_shard: f64) -> f64 {
        let cores = cores.max(1) as f64;
        (cores / self.packet).min(1.0 / (hottest_shard.max(1.0 / cores) * self.packet))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_model_yields_the_papers_numbers() {
        let paper = Serial::PAPER;
        // "The mutual exclusion decreases the forwarding speed by 42 % […] in the case that the
        // number of cores is 20."
        let decrease = 1.0 - paper.with(20) / paper.without(20);
        assert_eq!((decrease * 100.0).round(), 42.0);
        // "the number of CPU cycles of CAS instruction accounts for about 4.1 % of that of NDN
        // packet processing"
        assert!((paper.cas / paper.packet * 100.0 - 4.1).abs() < 0.1);
        assert_eq!(paper.with(1), paper.without(1));
        // More than 40 million packets per second at 2.2 GHz without exclusion, as in the paper
        // about the router.
        assert!(paper.without(20) * 2.2e9 > 40e6);
    }

    #[test]
    fn if_only_a_line_is_locked_twenty_cores_lose_little() {
        let paper =
            LineLock { packet: 1018.0, owned: 20.0, transfer: 21.0, held: 300.0, hottest: 1e-6 };
        let decrease = 1.0 - paper.with(20) * (1018.0 + 20.0) / 20.0;
        assert!((0.0..0.03).contains(&decrease), "{decrease}");
        // Without prefetching: the full transfer of the line each time.
        let naive = LineLock { transfer: 206.0, ..paper };
        let decrease = 1.0 - naive.with(20) * (1018.0 + 20.0) / 20.0;
        assert!((0.10..0.20).contains(&decrease), "{decrease}");
    }

    #[test]
    fn one_name_has_one_lock_and_one_shard() {
        let one =
            LineLock { packet: 1000.0, owned: 20.0, transfer: 200.0, held: 500.0, hottest: 1.0 };
        assert!(one.with(2) < one.with(1) * 2.0);
        // With many cores, the lock is the limit.
        assert_eq!(one.with(64), 1.0 / (500.0 + 200.0 * 63.0 / 64.0));
        assert_eq!(one.sharded(8, 1.0), one.sharded(1, 1.0));
        assert_eq!(one.sharded(8, 0.0), 8.0 / 1000.0);
    }
}
