//! How a seat waits when none of its nodes can go on, and how it is woken.
//!
//! Spin a little (the other side is about to publish), then yield (it may need this core), then
//! park (it is far behind, or the source is quiet). A machine with fewer cores than seats does
//! not spin at all.
//!
//! ```text
//! seat that found nothing                     seat that moved something
//!   asleep = true, sleepers += 1                publishes it (in a ring, by closing one, …)
//!   fence(SeqCst)  ◀─────── pair ───────▶       fence(SeqCst)
//!   steps its nodes once more                   sleepers > 0?  asleep → false, unpark
//!   still nothing: parks
//! ```
//!
//! No wake-up is lost: one of the two fences is first in the order of all SeqCst fences. If the
//! mover's is, the sleeper's last steps see what was published, and it does not park. If the
//! sleeper's is, the mover sees `asleep` and unparks it; an unpark before the park makes the park
//! return at once. That is all the ordering there is: the flags themselves are relaxed.
//!
//! How long a seat spins and yields is its *patience*. It doubles when that was worth while, that is
//! when something came before the seat parked or soon after, and halves when it was not. So between
//! two busy nodes nobody sleeps, and behind a slow source nobody spins.
//!
//! A park ends by itself in the end. Wake-ups do not need that; a seat with a node that looks at
//! the world outside ([`Node::polls`](crate::Node::polls)) does, for nobody rings there: it is up
//! again after a millisecond at the latest.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst, fence};
use std::thread::Thread;
use std::time::Duration;

const SPINS: u32 = 64;
const YIELDS: u32 = 200;
/// Rounds of either before a park, at least.
const LEAST_PATIENCE: u32 = 4;
/// The first park after something moved; each next one is twice as long.
const NAP: Duration = Duration::from_micros(50);
/// The longest park of a seat whose nodes poll.
const POLL: Duration = Duration::from_millis(1);
/// The longest park of others.
const BELT: Duration = Duration::from_millis(100);

/// How a seat waits when it has nothing to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wait {
    /// Never gives the core away. The quickest, if each seat has a core to itself.
    Spin,
    /// Spins a little, then lets other threads run, but never sleeps.
    Yield,
    /// Spins a little, then yields, then sleeps until a neighbour wakes it.
    #[default]
    Park,
}

/// What a seat shall do now that nothing moved.
pub(crate) enum Pause {
    Spin,
    Yield,
    Park(Duration),
}

pub(crate) struct Idle {
    wait: Wait,
    spins: u32,
    /// Rounds of spinning and yielding before a park.
    patience: u32,
    /// Rounds since something moved.
    rounds: u32,
    nap: Duration,
}

impl Idle {
    pub(crate) fn new(wait: Wait, seats: usize, cores: usize) -> Self {
        let spins = if seats <= cores { SPINS } else { 0 };
        Self { wait, spins, patience: spins + YIELDS, rounds: 0, nap: NAP }
    }

    /// Something moved: start over.
    pub(crate) fn reset(&mut self) {
        if (1..=self.patience).contains(&self.rounds) {
            self.more_patience();
        }
        self.rounds = 0;
        self.nap = NAP;
    }

    /// How to wait this time. A seat that was woken for nothing sleeps on at once.
    pub(crate) fn next(&mut self, polls: bool) -> Pause {
        let round = self.rounds;
        self.rounds = round.saturating_add(1);
        match self.wait {
            Wait::Spin => Pause::Spin,
            Wait::Park if round >= self.patience => {
                let nap = self.nap;
                self.nap = (nap * 2).min(if polls { POLL } else { BELT });
                Pause::Park(nap)
            }
            _ if round < self.spins => Pause::Spin,
            _ => Pause::Yield,
        }
    }

    /// A park is over: because somebody rang, or by itself.
    pub(crate) fn awake(&mut self, rung: bool) {
        // Only the first park tells how much longer it would have taken: little, or who knows.
        if self.rounds == self.patience + 1 {
            if rung {
                self.more_patience();
            } else {
                self.patience = (self.patience / 2).max(LEAST_PATIENCE);
            }
            // Parked once: not the first any more.
            self.rounds = u32::MAX;
        }
    }

    fn more_patience(&mut self) {
        self.patience = (self.patience * 2).min(self.spins + YIELDS);
    }
}

/// Who sleeps, and how to wake them.
pub(crate) struct Bell {
    /// Seats that are asleep or about to be.
    sleepers: AtomicUsize,
    places: Box<[Place]>,
}

#[derive(Default)]
#[repr(align(128))]
struct Place {
    asleep: AtomicBool,
    thread: OnceLock<Thread>,
}

impl Bell {
    pub(crate) fn new(seats: usize) -> Self {
        Self {
            sleepers: AtomicUsize::new(0),
            places: (0..seats).map(|_| Place::default()).collect(),
        }
    }

    /// To be called by a seat's thread, before it may sleep.
    pub(crate) fn here(&self, seat: usize) {
        self.places[seat].thread.get_or_init(std::thread::current);
    }

    /// Something moved: wakes whoever sleeps.
    #[inline]
    pub(crate) fn ring(&self) {
        // Pairs with the fence in `lie_down`: see the head of the file.
        fence(SeqCst);
        if self.sleepers.load(Relaxed) > 0 {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        for place in &self.places {
            // The thread first: who takes the flag away must be able to unpark.
            if let Some(thread) = place.thread.get()
                && self.take_back(place)
            {
                thread.unpark();
            }
        }
    }

    /// Announces that `seat` will sleep if its nodes, stepped once more, find nothing.
    pub(crate) fn lie_down(&self, seat: usize) {
        self.places[seat].asleep.store(true, Relaxed);
        self.sleepers.fetch_add(1, Relaxed);
        // Pairs with the fence in `ring`.
        fence(SeqCst);
    }

    /// Awake again: whether somebody rang.
    pub(crate) fn get_up(&self, seat: usize) -> bool {
        !self.take_back(&self.places[seat])
    }

    /// Each announcement is taken back once, by the sleeper or by who wakes it.
    fn take_back(&self, place: &Place) -> bool {
        let asleep = place.asleep.load(Relaxed) && place.asleep.swap(false, Relaxed);
        if asleep {
            self.sleepers.fetch_sub(1, Relaxed);
        }
        asleep
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spins, yields, parks and the longest park of 500 rounds in which nothing moves.
    fn rounds(idle: &mut Idle, polls: bool) -> ([u32; 3], Duration) {
        let mut counts = [0; 3];
        let mut longest = Duration::ZERO;
        for _ in 0..500 {
            match idle.next(polls) {
                Pause::Spin => counts[0] += 1,
                Pause::Yield => counts[1] += 1,
                Pause::Park(nap) => {
                    counts[2] += 1;
                    longest = longest.max(nap);
                    idle.awake(false);
                }
            }
        }
        (counts, longest)
    }

    #[test]
    fn each_way_of_waiting_goes_as_far_as_it_says() {
        let furthest = |wait, seats, polls| rounds(&mut Idle::new(wait, seats, 2), polls);
        assert_eq!(furthest(Wait::Spin, 2, true), ([500, 0, 0], Duration::ZERO));
        assert_eq!(furthest(Wait::Yield, 2, true), ([64, 436, 0], Duration::ZERO));
        assert_eq!(furthest(Wait::Park, 2, true), ([64, 200, 236], POLL));
        assert_eq!(furthest(Wait::Park, 2, false), ([64, 200, 236], BELT));
        assert_eq!(furthest(Wait::Park, 3, true), ([0, 200, 300], POLL), "more seats than cores");
    }

    #[test]
    fn patience_goes_where_it_was_in_vain_and_comes_back() {
        let mut idle = Idle::new(Wait::Park, 2, 2);
        for _ in 0..10 {
            rounds(&mut idle, false);
            idle.reset();
        }
        assert_eq!(rounds(&mut idle, false).0, [LEAST_PATIENCE, 0, 500 - LEAST_PATIENCE]);
        idle.reset();
        for _ in 0..10 {
            // Something comes at once.
            assert!(matches!(idle.next(false), Pause::Spin));
            idle.reset();
        }
        assert_eq!(rounds(&mut idle, false).0, [64, 200, 236]);
        idle.reset();
        let halved = idle.patience;
        while !matches!(idle.next(false), Pause::Park(_)) {}
        idle.awake(true);
        assert_eq!(idle.patience, 2 * halved, "rung soon after the first park");
    }

    /// Two threads hand a number to and fro, each asleep while it is the other's turn, with a
    /// belt of an hour: a single lost wake-up would hang the test.
    #[test]
    fn no_wake_up_is_lost() {
        const TURNS: usize = 20_000;
        let bell = Bell::new(2);
        let turn = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for seat in 0..2 {
                let (bell, turn) = (&bell, &turn);
                scope.spawn(move || {
                    bell.here(seat);
                    loop {
                        let now = turn.load(Relaxed);
                        if now >= TURNS {
                            return;
                        }
                        if now % 2 == seat {
                            turn.store(now + 1, Relaxed);
                            bell.ring();
                            continue;
                        }
                        bell.lie_down(seat);
                        if turn.load(Relaxed) == now {
                            std::thread::park_timeout(Duration::from_secs(3_600));
                        }
                        bell.get_up(seat);
                    }
                });
            }
        });
        assert_eq!(turn.into_inner(), TURNS);
        assert_eq!(bell.sleepers.into_inner(), 0);
    }
}
