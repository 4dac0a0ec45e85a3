//! The list of skeletons, and how to run an application under any of them.
//!
//! A skeleton is a module with a function `nodes`, which makes the nodes of a run in the order
//! dispatcher, workers, merger, and a line in the list below. All tests run over [`Skeleton::ALL`].

use std::error::Error;
use std::fmt;
use std::str::FromStr;

use ringtap_stage::{Application, Feed};

use crate::books::{Books, Run};
use crate::idle::Wait;
use crate::node::Node;
use crate::seats::{self, Role};
use crate::{RunError, RunOptions, farm, pipeline, reference};

/// More workers than any machine has cores for.
const MOST_WORKERS: usize = 1024;

/// Runs `app` over everything `feed` has, on the threads that `options.seating` names.
///
/// # Errors
/// A node that panicked, or options that cannot be met.
pub fn run<A: Application>(
    skeleton: Skeleton,
    app: &A,
    feed: impl Feed<Item = A::Item> + Send,
    options: &RunOptions,
) -> Result<Run<A::Report>, RunError> {
    let workers = options.shards.workers();
    let books = Books::new(workers);
    let mut nodes: Vec<_> =
        nodes(skeleton, app, feed, options, &books)?.into_iter().map(Some).collect();
    let mut take = |role: &Role| nodes.get_mut(index(*role, workers)).and_then(Option::take);
    let mut seats: Vec<Vec<_>> = options
        .seating
        .seats
        .iter()
        .map(|roles| roles.iter().filter_map(&mut take).collect())
        .collect();
    if seats.is_empty() {
        seats.push(Vec::new());
    }
    seats[0].extend(nodes.into_iter().flatten());
    seats::run(seats, &options.seating.pin, Wait::default())?;
    books.close()
}

fn index(role: Role, workers: usize) -> usize {
    match role {
        Role::Dispatcher => 0,
        Role::Worker(worker) => 1 + worker,
        Role::Merger => 1 + workers,
    }
}

/// A name that is none of [`Skeleton::ALL`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownSkeleton {
    /// What was asked for.
    pub name: String,
}

impl fmt::Display for UnknownSkeleton {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Skeleton::ALL.map(Skeleton::name).join(", ");
        write!(f, "no skeleton is called \"{}\"; there are {names}", self.name)
    }
}

impl Error for UnknownSkeleton {}

/// Refuses what no machine has cores for, and none at all.
pub(crate) fn check_workers(workers: usize) -> Result<(), RunError> {
    let most = MOST_WORKERS;
    if (1..=most).contains(&workers) { Ok(()) } else { Err(RunError::Workers { workers, most }) }
}

macro_rules! skeletons {
    ($($(#[$meta:meta])* $variant:ident = $name:literal: $module:ident,)*) => {
        /// An arrangement of threads.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Skeleton {
            $($(#[$meta])* $variant,)*
        }

        impl Skeleton {
            /// All there are, the one that defines the right answer first.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$variant),*];

            /// The name by which [`FromStr`] knows it.
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

        /// The nodes of a run: dispatcher, workers in order, merger.
        pub(crate) fn nodes<'a, A: Application>(
            skeleton: Skeleton,
            app: &'a A,
            feed: impl Feed<Item = A::Item> + Send + 'a,
            options: &RunOptions,
            books: &'a Books<A::Report>,
        ) -> Result<Vec<Box<dyn Node + 'a>>, RunError> {
            check_workers(options.shards.workers())?;
            match skeleton {
                $(Skeleton::$variant => $module::nodes(app, feed, options, books),)*
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
}

impl fmt::Display for Skeleton {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
