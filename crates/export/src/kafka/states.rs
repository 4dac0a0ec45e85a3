//! States as messages of a topic: chunks, because brokers limit the size of a message.
//!
//! ```text
//! StatePart ─▶ PartSender: is there room? ─ ring ─▶ PartSink ─▶ chunk 0, chunk 1, … ─▶ Producer
//! ```
//!
//! The chunks of a state have the same key, so they are in one partition, in order. A state counts as sent when all its
//! chunks are acknowledged. Their headers, as text, before those of the [`Producer`]:
//!
//! | header | is |
//! |---|---|
//! | `format` | `state` |
//! | `probe` | the name of the machine or link |
//! | `part`, `last` | the number of the part in the run, from 0; `true` if the run ends with it, or `false` |
//! | `from`, `until` | beginning and end of the part, nanoseconds since 1970 |
//! | `chunk`, `chunks` | the number of the chunk, from 0; how many the state has |
//!
//! Invariant: states that wait take at most the output's buffer, or are one state.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use ringtap_flow::RecordSink;

use super::message::Message;
use super::producer::Producer;
use super::session::Access;
use crate::block::{Block, Encode, Payload, Room};
use crate::shared::Shared;
use crate::states::{StatePart, TakeState};
use crate::writer::Sink;
use crate::{Reason, RecordTotals, Sent};

/// Most octets of a chunk; with its key and headers it is below the default limit of topics, 1 MiB.
const CHUNK_MAX: usize = 512 << 10;

/// Most states that wait.
const WAITING_MAX: usize = 256;

/// A state waits for room as long as the output accepts something within this time.
const STALLED: Duration = Duration::from_secs(10);

/// A step of a wait for room.
const STEP: Duration = Duration::from_millis(5);

/// The counts of a state.
const ONE: RecordTotals = RecordTotals { records: 1, packets: 0, octets: 0 };

/// States in a block.
#[derive(Default)]
pub(crate) struct Parts(Vec<StatePart>);

impl Payload for Parts {
    fn len(&self) -> usize {
        self.0.iter().map(size_of_part).sum()
    }

    fn clear(&mut self) {
        self.0.clear();
    }
}

fn size_of_part(part: &StatePart) -> usize {
    size_of::<StatePart>() + part.bytes.len()
}

/// Puts states into blocks as they are.
pub(crate) struct PartEncoder;

impl Encode for PartEncoder {
    type Item = StatePart;
    type Payload = Parts;

    fn payload(&self, _bytes: usize) -> Parts {
        Parts::default()
    }

    fn add(
        &mut self,
        part: &StatePart,
        parts: &mut Parts,
        counts: &mut RecordTotals,
    ) -> Result<(), Reason> {
        parts.0.push(part.clone());
        *counts += ONE;
        Ok(())
    }

    fn counts_of(&self, _part: &StatePart) -> RecordTotals {
        ONE
    }
}

/// The end of the thread that makes states.
pub(crate) struct PartSender {
    sink: Box<dyn RecordSink<StatePart>>,
    shared: Arc<Shared>,
    /// Most bytes that wait.
    room: u64,
    live: bool,
}

impl PartSender {
    /// Each state is a block.
    pub(crate) const ROOM: Room =
        Room { block: 1, blocks: WAITING_MAX, waits: false, prompt: false, period_ns: None };

    pub(crate) fn new(
        sink: Box<dyn RecordSink<StatePart>>,
        shared: Arc<Shared>,
        room: usize,
        live: bool,
    ) -> Self {
        Self { sink, shared, room: room as u64, live }
    }

    /// Waits until there is room for a state. The error is the reason why there is none.
    fn wait_for_room(&self, part: &StatePart) -> Result<(), Reason> {
        let bytes = size_of_part(part) as u64;
        loop {
            let queued = self.shared.queued();
            // A state larger than all room is taken alone.
            if queued == 0 || queued.saturating_add(bytes) <= self.room {
                return Ok(());
            }
            if self.shared.over() {
                return Err(Reason::TooLate);
            }
            let waits = !self.live || part.is_last;
            if !waits || self.shared.stalled_for() >= STALLED {
                return Err(Reason::NoRoom);
            }
            std::thread::sleep(STEP);
        }
    }
}

impl TakeState for PartSender {
    fn take(&mut self, part: &StatePart) {
        match self.wait_for_room(part) {
            Ok(()) => {
                self.sink.take(part);
                self.shared.wake_writer();
            }
            Err(reason) => self.shared.drop_made(reason, ONE),
        }
    }
}

/// Sends states.
pub(crate) struct PartSink {
    producer: Producer,
}

impl PartSink {
    /// Creates the sink of a topic.
    ///
    /// # Errors
    /// The error of the system if it has no resources for the connections.
    pub(crate) fn new(access: Access) -> io::Result<Self> {
        Ok(Self { producer: Producer::new(access)? })
    }

    /// Sends a state, and counts it as sent or lost.
    fn send(&mut self, part: &StatePart, shared: &Shared) {
        self.producer.set_run(part.run);
        let chunks = chunks_of(&part.bytes);
        let key = format!("{} {:016x} {}", part.probe, part.run, part.part);
        let texts = [
            ("format", "state".to_owned()),
            ("probe", part.probe.clone()),
            ("part", part.part.to_string()),
            ("last", part.is_last.to_string()),
            ("from", part.from_ns.to_string()),
            ("until", part.until_ns.to_string()),
            ("chunks", chunks.len().to_string()),
        ];
        for (number, value) in chunks.iter().enumerate() {
            let number = number.to_string();
            let mut headers: Vec<_> =
                texts.iter().map(|(name, text)| (*name, text.as_bytes())).collect();
            headers.push(("chunk", number.as_bytes()));
            let flows = Some(RecordTotals::default());
            self.producer
                .push(&Message { key: key.as_bytes(), value, headers: &headers, flows }, shared);
            // Without one chunk the others are useless.
            if self.producer.has_lost() {
                break;
            }
        }
        match self.producer.drain(shared) {
            Some(reason) => shared.lose(reason, ONE),
            None => shared.send(Sent { flows: ONE, messages: 0, message_octets: 0 }),
        }
    }
}

/// The parts of a state that are messages; at least one.
fn chunks_of(bytes: &[u8]) -> Vec<&[u8]> {
    if bytes.is_empty() { vec![bytes] } else { bytes.chunks(CHUNK_MAX).collect() }
}

impl Sink for PartSink {
    type Payload = Parts;

    fn write(&mut self, block: &mut Block<Parts>, shared: &Shared) {
        for part in &block.payload.0 {
            self.send(part, shared);
        }
    }

    fn rest(&mut self, time: Duration, shared: &Shared) -> bool {
        self.producer.rest(time, shared)
    }

    fn tick(&mut self, shared: &Shared) {
        self.producer.tick(shared);
    }

    fn renew(&mut self, _shared: &Shared) {}

    fn finish(&mut self, shared: &Shared) {
        self.producer.finish(shared);
        shared.judge();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{Inbox, lane};
    use crate::periods::Period;
    use crate::shared::WaitPolicy;
    use crate::{Items, KafkaTopic, Settings};

    fn part(number: u64, bytes: usize) -> StatePart {
        let bytes = vec![7; bytes].into();
        let (probe, run) = ("p".to_owned(), 0xff);
        StatePart { probe, run, part: number, is_last: false, from_ns: 1, until_ns: 2, bytes }
    }

    /// A sender with this room, and the end of its writer.
    fn sender(room: usize, live: bool) -> (PartSender, Inbox<Parts>, Arc<Shared>) {
        let shared = Shared::new("test".into(), WaitPolicy::Collector, live).of(Items::States);
        let shared = Arc::new(shared);
        let (sink, inbox) = lane(PartEncoder, PartSender::ROOM, Arc::clone(&shared)).unwrap();
        (PartSender::new(Box::new(sink), Arc::clone(&shared), room, live), inbox, shared)
    }

    #[test]
    fn chunks_are_the_state_and_have_a_limit() {
        for (bytes, lengths) in [
            (0, &[0][..]),
            (1, &[1]),
            (CHUNK_MAX, &[CHUNK_MAX]),
            (2 * CHUNK_MAX + 5, &[CHUNK_MAX, CHUNK_MAX, 5]),
        ] {
            let state: Vec<u8> = (0..bytes).map(|place| place as u8).collect();
            let chunks = chunks_of(&state);
            assert!(chunks.iter().map(|chunk| chunk.len()).eq(lengths.iter().copied()));
            assert_eq!(chunks.concat(), state);
        }
    }

    #[test]
    fn a_live_run_loses_and_counts_states_without_room() {
        let (mut sender, mut inbox, shared) = sender(1_000, true);
        sender.take(&part(0, 5_000));
        sender.take(&part(1, 1));
        let status = shared.status();
        assert_eq!((status.made, status.lost(Reason::NoRoom)), (2, 1), "the first is taken alone");
        assert_eq!(status.items, Items::States);
        let block = inbox.take(Period::NONE).unwrap();
        assert_eq!(block.payload.0, [part(0, 5_000)]);
        inbox.give_back(block, &shared);
        (2..5).for_each(|number| sender.take(&part(number, 300)));
        assert_eq!(shared.status().lost(Reason::NoRoom), 2, "two of them fit");
        assert!(shared.queued() <= 1_000);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test with two threads")]
    fn a_run_over_files_and_the_last_state_wait_for_room() {
        for (live, last) in [(false, false), (true, true)] {
            let (mut sender, mut inbox, shared) = sender(1_000, live);
            sender.take(&part(0, 900));
            let maker = std::thread::spawn(move || {
                sender.take(&StatePart { is_last: last, ..part(1, 900) });
            });
            let mut taken = Vec::new();
            while taken.len() < 2 {
                shared.note_progress();
                if let Some(block) = inbox.take(Period::NONE) {
                    taken.push(block.payload.0[0].part);
                    inbox.give_back(block, &shared);
                }
            }
            maker.join().unwrap();
            assert_eq!((taken, shared.not_sent().records), (vec![0, 1], 0));
            assert!(inbox.is_closed(), "the sender was dropped");
        }
    }

    #[test]
    fn an_interrupt_ends_a_wait() {
        let (mut sender, _inbox, shared) = sender(1_000, false);
        shared.interrupt();
        (0..2).for_each(|number| sender.take(&part(number, 900)));
        assert_eq!(shared.status().lost(Reason::TooLate), 1);
    }

    #[test]
    fn without_a_broker_a_state_is_lost_as_a_whole() {
        let topic = KafkaTopic::parse("127.0.0.1:9/states?format=state").unwrap();
        let access = Access::new(&topic, &Settings::default()).unwrap();
        let shared = Shared::new("test".into(), WaitPolicy::Collector, false);
        let mut sink = PartSink::new(access).unwrap();
        shared.interrupt();
        sink.send(&part(0, 3 * CHUNK_MAX), &shared);
        sink.finish(&shared);
        let summary = shared.summary();
        assert_eq!((summary.not_sent["too_late"], summary.sent.messages), (ONE, 0));
        assert!(summary.failure.is_some());
    }
}
