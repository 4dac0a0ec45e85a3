//! A node: a state machine that never blocks. Every run consists of nodes.
//!
//! ```text
//! seats::run      a thread steps its nodes until each is done
//! simulate::nodes one thread steps them all, in an order drawn from a seed
//! ```
//!
//! Invariant: both callers step nodes in the same way, so the results of the simulation hold for
//! threads.

use std::error::Error;

/// The result of a step.
#[derive(Debug)]
pub enum Step {
    /// Progress was made.
    Worked,
    /// Nothing to take, or no room to put it: call again later.
    Idle,
    /// Finished: the node must not be stepped again, and is dropped now.
    Done,
    /// Failed: the run ends with this error and the node's name.
    Failed(Box<dyn Error + Send + Sync>),
}

/// A state machine of a run.
///
/// The contract, on which sleeping seats and the simulation rely:
/// - a step does a bounded piece of work and never waits;
/// - a step that returns [`Step::Idle`] changed nothing that another node can see, except that it
///   may publish what earlier steps had held back (a ring's incomplete batch); a second idle step
///   in a row publishes nothing;
/// - after its neighbours made progress, a node finds that out only by being stepped;
/// - a node that waits for anything but its neighbours returns true from [`Node::polls`].
///
/// ```
/// use ringtap_skeleton::{Node, Step, Wait, seats, simulate};
///
/// struct Countdown(u32);
///
/// impl Node for Countdown {
///     fn step(&mut self) -> Step {
///         self.0 = self.0.saturating_sub(1);
///         if self.0 == 0 { Step::Done } else { Step::Worked }
///     }
///     fn name(&self) -> String {
///         "countdown".into()
///     }
/// }
///
/// let nodes = || -> Vec<Box<dyn Node>> { vec![Box::new(Countdown(3)), Box::new(Countdown(9))] };
/// seats::run(vec![nodes(), nodes()], &[], Wait::Park)?;
/// simulate::nodes(nodes(), 42)?;
/// # Ok::<(), ringtap_skeleton::RunError>(())
/// ```
pub trait Node: Send {
    /// Does a bounded piece of work, without waiting.
    fn step(&mut self) -> Step;

    /// The name for messages, as in "worker 3".
    fn name(&self) -> String;

    /// Whether an idle node may have work although no other node made progress, because it reads a
    /// clock, a socket or a flag. It is then stepped every millisecond, even if all sleep.
    fn polls(&self) -> bool {
        true
    }

    /// Whether an idle node waits for a source so slow that its seat may sleep at once, for a few
    /// tens of microseconds.
    fn is_slow(&self) -> bool {
        false
    }
}
