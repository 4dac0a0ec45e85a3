//! How packets come to the workers: the designs of X. Wu, P. Li, Y. Ran, Y. Luo, "Network Measurement for 100 Gbps Links
//! Using Multicore Processors", as skeletons.

use std::fmt;
use std::str::FromStr;

use ringtap_skeleton::Skeleton;
use thiserror::Error;

/// A design.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Design {
    /// A master hands out a batch and waits until all workers are done.
    Sync,
    /// A master fills a ring of each worker.
    Async,
    /// A queue for each worker, which runs to completion.
    Rss,
    /// One thread does it all.
    Sequential,
}

/// A name that is none of [`Design::ALL`].
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("no design is called {0:?}; there are sync, async, rss and sequential")]
pub struct UnknownDesign(String);

impl Design {
    /// All there are, the paper's three first.
    pub const ALL: [Self; 4] = [Self::Sync, Self::Async, Self::Rss, Self::Sequential];

    /// The name by which [`FromStr`] knows it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sync => "sync",
            Self::Async => "async",
            Self::Rss => "rss",
            Self::Sequential => "sequential",
        }
    }

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

impl FromStr for Design {
    type Err = UnknownDesign;

    fn from_str(name: &str) -> Result<Self, UnknownDesign> {
        let found = Self::ALL.into_iter().find(|known| known.name() == name);
        found.ok_or_else(|| UnknownDesign(name.to_owned()))
    }
}

impl fmt::Display for Design {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
