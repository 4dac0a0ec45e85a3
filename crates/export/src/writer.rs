//! The writer of an output: one thread that takes the blocks of all workers and does all input and output.

use std::sync::Arc;
use std::thread::park_timeout;
use std::time::Duration;

use crate::block::{Block, Inbox, Payload};
use crate::shared::{Shared, now};

/// How long the writer sleeps at first when nothing came, and at most. Workers do not wake it: a wake-up is a system call.
const NAP_MIN: Duration = Duration::from_millis(1);
const NAP_MAX: Duration = Duration::from_millis(16);

/// How often workers are asked to hand over what they have.
const ROUND: Duration = Duration::from_secs(1);

/// What a writer does with blocks.
pub(crate) trait Sink: Send + 'static {
    /// What the blocks hold.
    type Payload: Payload;

    /// Writes a block, and counts its records as sent or lost.
    fn write(&mut self, block: &mut Block<Self::Payload>, shared: &Shared);

    /// A second has passed.
    fn tick(&mut self, _shared: &Shared) {}

    /// Finishes a file and begins another one.
    fn renew(&mut self, shared: &Shared);

    /// Finishes everything. Nothing follows.
    fn finish(&mut self, shared: &Shared);
}

/// The writer's thread: until all workers are done. If the run is cancelled, the sink is dropped as it is.
pub(crate) fn run<S: Sink>(mut sink: S, mut inboxes: Vec<Inbox<S::Payload>>, shared: Arc<Shared>) {
    let (mut nap, mut round) = (NAP_MIN, now());
    loop {
        if shared.is_cancelled() {
            return;
        }
        if shared.take_renewal() {
            // What was handed over before belongs to the file before.
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
            park_timeout(nap);
            if !shared.is_failing() {
                shared.note_progress();
            }
            if nap < NAP_MAX {
                nap = (nap * 2).min(NAP_MAX);
                if nap == NAP_MAX {
                    // Nothing to do: whatever there is may come.
                    shared.next_round();
                }
            }
        }
    }
    sink.finish(&shared);
}
