//! A worker of the pipeline: takes its part out of each message. The paper's WRK.

use ringtap_stage::{Application, Burst};

use super::message::{Inbox, Outlet};
use crate::node::{Node, Step};
use crate::owner::Owner;

pub(super) struct WorkerNode<'a, A: Application> {
    owner: Owner<'a, A>,
    /// The position of its part in a message.
    place: usize,
    inbox: Inbox<A::Item>,
    outlet: Outlet<A::Item>,
    /// The part being handled; empty between steps, when it goes into a message for a full one.
    part: Burst<A::Item>,
}

impl<'a, A: Application> WorkerNode<'a, A> {
    pub(super) fn new(
        owner: Owner<'a, A>,
        place: usize,
        inbox: Inbox<A::Item>,
        outlet: Outlet<A::Item>,
        items: usize,
    ) -> Self {
        Self { owner, place, inbox, outlet, part: Burst::with_capacity(items) }
    }
}

impl<A: Application> Node for WorkerNode<'_, A> {
    fn step(&mut self) -> Step {
        if let Some(step) = self.owner.busy() {
            return step;
        }
        let Some(mut message) = self.inbox.take() else {
            return Step::Idle;
        };
        std::mem::swap(&mut self.part, &mut message.parts[self.place]);
        let mark = message.mark;
        self.outlet.pass_on(message);
        self.owner.items(&self.part, self.part.attachments());
        self.part.clear();
        if let Some(mark) = mark {
            self.owner.mark(mark);
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
