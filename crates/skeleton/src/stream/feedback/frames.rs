//! Frames: a worker's divided problems, until their parts are solved.
//!
//! ```text
//! frame 0 │ to: whole problem    │ waits for 1 │ parts: [  3  , None ]
//! frame 1 │ to: frame 0, part 1  │ waits for 2 │ parts: [ None, None ]
//! ```
//!
//! Frames are reused, with the room for their parts, so a run allocates only until its deepest
//! problems have been reached.

/// The destination of a solution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Address {
    /// The worker that owns the frame; [`Address::OUT`] has none.
    pub(super) owner: u32,
    frame: u32,
    part: u32,
}

impl Address {
    /// Out of the farm: the solution of a whole problem.
    pub(super) const OUT: Self = Self { owner: u32::MAX, frame: 0, part: 0 };
}

struct Frame<S> {
    to: Address,
    /// Parts without a solution.
    waiting: usize,
    parts: Vec<Option<S>>,
}

/// The frames of one worker.
pub(super) struct Frames<S> {
    owner: u32,
    frames: Vec<Frame<S>>,
    unused: Vec<u32>,
}

impl<S> Frames<S> {
    pub(super) fn new(owner: u32) -> Self {
        Self { owner, frames: Vec::new(), unused: Vec::new() }
    }

    /// A frame for a problem with the destination `to`; returns the addresses of its parts 0, 1, ….
    /// `parts` must be at least 1.
    pub(super) fn open(&mut self, to: Address, parts: usize) -> impl Fn(usize) -> Address + use<S> {
        let frame = self.unused.pop().unwrap_or_else(|| {
            self.frames.push(Frame { to, waiting: 0, parts: Vec::new() });
            self.frames.len() as u32 - 1
        });
        let open = &mut self.frames[frame as usize];
        open.to = to;
        open.waiting = parts;
        open.parts.resize_with(parts, || None);
        let owner = self.owner;
        move |part| Address { owner, frame, part: part as u32 }
    }

    /// Stores a solution, and combines as long as that completes frames. Returns a solution that
    /// must leave this worker, if any.
    #[inline]
    pub(super) fn deliver(
        &mut self,
        mut to: Address,
        mut solution: S,
        combine: impl Fn(&mut dyn Iterator<Item = S>) -> S,
    ) -> Option<(Address, S)> {
        while to.owner == self.owner {
            let frame = &mut self.frames[to.frame as usize];
            frame.parts[to.part as usize] = Some(solution);
            frame.waiting -= 1;
            if frame.waiting > 0 {
                return None;
            }
            solution = combine(&mut frame.parts.drain(..).flatten());
            self.unused.push(to.frame);
            to = frame.to;
        }
        Some((to, solution))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn solutions_are_combined_in_the_order_of_the_parts_and_frames_used_again() {
        let join = |parts: &mut dyn Iterator<Item = String>| parts.collect::<String>();
        let mut frames = Frames::new(3);
        for _ in 0..3 {
            let outer = frames.open(Address::OUT, 2);
            let inner = frames.open(outer(1), 3);
            for (part, text) in [(2, "d"), (0, "b"), (1, "c")] {
                assert_eq!(frames.deliver(inner(part), text.into(), join), None);
            }
            let whole = frames.deliver(outer(0), "a".into(), join);
            assert_eq!(whole, Some((Address::OUT, "abcd".into())));
            assert_eq!(frames.frames.len(), 2);
        }
    }

    #[test]
    fn a_solution_for_another_worker_is_passed_on() {
        let mut frames = Frames::new(0);
        let to = Frames::<u32>::new(1).open(Address::OUT, 1)(0);
        assert_eq!(frames.deliver(to, 7, |parts| parts.sum()), Some((to, 7)));
    }
}
