//! The reference: one thread, one worker, no ring. Whatever runs in parallel must give this
//! answer.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use ringtap_stage::{Application, Burst, Fed, Feed, Mark, Merger, Outbox, Shard, Worker};

use crate::books::Books;
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
    let mut idle = Rest::default();
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
                idle.rest();
                continue;
            }
        }
        idle = Rest::default();
    }
    Run { report: merger.finish(), dispatched: handled, handled: vec![handled] }
}

/// How it waits for a quiet source: at first it lets other threads run, then it sleeps, never for long.
#[derive(Default)]
struct Rest {
    times: u32,
}

impl Rest {
    const YIELDS: u32 = 200;
    const NAP: Duration = Duration::from_millis(1);

    fn rest(&mut self) {
        self.times += u32::from(self.times < Self::YIELDS);
        if self.times < Self::YIELDS {
            std::thread::yield_now();
        } else {
            std::thread::park_timeout(Self::NAP);
        }
    }
}

/// The whole run is one node, and its only step.
struct Whole<'a, A: Application, F> {
    app: &'a A,
    feed: Option<F>,
    books: &'a Books<A::Report>,
}

impl<A: Application, F: Feed<Item = A::Item> + Send> Node for Whole<'_, A, F> {
    fn step(&mut self) -> Step {
        if let Some(feed) = self.feed.take() {
            let run = step_through(self.app, feed);
            self.books.dispatched[0].add(run.dispatched);
            self.books.handled[0].add(run.dispatched);
            self.books.report(run.report);
        }
        Step::Done
    }

    fn name(&self) -> String {
        "reference".into()
    }
}

/// All in one node, whatever the options.
pub(crate) fn nodes<'a, A: Application>(
    app: &'a A,
    feeds: Vec<impl Feed<Item = A::Item> + Send + 'a>,
    options: &RunOptions,
    books: &'a Books<A::Report>,
) -> Result<Vec<Placed<'a>>, RunError> {
    let [feed] = <[_; 1]>::try_from(feeds)
        .map_err(|_| RunError::Queues { queues: options.shards.queues(), most: 1 })?;
    Ok(vec![(Role::Worker(0), Box::new(Whole { app, feed: Some(feed), books }))])
}

/// Messages go straight to the merger.
struct Direct<'a, M>(&'a mut M);

impl<M: Merger> Outbox<M::Message> for Direct<'_, M> {
    #[inline]
    fn send(&mut self, message: M::Message) {
        self.0.on_message(message);
    }
}
