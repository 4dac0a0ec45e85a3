//! Forwarding speed by the number of cores, on paper: the paper's model (its Figure 2), and one of what processors do.
//!
//! ```text
//!  paper       a packet = C cycles in parallel + c cycles of compare-and-swap, during which all other cores stand:
//!              speed(n) = 1 / (C / n + c)            without exclusion: n / (C + c)
//!
//!  line lock   the compare-and-swap holds one line alone. It costs more if another core has written the line last,
//!              and cores wait for each other at one lock only:
//!              speed(n) = min( n / (C + owned + (1 − 1/n) · transfer),  1 / (hottest · (held + (1 − 1/n) · transfer)) )
//! ```
//!
//! Since the P6 family a locked access to memory that is cached, and within one line, locks no bus: the core takes the
//! line for itself and keeps it for the few cycles that it needs (Intel SDM, volume 3A, "Effects of a LOCK operation on
//! internal processor caches"). [`bystander`](super::bystander) tests it.

/// The paper's cycles for a packet, without the compare-and-swap (Xeon E5-2699 v4).
pub const PAPER_PACKET: f64 = 1018.0;
/// The paper's compare-and-swap on a line that another core has written.
pub const PAPER_NAIVE: f64 = 226.0;
/// The paper's compare-and-swap on a line that was prefetched.
pub const PAPER_PREFETCHED: f64 = 41.0;

/// The paper's model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Serial {
    /// Cycles of a packet that cores spend at the same time.
    pub packet: f64,
    /// Cycles of a packet's compare-and-swap, which all cores spend one after the other.
    pub cas: f64,
}

impl Serial {
    /// The paper's own parameters.
    pub const PAPER: Self = Self { packet: PAPER_PACKET, cas: PAPER_PREFETCHED };

    /// Packets a cycle if nobody waits for anybody.
    pub fn without(&self, cores: usize) -> f64 {
        cores as f64 / (self.packet + self.cas)
    }

    /// Packets a cycle if a compare-and-swap stops all other cores.
    pub fn with(&self, cores: usize) -> f64 {
        1.0 / (self.packet / cores.max(1) as f64 + self.cas)
    }
}

/// The model of what processors do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LineLock {
    /// Cycles of a packet, without the compare-and-swap.
    pub packet: f64,
    /// Cycles of a compare-and-swap on a line that is the core's own.
    pub owned: f64,
    /// Cycles that it takes longer if another core has written the line last; with prefetching, what is left of that.
    pub transfer: f64,
    /// Cycles that a lock is held.
    pub held: f64,
    /// The share of packets that take the lock most in demand: 1 / locks if names are spread evenly, 1 for a single name.
    pub hottest: f64,
}

impl LineLock {
    /// Packets a cycle, with packets given to cores at random.
    pub fn with(&self, cores: usize) -> f64 {
        let cores = cores.max(1) as f64;
        let transfer = (1.0 - 1.0 / cores) * self.transfer;
        let all = cores / (self.packet + self.owned + transfer);
        // One at a time at the hottest lock, and no core alone can keep it busier than itself.
        let hottest = 1.0 / (self.hottest * (self.held + transfer)).max(f64::MIN_POSITIVE);
        all.min(hottest)
    }

    /// Packets a cycle of shards: no lock, and the hottest share has one core.
    pub fn sharded(&self, cores: usize, hottest_shard: f64) -> f64 {
        let cores = cores.max(1) as f64;
        (cores / self.packet).min(1.0 / (hottest_shard.max(1.0 / cores) * self.packet))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_model_gives_the_papers_numbers() {
        let paper = Serial::PAPER;
        // "The mutual exclusion decreases the forwarding speed by 42 % […] in the case that the number of cores is 20."
        let decrease = 1.0 - paper.with(20) / paper.without(20);
        assert_eq!((decrease * 100.0).round(), 42.0);
        // "the number of CPU cycles of CAS instruction accounts for about 4.1 % of that of NDN packet processing"
        assert!((paper.cas / paper.packet * 100.0 - 4.1).abs() < 0.1);
        assert_eq!(paper.with(1), paper.without(1));
        // More than 40 million packets a second at 2.2 GHz without exclusion, as the router's own paper has it.
        assert!(paper.without(20) * 2.2e9 > 40e6);
    }

    #[test]
    fn if_only_a_line_is_locked_twenty_cores_lose_little() {
        let paper =
            LineLock { packet: 1018.0, owned: 20.0, transfer: 21.0, held: 300.0, hottest: 1e-6 };
        let decrease = 1.0 - paper.with(20) * (1018.0 + 20.0) / 20.0;
        assert!((0.0..0.03).contains(&decrease), "{decrease}");
        // Without prefetching: a line's way each time.
        let naive = LineLock { transfer: 206.0, ..paper };
        let decrease = 1.0 - naive.with(20) * (1018.0 + 20.0) / 20.0;
        assert!((0.10..0.20).contains(&decrease), "{decrease}");
    }

    #[test]
    fn one_name_has_one_lock_and_one_shard() {
        let one =
            LineLock { packet: 1000.0, owned: 20.0, transfer: 200.0, held: 500.0, hottest: 1.0 };
        assert!(one.with(2) < one.with(1) * 2.0);
        // From some number of cores on it is the lock that counts.
        assert_eq!(one.with(64), 1.0 / (500.0 + 200.0 * 63.0 / 64.0));
        assert_eq!(one.sharded(8, 1.0), one.sharded(1, 1.0));
        assert_eq!(one.sharded(8, 0.0), 8.0 / 1000.0);
    }
}
