//! Streams through nodes: pipelines, farms and feedback on any items, as in FastFlow.
//!
//! ```text
//! Stream::from_iter(…)     source ──▶
//!     .map(f)                       map ──▶
//!     .farm(3, policy, g)                 emitter ═▶ workers ═▶ collector ──▶
//!     .fold(0, h)                                                            sink
//!     .run(&options)       each ──▶ a bounded ring, each word a node on some thread's seat
//! ```
//!
//! Source: the skeletons of FastFlow, as in M. Danelutto, L. Deri, D. De Sensi, *Network
//! Monitoring on Multicores with Algorithmic Skeletons* (2011), on the rings of `ringtap-ring`.
//! docs/ENGINE.md explains which skeleton to use.
//!
//! A [`Stream`] is a description; nothing runs before its [`Network`] does. Nodes are joined by
//! single-producer/single-consumer rings, never block, and share as many threads as there are
//! cores, including the calling thread. So items may borrow from the caller.
//!
//! Invariants: every item is handled once or, when a later node wants no more, dropped once; all
//! rings are bounded; a run ends, with the first error if there was one.

mod counts;
mod ends;
mod farm;
mod feedback;
mod network;
mod pace;
mod sink;
mod source;
mod stage;

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::task::Poll;

use ringtap_ring::{Consumer, Producer};

pub use self::counts::NodeStats;
pub use self::ends::Outlet;
pub use self::farm::Policy;
pub use self::feedback::{Divided, divide_and_conquer};
pub use self::network::{Network, Options, Run};
pub use self::stage::{BoxError, Flow, Stage, Verdict};

use self::ends::Inlet;
use self::network::{Build, Builder, Collect, Foreign, HEAVY, LIGHT};
use self::sink::{SinkNode, Slot, take};
use self::source::SourceNode;
use self::stage::{FnStage, StageNode};
use crate::RunError;
use crate::node::Node;

/// A stream of items through a pipeline, to which stages may be added.
///
/// ```
/// use ringtap_skeleton::stream::{Options, Policy, Stream};
///
/// let run = Stream::from_iter(1..=1_000u64)
///     .map(|x| x + 1)
///     .stage(|x, out| if x % 2 == 0 { out.send(x) })
///     .farm_ordered(3, Policy::RoundRobin, |_worker| |x| x * x)
///     .collect()
///     .run(&Options::default())?;
/// assert_eq!(run.result[..3], [4, 16, 36]);
/// assert_eq!((run.nodes[0].name.as_str(), run.nodes[0].items_out), ("source", 1_000));
/// # Ok::<(), ringtap_skeleton::RunError>(())
/// ```
#[must_use = "a stream needs an end: fold, collect, for_each"]
pub struct Stream<'a, T: Send> {
    build: Build<'a, Consumer<T>>,
}

impl<'a, T: Send + 'a> Stream<'a, T> {
    /// The items of an iterator. If it blocks, the nodes that share its thread wait, too; see
    /// [`Stream::from_poll`] and [`Options::batch`].
    #[expect(clippy::should_implement_trait, reason = "that one cannot take borrowed, Send items")]
    pub fn from_iter<I>(items: I) -> Self
    where
        I: IntoIterator<Item = T>,
        I::IntoIter: Send + 'a,
    {
        let mut items = items.into_iter();
        Self::from_poll(move || Poll::Ready(items.next()))
    }

    /// Items without blocking: `next` returns `Ready(Some(item))`, `Ready(None)` at the end, or
    /// `Pending` if there is nothing now. It is called again at least every millisecond.
    ///
    /// ```
    /// use std::{sync::mpsc, task::Poll};
    /// use ringtap_skeleton::stream::{Options, Stream};
    ///
    /// let (send, receive) = mpsc::sync_channel(8);
    /// let sum = std::thread::scope(|scope| {
    ///     scope.spawn(move || (0..100u32).try_for_each(|n| send.send(n)));
    ///     let items = move || match receive.try_recv() {
    ///         Ok(item) => Poll::Ready(Some(item)),
    ///         Err(mpsc::TryRecvError::Empty) => Poll::Pending,
    ///         Err(mpsc::TryRecvError::Disconnected) => Poll::Ready(None),
    ///     };
    ///     Stream::from_poll(items).fold(0, |sum, n| sum + n).run(&Options::default())
    /// });
    /// assert_eq!(sum?.result, 4_950);
    /// # Ok::<(), ringtap_skeleton::RunError>(())
    /// ```
    pub fn from_poll(next: impl FnMut() -> Poll<Option<T>> + Send + 'a) -> Self {
        Self::new(move |builder| {
            let (output, items) = builder.ring()?;
            let (outlet, stop) = (Outlet::new(output), builder.options.stop);
            let source = SourceNode { next, outlet, stop, ended: false };
            builder.add("source".into(), LIGHT, source);
            Ok(items)
        })
    }

    /// A stage that makes one item of each.
    pub fn map<U: Send + 'a>(self, mut f: impl FnMut(T) -> U + Send + 'a) -> Stream<'a, U> {
        self.staged("map", move |item, out: &mut Outlet<U>| {
            out.send(f(item));
            ().flow()
        })
    }

    /// A stage that makes one item of each, or fails the run.
    ///
    /// ```
    /// use ringtap_skeleton::{RunError, stream::{Options, Stream}};
    ///
    /// let sum = |words: &'static str| {
    ///     Stream::from_iter(words.split(' '))
    ///         .try_map(str::parse::<u32>)
    ///         .fold(0, |sum, n| sum + n)
    ///         .run(&Options::default())
    /// };
    /// assert_eq!(sum("1 2 3")?.result, 6);
    /// let error = sum("1 two 3").unwrap_err();
    /// assert_eq!(error.to_string(), "map 1 failed: invalid digit found in string");
    /// # Ok::<(), RunError>(())
    /// ```
    pub fn try_map<U: Send + 'a, E: Into<BoxError>>(
        self,
        mut f: impl FnMut(T) -> Result<U, E> + Send + 'a,
    ) -> Stream<'a, U> {
        self.staged("map", move |item, out: &mut Outlet<U>| {
            out.send(f(item).map_err(Into::into)?);
            ().flow()
        })
    }

    /// A stage that sends any number of items for each. It may end the stream early or fail: see
    /// [`Verdict`].
    ///
    /// ```
    /// use std::ops::ControlFlow::{Break, Continue};
    /// use ringtap_skeleton::stream::{Options, Outlet, Stream};
    ///
    /// let first = Stream::from_iter(0u64..) // without end
    ///     .stage(|x, out| {
    ///         out.send(x);
    ///         if x == 9 { Break(()) } else { Continue(()) }
    ///     })
    ///     .collect();
    /// assert_eq!(first.run(&Options::default())?.result.len(), 10);
    /// # Ok::<(), ringtap_skeleton::RunError>(())
    /// ```
    pub fn stage<U: Send + 'a, V: Verdict>(
        self,
        mut f: impl FnMut(T, &mut Outlet<U>) -> V + Send + 'a,
    ) -> Stream<'a, U> {
        self.staged("stage", move |item, out: &mut Outlet<U>| f(item, out).flow())
    }

    /// A stage with state and an end.
    pub fn add_stage<S: Stage<In = T> + 'a>(self, stage: S) -> Stream<'a, S::Out>
    where
        S::Out: 'a,
    {
        self.add("stage", stage)
    }

    /// A node of any other kind, made from its input and output rings. It must keep the contract of
    /// [`Node`], be done when its input is closed and empty or its output abandoned, and flush
    /// before it returns [`Step::Idle`](crate::Step::Idle).
    pub fn add_node<U: Send + 'a, N: Node + 'a>(
        self,
        make: impl FnOnce(Consumer<T>, Producer<U>) -> N + 'a,
    ) -> Stream<'a, U> {
        Stream::new(move |builder| {
            let items = (self.build)(builder)?;
            let (output, next) = builder.ring()?;
            let node = make(items, output);
            let name = builder.label(&node.name());
            builder.add(name, HEAVY, Foreign(node));
            Ok(next)
        })
    }

    /// The end: folds all items into one value.
    pub fn fold<A: Send + 'a>(
        self,
        init: A,
        mut f: impl FnMut(A, T) -> A + Send + 'a,
    ) -> Network<'a, A> {
        let fold = move |state: &mut Option<A>, item| {
            *state = state.take().map(|state| f(state, item));
            ().flow()
        };
        // The state is taken out only while an item is folded in.
        self.sink("fold", Some(init), fold).flatten()
    }

    /// The end: calls a function for each item. It may end the stream early or fail: see
    /// [`Verdict`].
    pub fn for_each<V: Verdict>(self, mut f: impl FnMut(T) -> V + Send + 'a) -> Network<'a, ()> {
        self.sink("for_each", (), move |_, item| f(item).flow())
    }

    /// The end: all items, in the order they came.
    pub fn collect(self) -> Network<'a, Vec<T>> {
        self.sink("collect", Vec::new(), |items: &mut Vec<T>, item| {
            items.push(item);
            Ok(ControlFlow::Continue(()))
        })
    }

    fn new(build: impl FnOnce(&mut Builder<'a>) -> Result<Consumer<T>, RunError> + 'a) -> Self {
        Self { build: Box::new(build) }
    }

    fn staged<U: Send + 'a>(
        self,
        kind: &'static str,
        on_item: impl FnMut(T, &mut Outlet<U>) -> Flow + Send + 'a,
    ) -> Stream<'a, U> {
        self.add(kind, FnStage::new(on_item))
    }

    fn add<S: Stage<In = T> + 'a>(self, kind: &'static str, stage: S) -> Stream<'a, S::Out>
    where
        S::Out: 'a,
    {
        Stream::new(move |builder| {
            let items = (self.build)(builder)?;
            let (output, next) = builder.ring()?;
            let name = builder.label(kind);
            builder.add(name, HEAVY, StageNode::new(stage, Inlet(items), Outlet::new(output)));
            Ok(next)
        })
    }

    fn sink<A: Send + 'a>(
        self,
        kind: &'static str,
        init: A,
        on_item: impl FnMut(&mut A, T) -> Flow + Send + 'a,
    ) -> Network<'a, A> {
        let build = move |builder: &mut Builder<'a>| {
            let items = (self.build)(builder)?;
            let slot: Slot<A> = Arc::new(Mutex::new(None));
            let name = builder.label(kind);
            let state = Some(init);
            let sink = SinkNode { inlet: Inlet(items), state, on_item, slot: Arc::clone(&slot) };
            builder.add(name, LIGHT, sink);
            Ok(Box::new(move || take(&slot)) as Collect<'a, A>)
        };
        Network { build: Box::new(build) }
    }
}
