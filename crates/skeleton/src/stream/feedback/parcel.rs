//! What emitter and workers send each other.

use super::frames::Address;

/// The result of dividing a problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Divided<S, I> {
    /// The solution: the problem was small enough to be solved at once.
    Solved(S),
    /// Problems whose solutions are to be combined. An array costs no allocation.
    Split(I),
}

/// A problem to solve, and the destination of its solution.
pub(super) struct Task<P> {
    pub(super) problem: P,
    pub(super) to: Address,
}

/// The solution of a part of a frame, or of a whole problem.
pub(super) struct Solution<S> {
    pub(super) to: Address,
    pub(super) solution: S,
}

/// A message from the emitter to a worker.
pub(super) enum Parcel<P, S> {
    Task(Task<P>),
    Solution(Solution<S>),
}
