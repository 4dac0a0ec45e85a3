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
//! items, an ordinary MPMC queue is better: docs/RINGS.md has numbers.
//!
//! Invariants: items of one producer reach any one consumer in order. Each item reaches one
//! consumer. Inputs take turns of at most [`TURN`] items, so none starves; a full output is
//! skipped, so a slow consumer does not stop the others.

use crate::{Any, Consumer, Flavor, InvalidCapacity, Kind, Producer, ring};
use alloc::vec::Vec;

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
///
/// # Errors
/// [`InvalidCapacity`] as for [`ring`].
///
/// ```
/// use ringtap_ring::{Kind, arbiter};
///
/// let (producers, arbiter, mut consumers) = arbiter::mpmc(Kind::default(), 3, 1, 64, 1)?;
/// let sum = std::thread::scope(|scope| {
///     for (number, mut producer) in producers.into_iter().enumerate() {
///         scope.spawn(move || producer.push(number).expect("room for one"));
///     }
///     scope.spawn(|| arbiter.run());
///     let (mut sum, mut closed) = (0, false);
///     while !closed {
///         closed = consumers[0].is_closed();
///         sum += std::iter::from_fn(|| consumers[0].pop()).sum::<usize>();
///         std::thread::yield_now();
///     }
///     sum
/// });
/// assert_eq!(sum, 0 + 1 + 2);
/// # Ok::<(), ringtap_ring::InvalidCapacity>(())
/// ```
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
    #[cfg(feature = "std")]
    pub fn run(mut self) {
        let mut idle = 0u32;
        loop {
            match self.step() {
                Step::Moved(_) => idle = 0,
                Step::Idle if idle < 64 => {
                    idle += 1;
                    core::hint::spin_loop();
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// An item: its producer, and its number.
    type Item = (usize, u64);

    /// Pops all that a consumer has; checks the order of each producer's items.
    fn take(consumer: &mut Consumer<Item>, last: &mut [Option<u64>], most: usize) -> usize {
        let taken = std::iter::from_fn(|| consumer.pop()).take(most);
        taken
            .inspect(|&(producer, number)| {
                assert!(last[producer] < Some(number), "order of producer {producer}");
                last[producer] = Some(number);
            })
            .count()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

        /// Any number of ends, any schedule: nothing lost, nothing twice, each pair in order.
        #[test]
        fn every_schedule_moves_every_item_once(
            producers in 1usize..5,
            consumers in 1usize..5,
            capacity in 1usize..9,
            schedule in prop::collection::vec((0u8..3, any::<u8>(), 1u8..9), 0..300),
        ) {
            for kind in Kind::ALL {
                let (makers, mut arbiter, mut takers) =
                    mpmc::<Item>(kind, producers, consumers, capacity, 3).expect("small");
                let mut makers: Vec<_> = makers.into_iter().map(|maker| (maker, 0)).collect();
                let mut last = vec![vec![None; producers]; consumers];
                let mut taken = 0;
                for &(who, which, n) in &schedule {
                    match who {
                        0 => {
                            let index = usize::from(which) % producers;
                            let (maker, next) = &mut makers[index];
                            for _ in 0..n {
                                *next += u64::from(maker.push((index, *next)).is_ok());
                            }
                        }
                        1 => {
                            let index = usize::from(which) % consumers;
                            taken += take(&mut takers[index], &mut last[index], n.into());
                        }
                        _ => prop_assert_ne!(arbiter.step(), Step::Done),
                    }
                }
                let made: u64 = makers.drain(..).map(|(_, next)| next).sum();
                while arbiter.step() != Step::Done {
                    for (taker, last) in takers.iter_mut().zip(&mut last) {
                        taken += take(taker, last, usize::MAX);
                    }
                }
                for (taker, last) in takers.iter_mut().zip(&mut last) {
                    prop_assert!(taker.is_closed());
                    taken += take(taker, last, usize::MAX);
                }
                prop_assert_eq!(taken as u64, made);
            }
        }
    }

    #[test]
    fn busy_producers_get_equal_shares() {
        for kind in Kind::ALL {
            let (mut makers, mut arbiter, mut takers) =
                mpmc::<Item>(kind, 4, 1, 2 * TURN, 50).expect("small");
            let mut shares = [0usize; 4];
            for _ in 0..200 {
                for (index, maker) in makers.iter_mut().enumerate() {
                    while maker.push((index, 0)).is_ok() {}
                }
                arbiter.step();
                while let Some((producer, _)) = takers[0].pop() {
                    shares[producer] += 1;
                }
            }
            let (least, most) = (shares.iter().min(), shares.iter().max());
            let spread = most.expect("four") - least.expect("four");
            assert!(spread <= 4 * TURN, "{kind}: {shares:?}");
        }
    }

    #[test]
    fn a_stalled_consumer_stops_no_other() {
        for kind in Kind::ALL {
            let (mut makers, mut arbiter, mut takers) = mpmc(kind, 1, 3, 8, 1).expect("small");
            let mut taken = 0;
            for number in 0..10_000 {
                let _ = makers[0].push(number);
                arbiter.step();
                // Consumer 1 takes nothing.
                taken += [0, 2].iter().filter_map(|&index: &usize| takers[index].pop()).count();
            }
            assert!(taken > 9_000, "{kind}: {taken}");
        }
    }

    #[test]
    fn the_end_is_seen_in_both_directions() {
        for kind in Kind::ALL {
            let (makers, mut arbiter, takers) = mpmc::<u8>(kind, 2, 2, 4, 1).expect("small");
            drop(takers);
            assert_eq!(arbiter.step(), Step::Done);
            assert!(makers.iter().all(Producer::is_abandoned));

            let (makers, mut arbiter, takers) = mpmc::<u8>(kind, 2, 2, 4, 1).expect("small");
            drop(makers);
            assert_eq!(arbiter.step(), Step::Done);
            assert!(takers.iter().all(Consumer::is_closed));
        }
    }
}
