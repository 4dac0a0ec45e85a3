//! The writer of an output: one thread that takes the blocks of all workers and does all input and output.

use std::sync::Arc;
use std::thread::park_timeout;
use std::time::Duration;

use crate::block::{Block, Inbox, Payload};
use crate::shared::{Shared, now};

/// Range of the writer's sleep while there is nothing to write. Workers do not wake it, because that is a system call.
const NAP_MIN: Duration = Duration::from_millis(1);
const NAP_MAX: Duration = Duration::from_millis(16);

/// How often workers are requested to hand over their blocks.
const ROUND: Duration = Duration::from_secs(1);

/// The consumer of blocks.
pub(crate) trait Sink: Send + 'static {
    /// The contents of the blocks.
    type Payload: Payload;

    /// Writes a block, and counts its records as sent or lost.
    fn write(&mut self, block: &mut Block<Self::Payload>, shared: &Shared);

    /// Waits, up to this time, while there is nothing to write. Returns true if all that was written is done.
    fn rest(&mut self, time: Duration, _shared: &Shared) -> bool {
        park_timeout(time);
        true
    }

    /// Called once a second.
    fn tick(&mut self, _shared: &Shared) {}

    /// Finishes a file and starts another one.
    fn renew(&mut self, shared: &Shared);

    /// Finishes everything; the last call.
    fn finish(&mut self, shared: &Shared);
}

/// The writer's thread: runs until all workers have finished. If the run is cancelled, the sink is dropped.
pub(crate) fn run<S: Sink>(mut sink: S, mut inboxes: Vec<Inbox<S::Payload>>, shared: Arc<Shared>) {
    let (mut nap, mut round) = (NAP_MIN, now());
    loop {
        if shared.is_cancelled() {
            return;
        }
        if shared.take_renewal() {
            // Blocks handed over before belong to the previous file.
            for inbox in &mut inboxes {
                for _ in 0..inbox.capacity() {
                    let Some(mut block) = inbox.take() else { break };
                    sink.write(&mut block, &shared);
                    inbox.give_back(block, &shared);
                }
            }
            sink.renew(&shared);
        }
        if round.elapsed() >= ROUND {
            round = now();
            shared.next_round();
            sink.tick(&shared);
        }
        let closed = inboxes.iter().all(Inbox::is_closed);
        let mut moved = false;
        for inbox in &mut inboxes {
            if let Some(mut block) = inbox.take() {
                sink.write(&mut block, &shared);
                inbox.give_back(block, &shared);
                moved = true;
            }
        }
        if moved {
            nap = NAP_MIN;
        } else if closed {
            break;
        } else {
            if sink.rest(nap, &shared) && !shared.is_failing() {
                shared.note_progress();
            }
            if nap < NAP_MAX {
                nap = (nap * 2).min(NAP_MAX);
                if nap == NAP_MAX {
                    // Nothing to do: request the blocks of all workers.
                    shared.next_round();
                }
            }
        }
    }
    sink.finish(&shared);
}
