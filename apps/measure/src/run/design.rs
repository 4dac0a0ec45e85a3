//! Distribution of packets to the workers: the designs of X. Wu, P. Li, Y. Ran, Y. Luo, "Network
//! Measurement for 100 Gbps Links Using Multicore Processors", as skeletons.

use ringtap_skeleton::Skeleton;

ringtap_base::choices! {
    /// The designs; the paper's three first.
    pub enum Design: "design" {
        /// A master hands out a batch and waits until all workers are done.
        Sync = "sync",
        /// A master fills a ring for each worker.
        Async = "async",
        /// A queue for each worker, which runs to completion.
        Rss = "rss",
        /// One thread.
        Sequential = "sequential",
    }
}

impl Design {
    /// The skeleton of the design.
    pub const fn skeleton(self) -> Skeleton {
        match self {
            Self::Sync => Skeleton::Sync,
            Self::Async => Skeleton::Farm,
            Self::Rss => Skeleton::MultiQueue,
            Self::Sequential => Skeleton::Reference,
        }
    }
}
