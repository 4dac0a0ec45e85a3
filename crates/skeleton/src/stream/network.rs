//! A finished network: a stream with an end. Runs it, or simulates it.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use ringtap_ring::{Consumer, Kind, Producer, ring};

use super::counts::{Counts, NodeStats};
use super::pace::{Pace, now};
use crate::node::{Node, Step};
use crate::seats;
use crate::{RunError, Wait, free_cores, simulate};

/// How a network runs.
#[derive(Clone, Debug)]
pub struct Options<'a> {
    /// The flavour of all rings.
    pub ring: Kind,
    /// Items a ring holds, at least 1.
    pub capacity: usize,
    /// Items after which a ring's index is published; some flavours ignore it. A step publishes
    /// everything when it ends, so this matters within a step, mainly when a source blocks between
    /// two items: with 1 no item waits.
    pub batch: usize,
    /// Most threads, including the calling one. Nodes beyond that share.
    pub cores: usize,
    /// The core of each thread (reused in turn if there are fewer); empty: the kernel chooses.
    pub pin: Vec<usize>,
    /// How an idle thread waits.
    pub wait: Wait,
    /// Ends the sources when it becomes true; items in flight are still handled.
    pub stop: Option<&'a AtomicBool>,
}

impl Default for Options<'_> {
    /// The default ring of 1,024 items and a batch of 50, on all cores that the process may use.
    fn default() -> Self {
        Self {
            ring: Kind::default(),
            capacity: 1024,
            batch: 50,
            cores: free_cores(),
            pin: Vec::new(),
            wait: Wait::default(),
            stop: None,
        }
    }
}

/// A stream with an end: sources, stages, farms and sinks, ready to run.
#[must_use = "nothing happens before it is run"]
pub struct Network<'a, R> {
    pub(super) build: Build<'a, Collect<'a, R>>,
}

/// Adds nodes to a network, and returns its outputs.
pub(super) type Build<'a, X> = Box<dyn FnOnce(&mut Builder<'a>) -> Result<X, RunError> + 'a>;

/// Fetches the result from the sinks.
pub(super) type Collect<'a, R> = Box<dyn FnOnce() -> Option<R> + 'a>;

/// The result of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Run<R> {
    /// The sink's result.
    pub result: R,
    /// Statistics of each node, sources first.
    pub nodes: Vec<NodeStats>,
    /// How long the run took; zero in a simulation.
    pub elapsed: Duration,
}

impl<'a, R: 'a> Network<'a, R> {
    /// Changes the result.
    pub fn map<S>(self, change: impl FnOnce(R) -> S + 'a) -> Network<'a, S> {
        let build = move |builder: &mut Builder<'a>| {
            let collect = (self.build)(builder)?;
            Ok(Box::new(move || collect().map(change)) as Collect<'a, S>)
        };
        Network { build: Box::new(build) }
    }

    /// Runs to the end, in the calling thread and as many others as [`Options::cores`] allows.
    ///
    /// # Errors
    /// The first error or panic of a node, with the node's name; options that cannot be met; a
    /// thread that cannot be started.
    pub fn run(self, options: &Options<'a>) -> Result<Run<R>, RunError> {
        let mut builder = Builder::new(options, Pace::by_the_clock());
        let collect = (self.build)(&mut builder)?;
        let weights: Vec<_> = builder.nodes.iter().map(|n| n.weight).collect();
        let mut seats: Vec<Vec<Box<dyn Node + 'a>>> = Vec::new();
        let mut counters = Vec::new();
        for (planned, seat) in builder.nodes.into_iter().zip(seats::share(&weights, options.cores))
        {
            seats.resize_with(seats.len().max(seat + 1), Vec::new);
            seats[seat].push(planned.node);
            counters.push((planned.name, planned.counts));
        }
        let start = now();
        seats::run(seats, &options.pin, options.wait)?;
        finish(collect, counters, now() - start)
    }

    /// Steps the same nodes in the calling thread, in an order drawn from `seed`. Its findings
    /// (lost items, broken order, deadlocks) hold for runs, and the same seed finds them again. A
    /// source that returns `Pending` for long looks like a deadlock.
    ///
    /// # Errors
    /// As [`Network::run`], and [`RunError::Deadlock`].
    pub fn simulate(self, options: &Options<'a>, seed: u64) -> Result<Run<R>, RunError> {
        let mut builder = Builder::new(options, Pace::by_number(1 + (seed % 4) as usize));
        let collect = (self.build)(&mut builder)?;
        let (nodes, counters) =
            builder.nodes.into_iter().map(|n| (n.node, (n.name, n.counts))).unzip();
        simulate::nodes(nodes, seed)?;
        finish(collect, counters, Duration::ZERO)
    }
}

impl<'a, R: 'a> Network<'a, Option<R>> {
    /// For sinks whose state exists after every successful run.
    pub(super) fn flatten(self) -> Network<'a, R> {
        let build = move |builder: &mut Builder<'a>| {
            let collect = (self.build)(builder)?;
            Ok(Box::new(move || collect().flatten()) as Collect<'a, R>)
        };
        Network { build: Box::new(build) }
    }
}

fn finish<R>(
    collect: Collect<'_, R>,
    counters: Vec<(String, Arc<Counts>)>,
    elapsed: Duration,
) -> Result<Run<R>, RunError> {
    let nodes = counters.into_iter().map(|(name, counts)| counts.stats(name, elapsed)).collect();
    // Every sink leaves a result before it is done, and a successful run ends when all are done.
    let result = collect().ok_or_else(|| RunError::Panicked {
        node: "sink".into(),
        message: "ended without a result".into(),
    })?;
    Ok(Run { result, nodes, elapsed })
}

/// A node's work in one step; [`Counted`] makes a node of it.
pub(super) trait Work: Send {
    /// Whether it counts items: those it took are handled when the step ends.
    const COUNTS_ITEMS: bool = true;

    /// As [`Node::polls`].
    fn polls(&self) -> bool {
        false
    }

    /// As [`Node::step`]: handles items while `pace` allows.
    fn work(&mut self, pace: &mut Pace, counts: &Counts) -> Step;
}

/// The weight of a node when nodes share a core: user code in a stage or worker, against nodes that
/// only move items.
pub(super) const HEAVY: u32 = 4;
pub(super) const LIGHT: u32 = 1;

/// The builder of a network.
pub(super) struct Builder<'a> {
    pub(super) options: Options<'a>,
    pace: Pace,
    nodes: Vec<Planned<'a>>,
    /// Prefix of nodes within a farm's worker: "farm 2 worker 0: ".
    scope: String,
    /// Number of named skeletons in this scope.
    named: usize,
}

struct Planned<'a> {
    node: Box<dyn Node + 'a>,
    name: String,
    weight: u32,
    counts: Arc<Counts>,
    counts_items: bool,
}

impl<'a> Builder<'a> {
    fn new(options: &Options<'a>, pace: Pace) -> Self {
        let options = options.clone();
        Self { options, pace, nodes: Vec::new(), scope: String::new(), named: 0 }
    }

    /// A name for the next skeleton of its kind: "map 2".
    pub(super) fn label(&mut self, kind: &str) -> String {
        self.named += 1;
        format!("{}{kind} {}", self.scope, self.named)
    }

    /// Calls `build` for nodes within `scope`.
    pub(super) fn within<X>(
        &mut self,
        scope: String,
        build: impl FnOnce(&mut Self) -> Result<X, RunError>,
    ) -> Result<X, RunError> {
        let outer = (std::mem::replace(&mut self.scope, scope), std::mem::take(&mut self.named));
        let built = build(self);
        (self.scope, self.named) = outer;
        built
    }

    /// The number of nodes so far: the index of the next one.
    pub(super) fn place(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn add(&mut self, name: String, weight: u32, work: impl Work + 'a) {
        self.add_at(self.nodes.len(), name, weight, work);
    }

    /// As `add`, but before the nodes from `place` on.
    pub(super) fn add_at<W: Work + 'a>(
        &mut self,
        place: usize,
        name: String,
        weight: u32,
        work: W,
    ) {
        let counts = Arc::new(Counts::default());
        let node = Box::new(Counted {
            work,
            name: name.clone(),
            counts: Arc::clone(&counts),
            pace: self.pace.clone(),
        });
        let counts_items = W::COUNTS_ITEMS;
        self.nodes.insert(place, Planned { node, name, weight, counts, counts_items });
    }

    /// The counters of the node at `place`, if it counts items.
    pub(super) fn counts(&self, place: usize) -> Option<&Arc<Counts>> {
        self.nodes.get(place).filter(|n| n.counts_items).map(|n| &n.counts)
    }

    pub(super) fn ring<T: Send>(&self) -> Result<(Producer<T>, Consumer<T>), RunError> {
        self.ring_of(self.options.capacity)
    }

    pub(super) fn ring_of<T: Send>(
        &self,
        capacity: usize,
    ) -> Result<(Producer<T>, Consumer<T>), RunError> {
        Ok(ring(self.options.ring, capacity, self.options.batch)?)
    }
}

/// A node that paces and counts its work.
struct Counted<W> {
    work: W,
    name: String,
    counts: Arc<Counts>,
    pace: Pace,
}

impl<W: Work> Node for Counted<W> {
    fn step(&mut self) -> Step {
        self.pace.begin();
        let step = self.work.work(&mut self.pace, &self.counts);
        self.counts.steps.add(1);
        match step {
            Step::Idle => self.counts.idle_steps.add(1),
            _ => self.counts.busy_ns.add(self.pace.elapsed().as_nanos() as u64),
        }
        step
    }

    fn name(&self) -> String {
        self.name.clone()
    }

    fn polls(&self) -> bool {
        self.work.polls()
    }
}

/// Any node, counted.
pub(super) struct Foreign<N>(pub(super) N);

impl<N: Node> Work for Foreign<N> {
    const COUNTS_ITEMS: bool = false;

    fn polls(&self) -> bool {
        self.0.polls()
    }

    fn work(&mut self, _: &mut Pace, _: &Counts) -> Step {
        self.0.step()
    }
}
