//! A worker of the farm: takes bursts and marks from its lane.

use ringtap_stage::Application;

use super::lane::{LaneRx, Next};
use crate::BURST;
use crate::node::{Node, Step};
use crate::owner::Owner;

pub(super) struct WorkerNode<'a, A: Application> {
    pub(super) owner: Owner<'a, A>,
    pub(super) lane: LaneRx<A::Item>,
}

impl<A: Application> Node for WorkerNode<'_, A> {
    fn step(&mut self) -> Step {
        if let Some(step) = self.owner.busy() {
            return step;
        }
        match self.lane.next(BURST) {
            Next::Items(burst, attachments) => {
                self.owner.items(burst, attachments);
                let n = burst.len();
                self.lane.release(n);
            }
            Next::Mark(mark) => self.owner.mark(mark),
            Next::Nothing => return Step::Idle,
        }
        Step::Worked
    }

    fn name(&self) -> String {
        self.owner.name()
    }

    fn polls(&self) -> bool {
        false
    }
}
