//! A farm with feedback: divide and conquer.
//!
//! ```text
//!                 ┌── inbox ─▶ worker 0 ── offers ────┐
//!  problems ─▶ emitter         own stack, frames      │
//! solutions ◀─    ▲ └─ inbox ─▶ worker 1 ── solutions ─┤
//!                 └────────────── feedback ───────────┘
//! ```
//!
//! *Work first.* A worker keeps its own stack of tasks. It takes the newest, divides it, and
//! continues with the first part without communication; a part that is solved there costs no
//! allocation and no ring access. It offers the *oldest* tasks, which are the largest, on a short
//! ring, while that has room. The emitter moves offers to idle workers, and takes a new problem
//! only when there are no offers.
//!
//! *Combining.* The worker that divides a task keeps a frame for it, which collects the solutions
//! of its parts. Each task has the address of its frame (owner, frame, part); a part that was
//! solved elsewhere sends its solution there, through the emitter.
//!
//! *No deadlock, although the graph has cycles.* No step of a worker waits for room: it always
//! empties its inbox, into its stack and frames, which are its own memory. It keeps what has no
//! room in the feedback rings, and continues. So every inbox gets room, so the emitter can send
//! what it holds, so every feedback ring gets room. The emitter gives a task to a worker only if
//! that has next to none, so a stack grows by the worker's own divisions only, and memory is
//! bounded by the depth of the problems, times their width, for each worker.
//! `tests/stream_simulation.rs` searches for a counter-example, and finds one in an emitter that
//! waits.
//!
//! *The end.* The emitter counts the unsolved problems; it alone writes that count. When it is 0
//! and no problem follows, it closes the inboxes.

mod emitter;
mod frames;
mod parcel;
mod worker;

pub use self::parcel::Divided;

use std::sync::Arc;

use self::emitter::{Emitter, Lane};
use self::worker::{Worker, WorkerLoad};
use super::ends::{Inlet, Outlet};
use super::network::{HEAVY, LIGHT};
use super::{Options, Run, Stream};
use crate::RunError;
use crate::skeleton::check_workers;

/// Offers of one worker that wait for an idle one. Few, because a worker that runs out of tasks
/// gets its own back; more than one, because the emitter may be slow.
const OFFERS: usize = 2;

/// Solves one problem by divide and conquer, on the calling thread and others.
///
/// `divide` solves a problem or splits it; `combine` makes the solution of a problem from those of
/// its parts, in order. Solve problems of less than some ten microseconds at once: they are not
/// worth moving to another core.
///
/// # Errors
/// As [`Network::run`](super::Network::run).
///
/// ```
/// use ringtap_skeleton::stream::{Divided, Options, divide_and_conquer};
///
/// fn fib(n: u64) -> u64 {
///     if n < 2 { n } else { fib(n - 1) + fib(n - 2) }
/// }
/// let divide = |n| if n < 15 { Divided::Solved(fib(n)) } else { Divided::Split([n - 1, n - 2]) };
/// let run = divide_and_conquer(25, 2, divide, |parts| parts.sum(), &Options::default())?;
/// assert_eq!(run.result, 75_025);
/// # Ok::<(), ringtap_skeleton::RunError>(())
/// ```
pub fn divide_and_conquer<'a, P, S, I>(
    problem: P,
    workers: usize,
    divide: impl Fn(P) -> Divided<S, I> + Send + Sync + 'a,
    combine: impl Fn(&mut dyn Iterator<Item = S>) -> S + Send + Sync + 'a,
    options: &Options<'a>,
) -> Result<Run<S>, RunError>
where
    P: Send + 'a,
    S: Send + 'a,
    I: IntoIterator<Item = P>,
{
    Stream::from_iter([problem])
        .divide_and_conquer(workers, divide, combine)
        .fold(None, |_, solution| Some(solution))
        .flatten()
        .run(options)
}

impl<'a, P: Send + 'a> Stream<'a, P> {
    /// A farm with feedback: solves each problem by divide and conquer. One solution for each, in
    /// any order. The functions are those of [`divide_and_conquer`]; problems may be borrowed.
    ///
    /// ```
    /// use ringtap_skeleton::stream::{Divided, Options, Stream};
    ///
    /// let mut lists = vec![vec![3, 1, 2], vec![9, 8, 7, 6, 5, 4]];
    /// Stream::from_iter(lists.iter_mut().map(|list| &mut list[..]))
    ///     .divide_and_conquer(
    ///         2,
    ///         |list: &mut [i32]| {
    ///             if list.len() < 3 {
    ///                 list.sort();
    ///                 return Divided::Solved(());
    ///             }
    ///             let middle = list.len() / 2;
    ///             list.select_nth_unstable(middle);
    ///             let (left, right) = list.split_at_mut(middle);
    ///             Divided::Split([left, right])
    ///         },
    ///         |_parts| (),
    ///     )
    ///     .for_each(|()| ())
    ///     .run(&Options::default())?;
    /// assert!(lists.iter().all(|list| list.is_sorted()));
    /// # Ok::<(), ringtap_skeleton::RunError>(())
    /// ```
    pub fn divide_and_conquer<S, I>(
        self,
        workers: usize,
        divide: impl Fn(P) -> Divided<S, I> + Send + Sync + 'a,
        combine: impl Fn(&mut dyn Iterator<Item = S>) -> S + Send + Sync + 'a,
    ) -> Stream<'a, S>
    where
        S: Send + 'a,
        I: IntoIterator<Item = P>,
    {
        Stream::new(move |builder| {
            let problems = (self.build)(builder)?;
            check_workers(workers)?;
            let label = builder.label("divide and conquer");
            let functions = Arc::new((divide, combine));
            let mut lanes = Vec::new();
            let place = builder.place();
            for number in 0..workers {
                let (to_worker, inbox) = builder.ring()?;
                let (sender, receiver) = builder.ring()?;
                let (offer, offers) = builder.ring_of(OFFERS)?;
                let load = Arc::new(WorkerLoad::default());
                lanes.push(Lane::new(to_worker, receiver, offers, Arc::clone(&load)));
                let functions = Arc::clone(&functions);
                let worker = Worker::new(number as u32, functions, inbox, offer, sender, load);
                builder.add(format!("{label} worker {number}"), HEAVY, worker);
            }
            let (output, solutions) = builder.ring()?;
            let emitter = Emitter::new(Inlet(problems), lanes, Outlet::new(output));
            builder.add_at(place, format!("{label} emitter"), LIGHT, emitter);
            Ok(solutions)
        })
    }
}
