//! The merger's node: receives from the workers' rings in turn. The paper's MainAnalyzer.

use ringtap_ring::Consumer;
use ringtap_stage::{Application, Mark, Merger, Shard};

use crate::counters::RunCounters;
use crate::node::{Node, Step};
use crate::reports::Report;

/// Most reports taken from one ring before the next has its turn.
const TURN: usize = 64;

pub(crate) struct MergerNode<'a, A: Application> {
    merger: Option<A::Merger>,
    reports: Vec<Consumer<Report<A>>>,
    running: usize,
    counters: &'a RunCounters<A::Report>,
}

impl<'a, A: Application> MergerNode<'a, A> {
    pub(crate) fn new(
        app: &A,
        reports: Vec<Consumer<Report<A>>>,
        counters: &'a RunCounters<A::Report>,
    ) -> Self {
        Self { merger: Some(app.merger()), running: reports.len(), reports, counters }
    }
}

impl<A: Application> Node for MergerNode<'_, A> {
    fn step(&mut self) -> Step {
        let Some(merger) = &mut self.merger else { return Step::Done };
        let count = self.reports.len();
        let mut taken = 0;
        for (index, reports) in self.reports.iter_mut().enumerate() {
            for _ in 0..TURN {
                match reports.pop() {
                    None => break,
                    Some(Report::Message(message)) => merger.on_message(message),
                    Some(Report::Partial(mark, partial)) => {
                        merger.on_partial(Shard { index, count }, &mark, partial);
                        self.running -= usize::from(matches!(mark, Mark::End { .. }));
                    }
                }
                taken += 1;
            }
        }
        if self.running > 0 {
            return if taken > 0 { Step::Worked } else { Step::Idle };
        }
        if let Some(merger) = self.merger.take() {
            self.counters.report(merger.finish());
        }
        Step::Done
    }

    fn name(&self) -> String {
        "merger".into()
    }

    fn polls(&self) -> bool {
        false
    }
}
