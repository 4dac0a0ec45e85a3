//! The list of skeletons, and how to run an application under any of them.
//!
//! A skeleton is a module with a function `nodes`, which makes the nodes of a run, and a line in
//! the list below. All tests run over [`Skeleton::ALL`].

use std::error::Error;
use std::fmt;
use std::str::FromStr;

use ringtap_stage::{Application, Feed};

use crate::counters::{Run, RunCounters};
use crate::idle::Wait;
use crate::seats::{self, Placed, Role};
use crate::{
    MOST_QUEUES, RunError, RunOptions, ShardMap, farm, multi_queue, pipeline, reference, sync,
};

/// An upper bound above any machine's cores.
const MOST_WORKERS: usize = 1024;

/// Runs `app` over everything in `feeds`, one a queue, on the threads of `options.seating`.
///
/// # Errors
/// A node panicked, or the options are invalid.
pub fn run<A: Application>(
    skeleton: Skeleton,
    app: &A,
    feeds: Vec<impl Feed<Item = A::Item> + Send>,
    options: &RunOptions,
) -> Result<Run<A::Report>, RunError> {
    let counters = RunCounters::new(&options.shards);
    let mut nodes = nodes(skeleton, app, feeds, options, &counters)?;
    let mut take = |role: &Role| {
        let at = nodes.iter().position(|(own, _)| own == role)?;
        Some(nodes.swap_remove(at).1)
    };
    let mut seats: Vec<Vec<_>> = options
        .seating
        .seats
        .iter()
        .map(|roles| roles.iter().filter_map(&mut take).collect())
        .collect();
    if seats.is_empty() {
        seats.push(Vec::new());
    }
    seats[0].extend(nodes.into_iter().map(|(_, node)| node));
    seats::run(seats, &options.seating.pin, Wait::default())?;
    counters.close()
}

/// A name that is not in [`Skeleton::ALL`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownSkeleton {
    /// The name as given.
    pub name: String,
}

impl fmt::Display for UnknownSkeleton {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [rest @ .., last] = Skeleton::ALL.map(Skeleton::name);
        write!(f, "unknown skeleton {:?}: use {} or {last}", self.name, rest.join(", "))
    }
}

impl Error for UnknownSkeleton {}

/// Refuses 0 workers and too many.
pub(crate) fn check_workers(workers: usize) -> Result<(), RunError> {
    let most = MOST_WORKERS;
    if (1..=most).contains(&workers) { Ok(()) } else { Err(RunError::Workers { workers, most }) }
}

/// Refuses queues without a feed or without a worker.
fn check_queues(shards: &ShardMap, feeds: usize) -> Result<(), RunError> {
    let queues = shards.queues();
    let most = MOST_QUEUES.min(shards.workers()).min(feeds);
    let fit = queues == feeds && shards.workers().is_multiple_of(queues.max(1));
    if (1..=most).contains(&queues) && fit {
        Ok(())
    } else {
        Err(RunError::Queues { queues, most })
    }
}

macro_rules! skeletons {
    ($($(#[$meta:meta])* $variant:ident = $name:literal: $module:ident,)*) => {
        /// An arrangement of threads.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Skeleton {
            $($(#[$meta])* $variant,)*
        }

        impl Skeleton {
            /// All skeletons; the first defines the right answer.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$variant),*];

            /// The name that [`FromStr`] reads.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }

        impl FromStr for Skeleton {
            type Err = UnknownSkeleton;

            fn from_str(name: &str) -> Result<Self, UnknownSkeleton> {
                match name {
                    $($name => Ok(Self::$variant),)*
                    _ => Err(UnknownSkeleton { name: name.to_owned() }),
                }
            }
        }

        /// The nodes of a run.
        pub(crate) fn nodes<'a, A: Application>(
            skeleton: Skeleton,
            app: &'a A,
            feeds: Vec<impl Feed<Item = A::Item> + Send + 'a>,
            options: &RunOptions,
            counters: &'a RunCounters<A::Report>,
        ) -> Result<Vec<Placed<'a>>, RunError> {
            check_workers(options.shards.workers())?;
            check_queues(&options.shards, feeds.len())?;
            match skeleton {
                $(Skeleton::$variant => $module::nodes(app, feeds, options, counters),)*
            }
        }
    };
}

skeletons! {
    /// One thread, one worker, no ring.
    Reference = "reference": reference,
    /// Dispatcher → workers → merger: each worker has a ring of its own.
    Farm = "farm": farm,
    /// Reader → worker 0 → … → worker n−1: messages pass through all of them.
    Pipeline = "pipeline": pipeline,
    /// The pipeline of several queues whose workers share threads: worker i of each queue with
    /// worker i of the others.
    SharedPipeline = "shared-pipeline": pipeline,
    /// One node for each queue, which reads and analyses: no item changes threads.
    MultiQueue = "multi-queue": multi_queue,
    /// Master → workers in lockstep: all have done their part of a batch before the next is read.
    Sync = "sync": sync,
}

impl fmt::Display for Skeleton {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
