//! How a seat waits when none of its nodes can go on.
//!
//! Spin a little (the other side is about to publish), then yield (it may need this core), then
//! sleep (it is far behind, or the source is quiet). A machine with fewer cores than seats does
//! not spin at all.

use std::time::Duration;

const SPINS: u32 = 64;
const YIELDS: u32 = 1_000;
/// A ring of 2,048 packets lasts a worker several times as long.
const NAP: Duration = Duration::from_micros(50);

pub(crate) struct Idle {
    spins: u32,
    rounds: u32,
}

impl Idle {
    pub(crate) fn new(seats: usize, cores: usize) -> Self {
        Self { spins: if seats <= cores { SPINS } else { 0 }, rounds: 0 }
    }

    /// Something moved: start over.
    pub(crate) fn reset(&mut self) {
        self.rounds = 0;
    }

    pub(crate) fn wait(&mut self) {
        if self.rounds < self.spins {
            for _ in 0..16 {
                std::hint::spin_loop();
            }
        } else if self.rounds < self.spins + YIELDS {
            std::thread::yield_now();
        } else {
            std::thread::sleep(NAP);
        }
        self.rounds = self.rounds.saturating_add(1);
    }
}
