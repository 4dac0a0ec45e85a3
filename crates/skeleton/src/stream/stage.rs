//! A stage of a pipeline: takes items from one ring, sends others to the next.

use std::error::Error;
use std::ops::ControlFlow;

use super::counts::Counts;
use super::ends::{Inlet, Outlet, Taken};
use super::network::Work;
use super::pace::Pace;
use crate::node::Step;

/// Any error, as a stage may return it.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// Continue, end, or failure: see [`Verdict`].
pub type Flow = Result<ControlFlow<()>, BoxError>;

/// The possible results of a closure for an item.
///
/// - `()`: continue;
/// - [`ControlFlow`]: `Break` means that this was the last item wanted. Later items are dropped,
///   and the nodes before end early;
/// - `Result` of one of these: an error ends the run with [`RunError::Failed`].
///
/// [`RunError::Failed`]: crate::RunError::Failed
pub trait Verdict {
    /// As one type.
    fn flow(self) -> Flow;
}

impl Verdict for () {
    #[inline]
    fn flow(self) -> Flow {
        Ok(ControlFlow::Continue(()))
    }
}

impl Verdict for ControlFlow<()> {
    #[inline]
    fn flow(self) -> Flow {
        Ok(self)
    }
}

impl<V: Verdict, E: Into<BoxError>> Verdict for Result<V, E> {
    #[inline]
    fn flow(self) -> Flow {
        self.map_err(Into::into)?.flow()
    }
}

/// A stage with state and an end; for others a closure is enough ([`Stream::stage`]).
///
/// ```
/// use std::ops::ControlFlow;
/// use ringtap_skeleton::stream::{Flow, Options, Outlet, Stage, Stream};
///
/// /// Sums of three.
/// #[derive(Default)]
/// struct Triples(Vec<u32>);
///
/// impl Stage for Triples {
///     type In = u32;
///     type Out = u32;
///     fn on_item(&mut self, item: u32, out: &mut Outlet<u32>) -> Flow {
///         self.0.push(item);
///         if self.0.len() == 3 {
///             out.send(self.0.drain(..).sum());
///         }
///         Ok(ControlFlow::Continue(()))
///     }
///     fn on_end(&mut self, out: &mut Outlet<u32>) -> Flow {
///         out.send(self.0.drain(..).sum());
///         Ok(ControlFlow::Break(()))
///     }
/// }
///
/// let sums = Stream::from_iter(1..=8).add_stage(Triples::default()).collect();
/// assert_eq!(sums.run(&Options::default())?.result, [6, 15, 15]);
/// # Ok::<(), ringtap_skeleton::RunError>(())
/// ```
///
/// [`Stream::stage`]: super::Stream::stage
pub trait Stage: Send {
    /// The type of input items.
    type In: Send;
    /// The type of output items.
    type Out: Send;

    /// Handles an item. Any number may be sent.
    fn on_item(&mut self, item: Self::In, out: &mut Outlet<Self::Out>) -> Flow;

    /// No item follows. An error still fails the run.
    fn on_end(&mut self, out: &mut Outlet<Self::Out>) -> Flow {
        let _ = out;
        Ok(ControlFlow::Break(()))
    }
}

/// A stage made of a closure.
pub(super) struct FnStage<F, T, U> {
    pub(super) on_item: F,
    pub(super) types: std::marker::PhantomData<fn(T) -> U>,
}

impl<F, T, U> FnStage<F, T, U> {
    pub(super) fn new(on_item: F) -> Self {
        Self { on_item, types: std::marker::PhantomData }
    }
}

impl<T: Send, U: Send, F: FnMut(T, &mut Outlet<U>) -> Flow + Send> Stage for FnStage<F, T, U> {
    type In = T;
    type Out = U;

    #[inline]
    fn on_item(&mut self, item: T, out: &mut Outlet<U>) -> Flow {
        (self.on_item)(item, out)
    }
}

/// The node of a stage.
pub(super) struct StageNode<S: Stage> {
    stage: S,
    inlet: Inlet<S::In>,
    outlet: Outlet<S::Out>,
    /// No more items are taken; leftovers are still sent.
    ended: bool,
}

impl<S: Stage> StageNode<S> {
    pub(super) fn new(stage: S, inlet: Inlet<S::In>, outlet: Outlet<S::Out>) -> Self {
        Self { stage, inlet, outlet, ended: false }
    }

    /// Takes items while there is room for their results: returns their number, and whether more
    /// would follow.
    #[inline]
    fn take(&mut self, pace: &mut Pace, counts: &Counts) -> Result<u64, BoxError> {
        let mut taken = 0;
        while self.outlet.clear() && !self.ended && pace.more() {
            match self.inlet.take() {
                Taken::Item(item) => {
                    taken += 1;
                    if self.stage.on_item(item, &mut self.outlet)?.is_break() {
                        self.end()?;
                    }
                }
                Taken::Nothing => {
                    counts.empty.add(1);
                    break;
                }
                Taken::End => self.end()?,
            }
        }
        Ok(taken)
    }

    fn end(&mut self) -> Result<(), BoxError> {
        self.ended = true;
        self.stage.on_end(&mut self.outlet).map(drop)
    }
}

impl<S: Stage> Work for StageNode<S> {
    fn work(&mut self, pace: &mut Pace, counts: &Counts) -> Step {
        if self.outlet.is_abandoned() {
            return Step::Done;
        }
        let before = self.outlet.moved();
        let taken = match self.take(pace, counts) {
            Ok(taken) => taken,
            Err(error) => return Step::Failed(error),
        };
        let cleared = self.outlet.clear();
        self.outlet.flush();
        self.inlet.flush();
        let sent = self.outlet.moved() - before;
        counts.items(taken, sent);
        if !cleared {
            counts.full.add(1);
        }
        match () {
            () if self.ended && cleared => Step::Done,
            () if taken + sent > 0 => Step::Worked,
            () => Step::Idle,
        }
    }
}
