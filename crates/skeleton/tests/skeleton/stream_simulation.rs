//! Every skeleton of streams in seeded random orders, with tiny rings and stalled nodes; and
//! whether that would find faults.

use std::collections::VecDeque;

use crate::networks::{all, options};
use ringtap_ring::{Consumer, Kind, Producer, ring};
use ringtap_skeleton::stream::Stream;
use ringtap_skeleton::{Node, RunError, Step, simulate};

/// Orders tried of each skeleton, over rings, workers and capacities.
const SEEDS: u64 = 1_200;

#[test]
fn no_order_of_steps_changes_the_answer_or_blocks() {
    for seed in 0..SEEDS {
        let ring = Kind::ALL[seed as usize % Kind::ALL.len()];
        let workers = [1, 2, 3, 7][(seed / 5) as usize % 4];
        let (capacity, batch) = [(1, 1), (2, 2), (3, 7), (8, 4)][(seed / 25) as usize % 4];
        let options = options(ring, capacity, batch);
        for case in all(24, workers) {
            let name = case.name;
            let run = case.network.simulate(&options, seed);
            let run = run.unwrap_or_else(|e| panic!("{name}, {options:?}, seed {seed}: {e}"));
            assert_eq!(run.result, case.expected, "{name}, {options:?}, seed {seed}");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let networks = || all(200, 3).into_iter().map(|case| case.network);
    for (first, second) in networks().zip(networks()) {
        let options = options(Kind::default(), 3, 2);
        let first = first.simulate(&options, 77).unwrap();
        assert_eq!(first, second.simulate(&options, 77).unwrap());
        assert!(first.nodes.iter().all(|n| n.busy.is_zero() && n.steps > 0));
    }
}

/// A node that loses items without room.
struct Careless(Consumer<u64>, Producer<u64>);

impl Node for Careless {
    fn step(&mut self) -> Step {
        let closed = self.0.is_closed();
        let Some(item) = self.0.pop() else {
            self.1.flush();
            return if closed { Step::Done } else { Step::Idle };
        };
        let _ = self.1.push(item);
        Step::Worked
    }
    fn name(&self) -> String {
        "careless".into()
    }
}

#[test]
fn a_lost_item_is_found() {
    let lossy = || Stream::from_iter(0..24).add_node(Careless).collect();
    let roomy = lossy().simulate(&options(Kind::default(), 64, 1), 1).unwrap();
    assert_eq!(roomy.result.len(), 24, "with room for all, nothing shows");
    let lost = |seed| lossy().simulate(&options(Kind::default(), 4, 1), seed).unwrap();
    assert!((0..100).any(|seed| lost(seed).result.len() < 24), "a hundred orders hide it");
}

/// A node that moves an item and returns idle.
struct Liar(Consumer<u64>, Producer<u64>, Option<u64>);

impl Node for Liar {
    fn step(&mut self) -> Step {
        let closed = self.0.is_closed();
        let held = self.2.take().or_else(|| self.0.pop());
        let Some(item) = held else { return if closed { Step::Done } else { Step::Idle } };
        self.2 = self.1.push(item).err();
        self.1.flush();
        self.0.flush();
        Step::Idle
    }
    fn name(&self) -> String {
        "liar".into()
    }
    fn polls(&self) -> bool {
        false
    }
}

#[test]
fn a_node_that_hides_progress_is_found() {
    let lied_to = |seed| {
        let nodes = Stream::from_iter(0..24).add_node(|from, to| Liar(from, to, None)).collect();
        nodes.simulate(&options(Kind::default(), 2, 1), seed).err()
    };
    let found = (0..100).filter_map(lied_to).collect::<Vec<_>>();
    assert!(!found.is_empty(), "a hundred orders hide it");
    assert!(found.iter().all(|error| matches!(error, RunError::Overslept { .. })), "{found:?}");
}

/// A faulty farm with feedback: each worker makes two items of an item and waits until they have
/// room; the emitter takes nothing back before all its items have room.
#[expect(clippy::large_enum_variant, reason = "there are three of them")]
enum Naive {
    Emitter { to: Vec<Producer<u32>>, back: Vec<Consumer<u32>>, pending: VecDeque<u32>, left: u32 },
    Worker { items: Consumer<u32>, back: Producer<u32>, pending: VecDeque<u32> },
}

impl Node for Naive {
    fn step(&mut self) -> Step {
        match self {
            Self::Emitter { to, back, pending, left } => {
                if *left == 0 {
                    return Step::Done;
                }
                if let Some(item) = pending.pop_front() {
                    let at = item as usize % to.len();
                    return match to[at].push(item) {
                        Ok(()) => {
                            to[at].flush();
                            Step::Worked
                        }
                        Err(item) => {
                            pending.push_front(item);
                            Step::Idle
                        }
                    };
                }
                let before = *left;
                for item in back.iter_mut().filter_map(Consumer::pop) {
                    // 0 marks a leaf.
                    if item == 0 { *left -= 1 } else { pending.push_back(item) }
                }
                if pending.is_empty() && before == *left { Step::Idle } else { Step::Worked }
            }
            Self::Worker { items, back, pending } => {
                if let Some(item) = pending.pop_front() {
                    return match back.push(item) {
                        Ok(()) => {
                            back.flush();
                            Step::Worked
                        }
                        Err(item) => {
                            pending.push_front(item);
                            Step::Idle
                        }
                    };
                }
                let closed = items.is_closed();
                match items.pop() {
                    Some(1) => pending.push_back(0),
                    Some(item) => pending.extend([item - 1, item - 1]),
                    None => return if closed { Step::Done } else { Step::Idle },
                }
                Step::Worked
            }
        }
    }
    fn name(&self) -> String {
        if matches!(self, Self::Emitter { .. }) { "emitter".into() } else { "worker".into() }
    }
}

#[test]
fn a_deadlock_is_found() {
    const DEPTH: u32 = 7;
    let naive = |capacity, seed| {
        let (mut to, mut back) = (Vec::new(), Vec::new());
        let mut nodes: Vec<Box<dyn Node>> = Vec::new();
        for _ in 0..2 {
            let (give, items) = ring(Kind::default(), capacity, 1).unwrap();
            let (sender, receiver) = ring(Kind::default(), capacity, 1).unwrap();
            to.push(give);
            back.push(receiver);
            nodes.push(Box::new(Naive::Worker { items, back: sender, pending: VecDeque::new() }));
        }
        let (pending, left) = (VecDeque::from([DEPTH]), 1 << (DEPTH - 1));
        nodes.push(Box::new(Naive::Emitter { to, back, pending, left }));
        simulate::nodes(nodes, seed)
    };
    for seed in 0..20 {
        naive(1 << DEPTH, seed).unwrap();
    }
    let found = (0..100).filter_map(|seed| naive(2, seed).err()).collect::<Vec<_>>();
    assert!(!found.is_empty(), "a hundred orders hide it");
    for error in found {
        assert!(
            matches!(&error, RunError::Deadlock { waiting, .. } if waiting.contains("emitter"))
        );
    }
}
