//! How a seat waits when none of its nodes can proceed, and how it is woken.
//!
//! It spins (the other side is about to publish), then yields (the other side may need this core),
//! then parks (the other side is far behind, or the source is idle). With fewer cores than seats it
//! does not spin.
//!
//! ```text
//! seat that found nothing                     seat that moved something
//!   asleep = true, sleepers += 1                publishes it (in a ring, by closing one, …)
//!   fence(SeqCst)  ◀─────── pair ───────▶       fence(SeqCst)
//!   steps its nodes once more                   sleepers > 0?  asleep → false, unpark
//!   still nothing: parks
//! ```
//!
//! No wake-up is lost: one of the two fences is first in the order of all SeqCst fences. If it is
//! the mover's, the sleeper's last steps see what was published, and it does not park. If it is the
//! sleeper's, the mover sees `asleep` and unparks it; an unpark before the park makes the park
//! return at once. The flags themselves are relaxed.
//!
//! The time that a seat spins and yields is its *poll budget*. It doubles when an item arrived before
//! the seat parked or soon after, and halves otherwise. So no seat between two busy nodes sleeps,
//! and no seat behind a slow source spins. If a feed reports a slow source
//! ([`Feed::is_slow`](ringtap_stage::Feed::is_slow)), the budget drops to its minimum at once:
//! otherwise an interface with a million frames a second would keep a core busy polling.
//!
//! A park ends by itself after a time limit. Nodes that depend only on their neighbours do not need
//! that; a seat with a node that depends on the outside world ([`Node::polls`](crate::Node::polls))
//! does, because nothing wakes it: it polls again after a millisecond at the latest.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst, fence};
use std::thread::Thread;
use std::time::Duration;

const SPINS: u32 = 64;
const YIELDS: u32 = 200;
/// Least rounds of either before a park.
const MIN_BUDGET: u32 = 4;
/// The first park after progress; each next one is twice as long.
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

/// What a seat does after a round without progress.
pub(crate) enum Pause {
    Spin,
    Yield,
    Park(Duration),
}

pub(crate) struct Idle {
    wait: Wait,
    spins: u32,
    /// Rounds of spinning and yielding before a park.
    budget: u32,
    /// Rounds since the last progress.
    rounds: u32,
    nap: Duration,
}

impl Idle {
    pub(crate) fn new(wait: Wait, seats: usize, cores: usize) -> Self {
        let spins = if seats <= cores { SPINS } else { 0 };
        Self { wait, spins, budget: spins + YIELDS, rounds: 0, nap: NAP }
    }

    /// Progress: start over.
    pub(crate) fn reset(&mut self) {
        if (1..=self.budget).contains(&self.rounds) {
            self.raise_budget();
        }
        self.rounds = 0;
        self.nap = NAP;
    }

    /// The next pause. A seat that was woken without work parks at once, and one whose source
    /// `is_slow` soon.
    pub(crate) fn next(&mut self, polls: bool, is_slow: bool) -> Pause {
        let round = self.rounds;
        self.rounds = round.saturating_add(1);
        let budget = if is_slow { MIN_BUDGET } else { self.budget };
        match self.wait {
            Wait::Spin => Pause::Spin,
            Wait::Park if round >= budget => {
                let nap = self.nap;
                self.nap = (nap * 2).min(if polls { POLL } else { BELT });
                Pause::Park(nap)
            }
            _ if round < self.spins => Pause::Spin,
            _ => Pause::Yield,
        }
    }

    /// A park ended: by a wake-up (`rung`) or by its timeout.
    pub(crate) fn woken(&mut self, rung: bool) {
        // Only the first park measures how much longer waiting would have taken.
        if self.rounds == self.budget + 1 {
            if rung {
                self.raise_budget();
            } else {
                self.budget = (self.budget / 2).max(MIN_BUDGET);
            }
            // Parked once: later parks are not the first.
            self.rounds = u32::MAX;
        }
    }

    fn raise_budget(&mut self) {
        self.budget = (self.budget * 2).min(self.spins + YIELDS);
    }
}

/// The sleeping seats, and how to wake them.
pub(crate) struct Parker {
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

impl Parker {
    pub(crate) fn new(seats: usize) -> Self {
        Self {
            sleepers: AtomicUsize::new(0),
            places: (0..seats).map(|_| Place::default()).collect(),
        }
    }

    /// A seat's thread calls this before it may sleep.
    pub(crate) fn here(&self, seat: usize) {
        self.places[seat].thread.get_or_init(std::thread::current);
    }

    /// Wakes the sleeping seats after progress.
    #[inline]
    pub(crate) fn ring(&self) {
        // Pairs with the fence in `park`: see the head of the file.
        fence(SeqCst);
        if self.sleepers.load(Relaxed) > 0 {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        for place in &self.places {
            // The thread first: the one that clears the flag must be able to unpark it.
            if let Some(thread) = place.thread.get()
                && self.take_back(place)
            {
                thread.unpark();
            }
        }
    }

    /// Announces that `seat` will sleep if its nodes, stepped once more, find nothing.
    pub(crate) fn park(&self, seat: usize) {
        self.places[seat].asleep.store(true, Relaxed);
        self.sleepers.fetch_add(1, Relaxed);
        // Pairs with the fence in `ring`.
        fence(SeqCst);
    }

    /// The seat is awake again; true after a wake-up.
    pub(crate) fn unpark(&self, seat: usize) -> bool {
        !self.take_back(&self.places[seat])
    }

    /// Each announcement is withdrawn once, by the sleeper or by the thread that wakes it.
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

    /// Numbers of spins, yields and parks, and the longest park, of 500 rounds without progress.
    fn rounds(idle: &mut Idle, polls: bool) -> ([u32; 3], Duration) {
        let mut counts = [0; 3];
        let mut longest = Duration::ZERO;
        for _ in 0..500 {
            match idle.next(polls, false) {
                Pause::Spin => counts[0] += 1,
                Pause::Yield => counts[1] += 1,
                Pause::Park(nap) => {
                    counts[2] += 1;
                    longest = longest.max(nap);
                    idle.woken(false);
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
    fn a_seat_behind_a_slow_source_sleeps_soon() {
        let mut idle = Idle::new(Wait::Park, 1, 2);
        let pauses: Vec<_> = (0..8).map(|_| idle.next(true, true)).collect();
        let sleeps = |pause: &Pause| matches!(pause, Pause::Park(_));
        assert_eq!(pauses.iter().position(sleeps), Some(MIN_BUDGET as usize));
        assert!(pauses[MIN_BUDGET as usize..].iter().all(sleeps));
        assert!(matches!(pauses[MIN_BUDGET as usize], Pause::Park(NAP)));
        idle.reset();
        assert!(!sleeps(&idle.next(true, true)), "something came");
    }

    #[test]
    fn budget_falls_without_success_and_recovers() {
        let mut idle = Idle::new(Wait::Park, 2, 2);
        for _ in 0..10 {
            rounds(&mut idle, false);
            idle.reset();
        }
        assert_eq!(rounds(&mut idle, false).0, [MIN_BUDGET, 0, 500 - MIN_BUDGET]);
        idle.reset();
        for _ in 0..10 {
            // An item arrives at once.
            assert!(matches!(idle.next(false, false), Pause::Spin));
            idle.reset();
        }
        assert_eq!(rounds(&mut idle, false).0, [64, 200, 236]);
        idle.reset();
        let halved = idle.budget;
        while !matches!(idle.next(false, false), Pause::Park(_)) {}
        idle.woken(true);
        assert_eq!(idle.budget, 2 * halved, "rung soon after the first park");
    }

    /// Two threads exchange a number, each asleep during the other's turn, with a time limit of an
    /// hour: a single lost wake-up would hang the test.
    #[test]
    fn no_wake_up_is_lost() {
        const TURNS: usize = 20_000;
        let parker = Parker::new(2);
        let turn = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for seat in 0..2 {
                let (parker, turn) = (&parker, &turn);
                scope.spawn(move || {
                    parker.here(seat);
                    loop {
                        let now = turn.load(Relaxed);
                        if now >= TURNS {
                            return;
                        }
                        if now % 2 == seat {
                            turn.store(now + 1, Relaxed);
                            parker.ring();
                            continue;
                        }
                        parker.park(seat);
                        if turn.load(Relaxed) == now {
                            std::thread::park_timeout(Duration::from_secs(3_600));
                        }
                        parker.unpark(seat);
                    }
                });
            }
        });
        assert_eq!(turn.into_inner(), TURNS);
        assert_eq!(parker.sleepers.into_inner(), 0);
    }
}
