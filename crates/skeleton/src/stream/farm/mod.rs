//! Farms: an emitter hands items to workers, a collector takes their results.
//!
//! ```text
//!                 ┌─▶ worker 0 ─┐                          ┌─▶ worker 0 = sink
//! ──▶ emitter ────┼─▶ worker 1 ─┼──▶ collector ──▶   ──▶ emitter ─▶ worker 1 = sink
//!        ┆        └─▶ worker 2 ─┘        ┆                 └─▶ worker 2 = sink
//!        └┄┄┄┄ order: 0 2 1 1 0 … ┄┄┄┄┄┄▶┘                   no collector
//!              (ordered farm only)
//! ```
//!
//! A worker is any stream from items to items, so farms nest. In an ordered farm the emitter also
//! records the worker of each item; the collector takes results in that order, which works for any
//! policy.
//!
//! No deadlock: the graph has no cycle except the order ring, which runs in the direction of the
//! items. The collector of an ordered farm waits for one worker; that worker has the item or will
//! get it (the emitter publishes items and order in the same step), and its output ring is empty,
//! so it can proceed, whatever the others do.

mod collector;
mod emitter;

use std::sync::{Arc, Mutex};

use ringtap_ring::Consumer;

use self::collector::{Collector, InOrder};
use self::emitter::Emitter;
pub use self::emitter::Policy;
use super::ends::Inlet;
use super::network::{Builder, Collect, HEAVY, LIGHT};
use super::sink::{SinkNode, Slot, take};
use super::stage::{Flow, Verdict};
use super::{Network, Stream};
use crate::RunError;
use crate::skeleton::check_workers;

impl<'a, T: Send + 'a> Stream<'a, T> {
    /// A farm: `workers` copies of a function, one result for each item, in any order. `make` is
    /// called with the number of each worker and returns its function, which may own state.
    ///
    /// ```
    /// use ringtap_skeleton::stream::{Options, Policy, Stream};
    ///
    /// let squares = Stream::from_iter(0..100u64)
    ///     .farm(2, Policy::OnDemand, |_worker| |x| x * x)
    ///     .fold(0, |sum, x| sum + x);
    /// assert_eq!(squares.run(&Options::default())?.result, 328_350);
    /// # Ok::<(), ringtap_skeleton::RunError>(())
    /// ```
    pub fn farm<U: Send + 'a, F: FnMut(T) -> U + Send + 'a>(
        self,
        workers: usize,
        policy: Policy<'a, T>,
        mut make: impl FnMut(usize) -> F + 'a,
    ) -> Stream<'a, U> {
        self.any_farm(workers, policy, false, move |worker, items| items.map(make(worker)))
    }

    /// As [`Stream::farm`], with the results in the order of the items.
    pub fn farm_ordered<U: Send + 'a, F: FnMut(T) -> U + Send + 'a>(
        self,
        workers: usize,
        policy: Policy<'a, T>,
        mut make: impl FnMut(usize) -> F + 'a,
    ) -> Stream<'a, U> {
        self.any_farm(workers, policy, true, move |worker, items| items.map(make(worker)))
    }

    /// A farm whose workers are streams: pipelines, farms, or any other. Results arrive in any
    /// order.
    ///
    /// ```
    /// use ringtap_skeleton::stream::{Options, Policy, Stream};
    ///
    /// let words = ["to be", "or not", "to be"];
    /// let letters = Stream::from_iter(words)
    ///     .farm_of(2, Policy::RoundRobin, |_worker, lines| {
    ///         lines
    ///             .stage(|line: &str, out| line.split(' ').for_each(|word| out.send(word)))
    ///             .map(str::len)
    ///     })
    ///     .fold(0, |sum, letters| sum + letters);
    /// assert_eq!(letters.run(&Options::default())?.result, 13);
    /// # Ok::<(), ringtap_skeleton::RunError>(())
    /// ```
    pub fn farm_of<U: Send + 'a>(
        self,
        workers: usize,
        policy: Policy<'a, T>,
        make: impl FnMut(usize, Stream<'a, T>) -> Stream<'a, U> + 'a,
    ) -> Stream<'a, U> {
        self.any_farm(workers, policy, false, make)
    }

    /// A farm without collector: each worker folds its items into a state that begins as `init`
    /// of its number. The result is the states, by worker.
    pub fn farm_fold<A: Send + 'a>(
        self,
        workers: usize,
        policy: Policy<'a, T>,
        init: impl FnMut(usize) -> A + 'a,
        fold: impl Fn(A, T) -> A + Send + Sync + 'a,
    ) -> Network<'a, Vec<A>> {
        let fold = Arc::new(fold);
        self.sinks(workers, policy, init, move |_| {
            let fold = Arc::clone(&fold);
            move |state: &mut Option<A>, item| {
                *state = state.take().map(|state| fold(state, item));
                ().flow()
            }
        })
    }

    /// A farm without collector: each worker calls its own function for its items. If one ends
    /// early, the others still get theirs.
    ///
    /// ```
    /// use ringtap_skeleton::stream::{Options, Policy, Stream};
    ///
    /// let mut rows = vec![[1.0; 4]; 8];
    /// Stream::from_iter(rows.iter_mut())
    ///     .farm_for_each(2, Policy::OnDemand, |_worker| |row: &mut [f64; 4]| row[0] = 5.0)
    ///     .run(&Options::default())?;
    /// assert!(rows.iter().all(|row| row[0] == 5.0));
    /// # Ok::<(), ringtap_skeleton::RunError>(())
    /// ```
    pub fn farm_for_each<V: Verdict, F: FnMut(T) -> V + Send + 'a>(
        self,
        workers: usize,
        policy: Policy<'a, T>,
        mut make: impl FnMut(usize) -> F + 'a,
    ) -> Network<'a, ()> {
        let network = self.sinks(
            workers,
            policy,
            |_| (),
            move |worker| {
                let mut call = make(worker);
                move |_: &mut Option<()>, item| call(item).flow()
            },
        );
        network.map(drop)
    }

    /// Emitter → workers → collector.
    fn any_farm<U: Send + 'a>(
        self,
        workers: usize,
        policy: Policy<'a, T>,
        ordered: bool,
        mut make: impl FnMut(usize, Stream<'a, T>) -> Stream<'a, U> + 'a,
    ) -> Stream<'a, U> {
        Stream::new(move |builder| {
            check_workers(workers)?;
            let items = (self.build)(builder)?;
            let label = builder.label("farm");
            let order = builder.options.capacity.saturating_mul(workers);
            let (numbers, order) =
                if ordered { Some(builder.ring_of(order)?) } else { None }.unzip();
            let mut results = Vec::new();
            emit(builder, &label, items, workers, policy, numbers, |builder, worker, lane| {
                let scope = format!("{label} worker {worker}: ");
                let stream = make(worker, Stream::new(move |_| Ok(lane)));
                results.push(Inlet(builder.within(scope, stream.build)?));
                Ok(())
            })?;
            let (output, next) = builder.ring()?;
            let in_order = order.map(|order| InOrder::new(Inlet(order)));
            let collector = Collector::new(results, output, in_order);
            builder.add(format!("{label} collector"), LIGHT, collector);
            Ok(next)
        })
    }

    /// Emitter → sinks.
    fn sinks<A: Send + 'a, F: FnMut(&mut Option<A>, T) -> Flow + Send + 'a>(
        self,
        workers: usize,
        policy: Policy<'a, T>,
        mut init: impl FnMut(usize) -> A + 'a,
        mut make: impl FnMut(usize) -> F + 'a,
    ) -> Network<'a, Vec<A>> {
        let build = move |builder: &mut Builder<'a>| {
            check_workers(workers)?;
            let items = (self.build)(builder)?;
            let label = builder.label("farm");
            let mut slots = Vec::new();
            emit(builder, &label, items, workers, policy, None, |builder, worker, lane| {
                let slot: Slot<Option<A>> = Arc::new(Mutex::new(None));
                slots.push(Arc::clone(&slot));
                let state = Some(Some(init(worker)));
                let sink = SinkNode { inlet: Inlet(lane), state, on_item: make(worker), slot };
                builder.add(format!("{label} worker {worker}"), HEAVY, sink);
                Ok(())
            })?;
            let collect = move || slots.iter().map(|slot| take(slot).flatten()).collect();
            Ok(Box::new(collect) as Collect<'a, Vec<A>>)
        };
        Network { build: Box::new(build) }
    }
}

/// Adds an emitter and, by `worker`, the workers behind it.
fn emit<'a, T: Send + 'a>(
    builder: &mut Builder<'a>,
    label: &str,
    items: Consumer<T>,
    workers: usize,
    policy: Policy<'a, T>,
    order: Option<ringtap_ring::Producer<u32>>,
    mut worker: impl FnMut(&mut Builder<'a>, usize, Consumer<T>) -> Result<(), RunError>,
) -> Result<(), RunError> {
    let place = builder.place();
    let mut emitter = Emitter::new(Inlet(items), policy, order);
    for number in 0..workers {
        let (lane, end) = builder.ring()?;
        let first = builder.place();
        worker(builder, number, end)?;
        emitter.add_lane(lane, builder.counts(first).cloned());
    }
    // Before its workers, so that it shares a seat with the first of them.
    builder.add_at(place, format!("{label} emitter"), LIGHT, emitter);
    Ok(())
}
