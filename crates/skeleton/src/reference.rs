//! The reference: one thread, one worker, no ring. Every parallel run must give the same answer.

use std::panic::{AssertUnwindSafe, catch_unwind};

use ringtap_stage::{Application, Burst, Fed, Feed, Mark, Merger, Outbox, Shard, Worker};

use crate::counters::RunCounters;
use crate::idle::{Idle, Pause, Wait};
use crate::node::{Node, Step};
use crate::seats::Placed;
use crate::{BURST, Role, Run, RunError, RunOptions};

/// Runs `app` over everything `feed` has, in the calling thread.
pub fn run<A: Application>(
    app: &A,
    feed: impl Feed<Item = A::Item>,
) -> Result<Run<A::Report>, RunError> {
    let run = catch_unwind(AssertUnwindSafe(|| step_through(app, feed)));
    run.map_err(|panic| RunError::panicked("reference".into(), panic.as_ref()))
}

fn step_through<A: Application>(app: &A, mut feed: impl Feed<Item = A::Item>) -> Run<A::Report> {
    let mut worker = app.worker(Shard::WHOLE);
    let mut merger = app.merger();
    let mut burst = Burst::with_capacity(BURST);
    let mut handled = 0;
    // As many seats as cores may run beside it, so it does not spin.
    let mut idle = Idle::new(Wait::Park, 1, 0);
    loop {
        burst.clear();
        match feed.next(&mut burst) {
            Fed::Items => {
                worker.on_burst(&burst, burst.attachments(), &mut Direct(&mut merger));
                handled += burst.len() as u64;
            }
            Fed::Mark(mark) => {
                let partial = loop {
                    if let Some(partial) = worker.on_mark(&mark, &mut Direct(&mut merger)) {
                        break partial;
                    }
                };
                merger.on_partial(Shard::WHOLE, &mark, partial);
                if matches!(mark, Mark::End { .. }) {
                    break;
                }
            }
            Fed::Moved => {}
            Fed::Idle => {
                match idle.next(true, feed.is_slow()) {
                    Pause::Spin => std::hint::spin_loop(),
                    Pause::Yield => std::thread::yield_now(),
                    Pause::Park(nap) => {
                        std::thread::park_timeout(nap);
                        idle.woken(false);
                    }
                }
                continue;
            }
        }
        idle.reset();
    }
    Run { report: merger.finish(), dispatched: handled, handled: vec![handled] }
}

/// The whole run is one node with one step.
struct ReferenceNode<'a, A: Application, F> {
    app: &'a A,
    feed: Option<F>,
    counters: &'a RunCounters<A::Report>,
}

impl<A: Application, F: Feed<Item = A::Item> + Send> Node for ReferenceNode<'_, A, F> {
    fn step(&mut self) -> Step {
        if let Some(feed) = self.feed.take() {
            let run = step_through(self.app, feed);
            self.counters.dispatched[0].add(run.dispatched);
            self.counters.handled[0].add(run.dispatched);
            self.counters.report(run.report);
        }
        Step::Done
    }

    fn name(&self) -> String {
        "reference".into()
    }
}

/// Everything in one node, for any options.
pub(crate) fn nodes<'a, A: Application>(
    app: &'a A,
    feeds: Vec<impl Feed<Item = A::Item> + Send + 'a>,
    options: &RunOptions,
    counters: &'a RunCounters<A::Report>,
) -> Result<Vec<Placed<'a>>, RunError> {
    let [feed] = <[_; 1]>::try_from(feeds)
        .map_err(|_| RunError::Queues { queues: options.shards.queues(), most: 1 })?;
    Ok(vec![(Role::Worker(0), Box::new(ReferenceNode { app, feed: Some(feed), counters }))])
}

/// Messages go directly to the merger.
struct Direct<'a, M>(&'a mut M);

impl<M: Merger> Outbox<M::Message> for Direct<'_, M> {
    #[inline]
    fn send(&mut self, message: M::Message) {
        self.0.on_message(message);
    }
}
