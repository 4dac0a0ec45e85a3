//! A source: the beginning of a stream.

use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use super::counts::Counts;
use super::ends::Outlet;
use super::network::Work;
use super::pace::Pace;
use crate::node::Step;

/// Calls `next` for items until it returns `Ready(None)`, a stop is requested, or the receivers are
/// gone.
pub(super) struct SourceNode<'a, T: Send, F> {
    pub(super) next: F,
    pub(super) outlet: Outlet<T>,
    pub(super) stop: Option<&'a AtomicBool>,
    pub(super) ended: bool,
}

impl<T: Send, F: FnMut() -> Poll<Option<T>> + Send> Work for SourceNode<'_, T, F> {
    fn polls(&self) -> bool {
        true
    }

    fn work(&mut self, pace: &mut Pace, counts: &Counts) -> Step {
        if self.outlet.is_abandoned() {
            return Step::Done;
        }
        // Relaxed: it orders no other data.
        self.ended |= self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed));
        let before = self.outlet.moved();
        let mut made = 0;
        while self.outlet.clear() && !self.ended && pace.more() {
            match (self.next)() {
                Poll::Ready(Some(item)) => {
                    made += 1;
                    self.outlet.send(item);
                }
                Poll::Ready(None) => self.ended = true,
                Poll::Pending => {
                    counts.empty.add(1);
                    break;
                }
            }
        }
        let cleared = self.outlet.clear();
        self.outlet.flush();
        let sent = self.outlet.moved() - before;
        counts.items(made, sent);
        if !cleared {
            counts.full.add(1);
        }
        match () {
            () if self.ended && cleared => Step::Done,
            () if made + sent > 0 => Step::Worked,
            () => Step::Idle,
        }
    }
}
