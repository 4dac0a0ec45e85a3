//! How packets come to the workers: the designs of X. Wu, P. Li, Y. Ran, Y. Luo, "Network Measurement for 100 Gbps Links
//! Using Multicore Processors", as skeletons.

use ringtap_skeleton::Skeleton;

ringtap_base::choices! {
    /// A design, the paper's three first.
    pub enum Design: "design" {
        /// A master hands out a batch and waits until all workers are done.
        Sync = "sync",
        /// A master fills a ring of each worker.
        Async = "async",
        /// A queue for each worker, which runs to completion.
        Rss = "rss",
        /// One thread does it all.
        Sequential = "sequential",
    }
}

impl Design {
    /// What arranges its threads.
    pub const fn skeleton(self) -> Skeleton {
        match self {
            Self::Sync => Skeleton::Sync,
            Self::Async => Skeleton::Farm,
            Self::Rss => Skeleton::MultiQueue,
            Self::Sequential => Skeleton::Reference,
        }
    }
}
