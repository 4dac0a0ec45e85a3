//! A node: a state machine that never blocks. Everything that runs here is made of nodes.
//!
//! ```text
//! seats::run      a thread steps the nodes that sit on it, until each is done
//! simulate::nodes one thread steps them all, in an order drawn from a seed
//! ```
//!
//! Invariant: whoever steps a node cannot tell it from another, so what the simulation finds of
//! one holds for the other.

use std::error::Error;

/// What a step achieved.
#[derive(Debug)]
pub enum Step {
    /// Something moved.
    Worked,
    /// Nothing to take, or no room to put it: ask again later.
    Idle,
    /// Finished: not to be stepped again, to be dropped now.
    Done,
    /// Failed: the run ends with this error and the node's name.
    Failed(Box<dyn Error + Send + Sync>),
}

/// A participant of a run.
///
/// The contract, on which sleeping seats and the simulation rely:
/// - a step does a bounded piece of work and never waits;
/// - a step that answers [`Step::Idle`] changed nothing that another node can see, except that it
///   may publish what earlier steps had held back (a ring's incomplete batch); a second idle step
///   in a row publishes nothing;
/// - once its neighbours have moved, a node finds that out by being stepped, and in no other way;
/// - a node that waits for anything but its neighbours says so ([`Node::polls`]).
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

    /// For messages: "worker 3".
    fn name(&self) -> String;

    /// Whether an idle node may have something to do although no other node has moved: because it
    /// looks at a clock, a socket, a flag. It is then stepped every millisecond, even if all sleep.
    fn polls(&self) -> bool {
        true
    }
}
