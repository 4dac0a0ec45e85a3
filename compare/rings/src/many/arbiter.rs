//! One-to-many, many-to-one and many-to-many queues from rings and an arbiter.
//!
//! ```text
//! Producer 0 ═ ring ═╗             ╔═ ring ═▶ Consumer 0
//! Producer 1 ═ ring ═╬═▶ Arbiter ══╣
//! Producer 2 ═ ring ═╝             ╚═ ring ═▶ Consumer 1
//! ```
//!
//! Source: FastFlow's SPMC, MPSC and MPMC queues (Danelutto, Deri, De Sensi, "Network Monitoring on
//! Multi cores with Algorithmic Skeletons"): each thread has its own ring, and another thread, the
//! arbiter, moves items between them. There is no atomic read-modify-write (unless the rings are of
//! [`Kind::Lock`]), and producers never share a cache line.
//!
//! Use it if each end is busy enough for its own ring and the arbiter can have a core, or if one of
//! the ends steps it (a single consumer can step its own MPSC arbiter). With many threads and few
//! items, an ordinary MPMC queue is better: docs/RINGS.md has numbers. Each trial checks that all items arrive, and their
//! order.
//!
//! Invariants: items of one producer reach any one consumer in order. Each item reaches one
//! consumer. Inputs take turns of at most [`TURN`] items, so none starves; a full output is
//! skipped, so a slow consumer does not stop the others.

use ringtap_ring::{Any, Consumer, Flavor, InvalidCapacity, Kind, Producer, ring};

/// Most items that one input moves before the next has its turn.
pub const TURN: usize = 64;

/// The result of a [step](Arbiter::step).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The number of items moved, at least one.
    Moved(usize),
    /// No input has items, or no output has room.
    Idle,
    /// Finished: all producers are gone and everything has moved, or all consumers are gone.
    Done,
}

/// Moves items from any number of rings to any number of rings. It never blocks: its owner calls
/// [`step`](Self::step), or gives a thread to [`run`](Self::run).
pub struct Arbiter<T: Send, F: Flavor<T> = Any> {
    inputs: Vec<Consumer<T, F>>,
    outputs: Vec<Producer<T, F>>,
    /// The input that comes first in the next step.
    first: usize,
    /// The output that is offered the next items.
    next: usize,
}

/// Both ends of a many-to-many queue, and its arbiter.
pub type Queue<T> = (Vec<Producer<T>>, Arbiter<T>, Vec<Consumer<T>>);

/// Makes a queue from `producers` to `consumers`: a ring of `capacity` items and of the given kind
/// for each, with `batch` as for [`ring`].
pub fn mpmc<T: Send>(
    kind: Kind,
    producers: usize,
    consumers: usize,
    capacity: usize,
    batch: usize,
) -> Result<Queue<T>, InvalidCapacity> {
    let rings = |n: usize| -> Result<(Vec<_>, Vec<_>), InvalidCapacity> {
        let rings: Result<Vec<_>, _> = (0..n).map(|_| ring(kind, capacity, batch)).collect();
        Ok(rings?.into_iter().unzip())
    };
    let (producers, inputs) = rings(producers)?;
    let (outputs, consumers) = rings(consumers)?;
    Ok((producers, Arbiter::new(inputs, outputs), consumers))
}

impl<T: Send, F: Flavor<T>> Arbiter<T, F> {
    /// Joins the far ends of existing rings.
    pub fn new(inputs: Vec<Consumer<T, F>>, outputs: Vec<Producer<T, F>>) -> Self {
        Self { inputs, outputs, first: 0, next: 0 }
    }

    /// Gives every input a turn. Never blocks.
    pub fn step(&mut self) -> Step {
        self.outputs.retain(|output| !output.is_abandoned());
        let mut moved = 0;
        let mut over = Vec::new();
        if !self.outputs.is_empty() {
            let (count, first) = (self.inputs.len(), self.first);
            for input in (0..count).map(|step| (first % count + step) % count) {
                // Before the poll: if it is closed now and the poll finds nothing, the ring stays
                // empty.
                let closed = self.inputs[input].is_closed();
                match self.turn_of(input) {
                    Turn::Moved(n) => moved += n,
                    Turn::Empty if closed => over.push(input),
                    Turn::Empty | Turn::NoRoom => {}
                }
            }
            // The first output has room more often.
            self.first = self.first.wrapping_add(1);
        }
        if moved > 0 {
            self.inputs.iter_mut().for_each(Consumer::flush);
            self.outputs.iter_mut().for_each(Producer::flush);
        }
        over.sort_unstable();
        over.into_iter().rev().for_each(|input| drop(self.inputs.remove(input)));
        if self.inputs.is_empty() || self.outputs.is_empty() {
            // Producers see that they are abandoned, consumers that their ring is closed.
            self.inputs.clear();
            self.outputs.clear();
        }
        match moved {
            1.. => Step::Moved(moved),
            _ if self.inputs.is_empty() => Step::Done,
            _ => Step::Idle,
        }
    }

    /// Moves up to [`TURN`] items of one input, to outputs in turn.
    fn turn_of(&mut self, input: usize) -> Turn {
        let input = &mut self.inputs[input];
        let mut moved = 0;
        while moved < TURN {
            let items = input.peek(TURN - moved).len();
            if items == 0 {
                return if moved > 0 { Turn::Moved(moved) } else { Turn::Empty };
            }
            let count = self.outputs.len();
            let Some((next, free)) = (0..count)
                .map(|step| (self.next + step) % count)
                .map(|next| (next, self.outputs[next].free()))
                .find(|&(_, free)| free > 0)
            else {
                return if moved > 0 { Turn::Moved(moved) } else { Turn::NoRoom };
            };
            // An equal share for each, so that few items do not all go to one output.
            let n = items.div_ceil(count).min(free);
            self.outputs[next].fill(n, |_| input.pop().expect("as many as the peek showed"));
            self.next = next + 1;
            moved += n;
        }
        Turn::Moved(moved)
    }

    /// Steps until everything is finished, in the calling thread: spins a little when there is
    /// nothing to move, then yields.
    pub fn run(mut self) {
        let mut idle = 0u32;
        loop {
            match self.step() {
                Step::Moved(_) => idle = 0,
                Step::Idle if idle < 64 => {
                    idle += 1;
                    std::hint::spin_loop();
                }
                Step::Idle => std::thread::yield_now(),
                Step::Done => return,
            }
        }
    }
}

enum Turn {
    Moved(usize),
    Empty,
    NoRoom,
}
