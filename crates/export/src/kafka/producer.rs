//! Delivery of messages: each is sent until a broker acknowledges it, and numbered so that a reader notices losses.
//!
//! ```text
//! messages ─▶ lane of the partition: │ in flight: up to 5 batches │ waiting: full batches, and one that grows │
//!                                      ▲ acknowledged? ─ no ─▶ all of the lane again, in their order
//! ```
//!
//! A batch is sent when it is full, or when no more messages wait, and does not change then. Batches of a partition have
//! numbers for the broker (an idempotent producer), which takes each once and in their order, also after errors and on
//! other connections. A cluster that gives no such numbers gets one batch at a time. All messages have these headers
//! after their own:
//!
//! | header | is |
//! |---|---|
//! | `run` | 16 hexadecimal digits, different in each run; for states the number of the run in the state |
//! | `sequence` | the number of the message in the run, from 0; records without room have numbers, too |
//! | `partition-sequence` | the number of the message in the run and partition, from 0 |
//!
//! Invariant: messages that are not acknowledged take at most [`HELD_MAX`] bytes, and one message.

use std::collections::VecDeque;
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant, UNIX_EPOCH};

use super::batch::Batch;
use super::message::{Message, Outcome, ProducerId};
use super::partition::partition_of;
use super::runtime::Runtime;
use super::session::{Access, Answer, Session};
use super::statistics::{FORMAT, statistics};
use crate::shared::{Shared, now, wall_clock};
use crate::summary::{Reason, Sent};
use crate::topic::Compression;
use crate::transports::Pauses;

/// Time limits of opening all connections, and of an answer.
const CONNECT: Duration = Duration::from_secs(5);
const REQUEST: Duration = Duration::from_secs(10);

/// Most bytes of a batch: less than the default limit of topics, 1 MiB. Smaller if a topic requires it.
const BATCH_MAX: usize = 512 << 10;

/// Most batches of a partition without an answer: those that brokers recognise when they are sent again.
const IN_FLIGHT: usize = 5;

/// Bytes of messages after which the writer waits for answers.
pub(crate) const HELD_MAX: usize = 4 << 20;

/// How often the run says what it sent.
const STATISTICS: Duration = Duration::from_secs(60);

const SILENCE: &str = "a broker does not answer";
const QUOTA: &str = "the broker limits our rate by a quota";
const UNKNOWN: &str = "a broker lost the numbers of our messages";

/// The messages for a partition.
#[derive(Default)]
struct Lane {
    /// Not acknowledged, in their order.
    batches: VecDeque<Batch>,
    /// The number of these that are in flight.
    sent: usize,
    /// The broker's number of the first message of `batches`, modulo 2³¹.
    sequence: u32,
    /// The number of the next message in the run.
    next: u64,
    /// The time by which the broker must answer, while batches are in flight.
    deadline: Option<Instant>,
}

/// Delivers messages to a topic.
pub(crate) struct Producer {
    access: Arc<Access>,
    codec: Compression,
    runtime: Runtime,
    session: Option<Session>,
    /// The broker's number of this producer, once there is one.
    id: Option<ProducerId>,
    pauses: Pauses,
    run: String,
    /// One for each partition, once they are known.
    lanes: Vec<Lane>,
    /// Bytes of all batches.
    held: usize,
    /// Messages that got a number.
    numbered: u64,
    /// The number of the next batch.
    next_batch: u64,
    batch_max: usize,
    /// The time before which no answer is late: brokers over quota read nothing for a while.
    throttled: Instant,
    /// Why a broker does not answer in time.
    silence: &'static str,
    /// Why messages were lost since the last [`Self::drain`].
    lost: Option<Reason>,
    /// When the run last said what it sent.
    reported: Instant,
    /// The value of statistics instead of JSON.
    statistics_value: Option<Vec<u8>>,
    scratch: Vec<u8>,
}

impl Producer {
    /// Creates a producer. Connects later.
    ///
    /// # Errors
    /// The error of the system if it has no resources for the connections.
    pub(crate) fn new(access: Access) -> io::Result<Self> {
        Ok(Self {
            codec: access.compression(),
            access: Arc::new(access),
            runtime: Runtime::new()?,
            session: None,
            id: None,
            pauses: Pauses::new(),
            // A new hasher has random keys.
            run: format!("{:016x}", RandomState::new().hash_one(0)),
            lanes: Vec::new(),
            held: 0,
            numbered: 0,
            next_batch: 0,
            batch_max: BATCH_MAX,
            throttled: now(),
            silence: SILENCE,
            lost: None,
            reported: now(),
            statistics_value: None,
            scratch: Vec::new(),
        })
    }

    /// With this value of statistics instead of JSON.
    pub(crate) fn with_statistics(self, statistics_value: Option<Vec<u8>>) -> Self {
        Self { statistics_value, ..self }
    }

    /// The name of the probe.
    pub(crate) fn probe(&self) -> Option<&str> {
        self.access.probe().name.as_deref()
    }

    /// Sets the number of the run, for messages that contain it.
    pub(crate) fn set_run(&mut self, run: u64) {
        self.run = format!("{run:016x}");
    }

    /// Takes a message, which is acknowledged or lost later; waits while too many are not acknowledged. Then its flows
    /// are counted as sent or lost.
    pub(crate) fn push(&mut self, message: &Message<'_>, shared: &Shared) {
        while self.lanes.is_empty() || self.held >= HELD_MAX {
            if shared.over() {
                return self.give_up(Some(message), shared);
            }
            self.work(true, Duration::MAX, shared);
        }
        let at = partition_of(message.key, self.lanes.len());
        let mut numbers = [itoa::Buffer::new(), itoa::Buffer::new()];
        let [sequence, in_partition] = &mut numbers;
        let numbers = [
            ("run", self.run.as_bytes()),
            ("sequence", sequence.format(self.numbered + shared.unnumbered()).as_bytes()),
            ("partition-sequence", in_partition.format(self.lanes[at].next).as_bytes()),
        ];
        // What is about messages is none of them.
        let counts = message.flows.is_some();
        let numbers = if counts { &numbers[..] } else { &[] };
        let lane = &mut self.lanes[at];
        let (batch_max, scratch) = (self.batch_max, &mut self.scratch);
        let mut add = |batch: &mut Batch, held: &mut usize| {
            let before = batch.memory();
            let fits = batch.push(message, numbers, batch_max, scratch);
            *held += batch.memory() - before;
            fits
        };
        let growing = lane.batches.back_mut().filter(|batch| !batch.is_sealed);
        let fits = growing.map(|batch| add(batch, &mut self.held));
        if fits != Some(true) {
            let mut batch = Batch::new(self.next_batch, now_ms());
            self.next_batch += 1;
            add(&mut batch, &mut self.held);
            lane.batches.push_back(batch);
        }
        lane.next += u64::from(counts);
        self.numbered += u64::from(counts);
        if fits == Some(false) {
            // A batch is full.
            self.work(false, Duration::ZERO, shared);
        }
    }

    /// Sends what waits, and waits for answers up to this time. Returns true if nothing is left.
    pub(crate) fn rest(&mut self, time: Duration, shared: &Shared) -> bool {
        if self.held == 0 {
            std::thread::park_timeout(time);
        } else if shared.over() {
            self.give_up(None, shared);
        } else {
            self.work(true, time, shared);
        }
        self.held == 0
    }

    /// Waits until all messages are acknowledged or lost. Returns why some were lost since the last call, if any was.
    pub(crate) fn drain(&mut self, shared: &Shared) -> Option<Reason> {
        while self.held > 0 {
            if shared.over() {
                self.give_up(None, shared);
            } else {
                self.work(true, Duration::MAX, shared);
            }
        }
        self.lost.take()
    }

    /// Returns true if a message was lost since the last [`Self::drain`].
    pub(crate) fn has_lost(&self) -> bool {
        self.lost.is_some()
    }

    /// Connects, or sends batches and handles answers; waits up to this time for a change. `flush`: also batches that
    /// are not full.
    fn work(&mut self, flush: bool, time: Duration, shared: &Shared) {
        if self.session.is_none() {
            return self.reconnect(time, shared);
        }
        if let Err(error) = self.send(flush) {
            return self.broke(&error.to_string(), shared);
        }
        let Some(session) = &mut self.session else { return };
        if self.lanes.iter().all(|lane| lane.sent == 0) {
            return;
        }
        let mut answers = Vec::new();
        if time.is_zero() {
            self.runtime.turn();
        } else {
            match self.runtime.wait(time.min(REQUEST), shared, session.answer()) {
                Some(Some(answer)) => answers.push(answer),
                // A request panicked.
                Some(None) => return self.broke(super::session::MALFORMED, shared),
                None => {}
            }
        }
        answers.extend(session.more_answers());
        for answer in answers {
            self.take(answer, shared);
        }
        let time = now();
        let is_late = |lane: &Lane| lane.sent > 0 && lane.deadline.is_some_and(|end| time >= end);
        if self.session.is_some() && time >= self.throttled && self.lanes.iter().any(is_late) {
            self.broke(self.silence, shared);
        }
    }

    /// Sends batches that wait, as far as their partitions may have more in flight.
    fn send(&mut self, flush: bool) -> io::Result<()> {
        let Some(session) = &mut self.session else { return Ok(()) };
        let _context = self.runtime.enter();
        let producer = session.producer();
        let most = if producer == ProducerId::NONE { 1 } else { IN_FLIGHT };
        for (at, lane) in self.lanes.iter_mut().enumerate() {
            // After an error the lane is sent again, once all its answers are there.
            if lane.batches.iter().take(lane.sent).any(|one| one.answer.is_some()) {
                continue;
            }
            let growing = usize::from(!flush);
            let ready = lane.batches.len().saturating_sub(growing).min(most);
            let mut sequence = lane.sequence;
            for (place, batch) in lane.batches.iter_mut().enumerate().take(ready) {
                if place >= lane.sent {
                    batch.is_sealed = true;
                    let encoded = batch.encode(producer, sequence as i32, self.codec)?;
                    session.send(at, batch.number, encoded);
                    if place == 0 {
                        lane.deadline = Some(now() + REQUEST);
                    }
                }
                sequence = after(sequence, batch);
            }
            lane.sent = lane.sent.max(ready);
        }
        Ok(())
    }

    /// Handles an answer.
    fn take(&mut self, answer: Answer, shared: &Shared) {
        let Answer { lane: at, number, outcome, throttle_ms } = answer;
        if throttle_ms > 0 {
            self.throttled = now() + Duration::from_millis(throttle_ms) + REQUEST;
            self.silence = QUOTA;
        } else if outcome == Outcome::Taken {
            self.silence = SILENCE;
        }
        let Some(lane) = self.lanes.get_mut(at) else { return };
        lane.deadline = Some(now() + REQUEST);
        let sent = lane.batches.iter_mut().take(lane.sent);
        if let Some(batch) = sent.into_iter().find(|batch| batch.number == number) {
            batch.answer = Some(outcome);
            self.settle(at, shared);
        }
    }

    /// Counts the batches of a lane that have a final answer. After an error those behind it are sent again.
    fn settle(&mut self, at: usize, shared: &Shared) {
        loop {
            let lane = &mut self.lanes[at];
            let Some(first) = lane.batches.front().filter(|_| lane.sent > 0) else { return };
            let error = match &first.answer {
                None => return,
                Some(Outcome::Taken) => {
                    let (flows, messages, message_octets) = first.counts();
                    lane.sequence = after(lane.sequence, first);
                    lane.sent -= 1;
                    self.drop_first(at);
                    shared.send(Sent { flows, messages, message_octets });
                    shared.works();
                    continue;
                }
                Some(error) => error.clone(),
            };
            if let Outcome::Broken(why) = &error {
                return self.broke(why, shared);
            }
            if lane.batches.iter().take(lane.sent).any(|batch| batch.answer.is_none()) {
                return;
            }
            lane.again();
            let (count, bytes) =
                lane.batches.front().map_or((0, 0), |one| (one.len(), one.bytes()));
            match error {
                Outcome::TooLarge if count > 1 => self.halve(at),
                Outcome::TooLarge => {
                    let error = format!("the topic does not take a message of {bytes} octets");
                    self.refuse(at, &error, shared);
                }
                Outcome::Refused(error) => self.refuse(at, &error, shared),
                _ => {
                    // With a new number of the producer, those of all partitions begin again.
                    self.id = None;
                    self.broke(UNKNOWN, shared);
                    self.lanes.iter_mut().for_each(|lane| lane.sequence = 0);
                }
            }
            return;
        }
    }

    /// Divides the first batch of a lane, and makes further batches smaller.
    fn halve(&mut self, at: usize) {
        let Some(batch) = self.drop_first(at) else { return };
        self.batch_max = batch.bytes() / 2;
        let halves = batch.split(self.next_batch);
        self.next_batch += 1;
        self.held += halves.iter().map(Batch::memory).sum::<usize>();
        halves.into_iter().rev().for_each(|half| self.lanes[at].batches.push_front(half));
    }

    /// Loses the first batch of a lane.
    fn refuse(&mut self, at: usize, error: &str, shared: &Shared) {
        if let Some(batch) = self.drop_first(at) {
            shared.fails(&error);
            shared.lose(Reason::Failed, batch.counts().0);
            self.lost = self.lost.or(Some(Reason::Failed));
        }
    }

    fn drop_first(&mut self, at: usize) -> Option<Batch> {
        let batch = self.lanes[at].batches.pop_front()?;
        self.held -= batch.memory();
        Some(batch)
    }

    /// Nothing is waited for any more: all messages are lost, and this one.
    fn give_up(&mut self, message: Option<&Message<'_>>, shared: &Shared) {
        let mut flows = message.and_then(|message| message.flows).unwrap_or_default();
        self.numbered += u64::from(message.is_some());
        for at in 0..self.lanes.len() {
            self.lanes[at].again();
            while let Some(batch) = self.drop_first(at) {
                flows += batch.counts().0;
            }
        }
        self.close();
        if self.silence == QUOTA {
            shared.fails(&QUOTA);
        }
        shared.lose(Reason::TooLate, flows);
        self.lost = Some(Reason::TooLate);
    }

    /// A connection is broken: all that is not acknowledged is sent again.
    fn broke(&mut self, error: &str, shared: &Shared) {
        shared.fails(&error);
        self.close();
        self.pauses.broke();
        self.lanes.iter_mut().for_each(Lane::again);
    }

    fn close(&mut self) {
        let _context = self.runtime.enter();
        self.session = None;
    }

    /// Connects after the pause, as far as the time permits.
    fn reconnect(&mut self, time: Duration, shared: &Shared) {
        let (left, begin) = (self.pauses.left(), now());
        let pause = left.min(time);
        shared.pause(pause);
        // The end of the run and HUP end a pause early.
        if pause == left || begin.elapsed() < pause {
            self.connect(shared);
        }
    }

    /// Tries to connect once.
    fn connect(&mut self, shared: &Shared) {
        let session = Session::open(Arc::clone(&self.access), self.id);
        let error = match self.runtime.wait(CONNECT, shared, session) {
            Some(Ok(session)) => {
                self.id = Some(session.producer());
                self.divide(session.partitions());
                self.session = Some(session);
                return self.pauses.opened();
            }
            Some(Err(error)) => error,
            // An attempt that the end interrupted has no better error than those before it.
            None if shared.last_error().is_some() && shared.over() => return,
            None => "no broker answers".into(),
        };
        shared.fails(&error);
        self.pauses.failed();
    }

    /// Sets the number of partitions. Batches of partitions that are gone go to others.
    fn divide(&mut self, partitions: usize) {
        let gone = self.lanes.split_off(partitions.min(self.lanes.len()));
        self.lanes.resize_with(partitions, Lane::default);
        for (at, lane) in gone.into_iter().enumerate() {
            self.lanes[at % partitions].batches.extend(lane.batches);
        }
    }

    /// Called once a second. Connects before there are messages, so that an error is reported at once.
    pub(crate) fn tick(&mut self, shared: &Shared) {
        if self.session.is_none() && self.pauses.left().is_zero() && !shared.over() {
            self.connect(shared);
            if self.session.is_some() && self.held == 0 {
                shared.works();
            }
        }
        if self.session.is_some() && self.reported.elapsed() >= STATISTICS {
            self.report(false, shared);
        }
    }

    /// Ends: all messages are delivered or lost, and the run says so. A topic that cannot be reached is a failure even
    /// without messages.
    pub(crate) fn finish(&mut self, shared: &Shared) {
        self.drain(shared);
        while self.session.is_none() && !shared.over() {
            self.reconnect(Duration::MAX, shared);
            if self.session.is_some() {
                shared.works();
            }
        }
        if self.session.is_some() {
            self.report(true, shared);
            self.drain(shared);
        }
    }

    /// Sends what the run made, sent and lost so far, if the probe has a name.
    fn report(&mut self, last: bool, shared: &Shared) {
        self.reported = now();
        let Some(probe) = self.probe().map(str::to_owned) else { return };
        let (about, status) = (self.access.probe(), shared.status());
        let (headers, json) = statistics(about, &self.run, now_ms(), last, &status);
        let named = [("format", FORMAT), ("probe", probe.as_bytes())];
        let rest = headers.iter().map(|(name, text)| (*name, text.as_bytes()));
        let headers: Vec<_> = named.into_iter().chain(rest).collect();
        let value = self.statistics_value.clone().unwrap_or(json);
        let (key, headers) = (probe.as_bytes(), &headers[..]);
        self.push(&Message { key, value: &value, headers, flows: None }, shared);
    }
}

impl Lane {
    /// All batches are sent again.
    fn again(&mut self) {
        self.sent = 0;
        self.batches.iter_mut().for_each(|batch| batch.answer = None);
    }
}

/// The broker's number of the message after a batch.
fn after(sequence: u32, batch: &Batch) -> u32 {
    sequence.wrapping_add(batch.len() as u32) & 0x7fff_ffff
}

/// The time of sending: with packet time, a topic would delete messages of old captures at once.
fn now_ms() -> i64 {
    wall_clock().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RecordTotals;
    use crate::shared::WaitPolicy;
    use crate::{KafkaTopic, Settings};

    const KEYS: [&[u8]; 5] = [b"a", b"b", b"a", b"c", b"a"];

    /// A producer for a topic with this number of partitions, whose first `sent` batches are in flight, and the five
    /// messages of [`KEYS`].
    fn producer(partitions: usize, batch_max: usize, sent: usize) -> (Producer, Shared) {
        let topic = KafkaTopic::parse("127.0.0.1:9/flows").unwrap();
        let access = Access::new(&topic, &Settings::default()).unwrap();
        let shared = Shared::new("test".into(), WaitPolicy::Collector, false);
        let mut producer = Producer::new(access).unwrap();
        producer.divide(partitions);
        producer.batch_max = batch_max;
        // As if a connection had just failed: nothing is sent.
        producer.pauses.failed();
        let flows = Some(RecordTotals { records: 1, packets: 2, octets: 3 });
        let headers: &[(&str, &[u8])] = &[("format", b"json")];
        for key in KEYS {
            producer.push(&Message { key, value: b"123456789", headers, flows }, &shared);
        }
        producer.lanes[0].sent = sent;
        producer.lanes[0].batches.iter_mut().take(sent).for_each(|batch| batch.is_sealed = true);
        (producer, shared)
    }

    /// Batches of one message.
    fn single() -> (Producer, Shared) {
        producer(1, 100, 3)
    }

    fn answer(producer: &mut Producer, shared: &Shared, number: u64, outcome: Outcome) {
        producer.take(Answer { lane: 0, number, outcome, throttle_ms: 0 }, shared);
    }

    /// The numbers of the batches that wait.
    fn waiting(producer: &Producer) -> Vec<u64> {
        producer.lanes[0].batches.iter().map(|batch| batch.number).collect()
    }

    #[test]
    fn messages_with_equal_keys_are_in_one_partition_in_batches() {
        let (producer, _) = producer(1_000, BATCH_MAX, 0);
        let mut lens: Vec<_> =
            producer.lanes.iter().flat_map(|lane| &lane.batches).map(Batch::len).collect();
        lens.sort_unstable();
        assert_eq!(lens, [1, 1, 3]);
        assert_eq!(single().0.lanes[0].batches.len(), 5);
    }

    #[test]
    fn acknowledged_batches_are_sent_in_order_and_their_memory_is_free() {
        let (mut producer, shared) = single();
        let held = producer.held;
        answer(&mut producer, &shared, 1, Outcome::Taken);
        assert_eq!(shared.sent().messages, 0, "the one before has no answer");
        answer(&mut producer, &shared, 0, Outcome::Taken);
        let sent = shared.sent();
        assert_eq!((sent.flows.records, sent.messages, sent.message_octets), (2, 2, 20));
        assert_eq!((waiting(&producer), producer.lanes[0].sent), (vec![2, 3, 4], 1));
        assert_eq!(producer.lanes[0].sequence, 2);
        assert!(producer.held < held);
    }

    #[test]
    fn a_broken_connection_loses_nothing_and_all_is_sent_again() {
        let (mut producer, shared) = single();
        answer(&mut producer, &shared, 0, Outcome::Broken("reset".into()));
        assert_eq!((waiting(&producer), producer.lanes[0].sent), (vec![0, 1, 2, 3, 4], 0));
        assert_eq!(shared.last_error().as_deref(), Some("reset"));
        assert_eq!(shared.not_sent().records, 0);
    }

    /// A broker that has it recognises it by its numbers, so it would not take the messages that were added.
    #[test]
    fn a_batch_that_was_sent_does_not_grow() {
        let (mut producer, shared) = producer(1, BATCH_MAX, 1);
        let message = Message { key: b"a", value: b"", headers: &[], flows: None };
        let lens = |producer: &Producer| -> Vec<_> {
            producer.lanes[0].batches.iter().map(Batch::len).collect()
        };
        producer.push(&message, &shared);
        assert_eq!(lens(&producer), [5, 1]);
        answer(&mut producer, &shared, 0, Outcome::Broken("reset".into()));
        producer.push(&message, &shared);
        assert_eq!(lens(&producer), [5, 2]);
        // Only this one was sent.
        producer.lanes[0].batches.pop_back();
        producer.push(&message, &shared);
        assert_eq!(lens(&producer), [5, 1]);
    }

    #[test]
    fn batches_behind_a_refused_one_keep_their_order() {
        let (mut producer, shared) = single();
        answer(&mut producer, &shared, 0, Outcome::Refused("invalid".into()));
        assert_eq!(producer.lanes[0].sent, 3, "two answers are missing");
        answer(&mut producer, &shared, 1, Outcome::OutOfOrder);
        answer(&mut producer, &shared, 2, Outcome::OutOfOrder);
        assert_eq!((waiting(&producer), producer.lanes[0].sent), (vec![1, 2, 3, 4], 0));
        assert_eq!(producer.lanes[0].sequence, 0, "the broker has none of them");
        assert_eq!(shared.not_sent().records, 1);
        assert_eq!(producer.lost, Some(Reason::Failed));
        shared.judge();
        assert_eq!(shared.summary().failure.as_deref(), Some("invalid"));
    }

    #[test]
    fn large_batches_are_divided_and_large_messages_are_lost() {
        let (mut producer, shared) = producer(1, BATCH_MAX, 1);
        answer(&mut producer, &shared, 0, Outcome::TooLarge);
        assert_eq!((waiting(&producer), shared.is_failing()), (vec![0, 1], false));
        assert!(producer.batch_max < 500, "{}", producer.batch_max);
        producer.lanes[0].sent = 1;
        answer(&mut producer, &shared, 0, Outcome::TooLarge);
        producer.lanes[0].sent = 1;
        answer(&mut producer, &shared, 0, Outcome::TooLarge);
        assert!(shared.last_error().unwrap().contains("does not take a message of"));
        assert_eq!(shared.not_sent().records, 1);
        assert_eq!(producer.lanes[0].batches.iter().map(Batch::len).sum::<usize>(), 4);
    }

    #[test]
    fn a_producer_that_brokers_do_not_know_gets_another_number() {
        let (mut producer, shared) = single();
        producer.id = Some(ProducerId { id: 1, epoch: 0 });
        for number in 0..3 {
            answer(&mut producer, &shared, number, Outcome::OutOfOrder);
        }
        assert_eq!((producer.id, producer.lanes[0].sequence), (None, 0));
        assert_eq!((waiting(&producer).len(), shared.not_sent().records), (5, 0));
    }

    #[test]
    fn a_quota_extends_the_time_for_an_answer_and_explains_silence() {
        let (mut producer, shared) = single();
        let outcome = Outcome::Taken;
        producer.take(Answer { lane: 0, number: 0, outcome, throttle_ms: 3_600_000 }, &shared);
        assert_eq!((producer.silence, shared.sent().messages), (QUOTA, 1));
        assert!(producer.throttled > now() + Duration::from_secs(3_000));
        answer(&mut producer, &shared, 1, Outcome::Taken);
        assert_eq!(producer.silence, SILENCE);
    }

    #[test]
    fn losses_before_a_message_are_in_its_number() {
        let (mut producer, shared) = producer(1, BATCH_MAX, 0);
        let one = RecordTotals { records: 1, ..RecordTotals::default() };
        shared.drop_made(Reason::NoRoom, one);
        shared.drop_made(Reason::NoRoom, one);
        let message = Message { key: b"a", value: b"", headers: &[], flows: Some(one) };
        producer.push(&message, &shared);
        let batch = producer.lanes[0].batches.front().unwrap();
        let encoded = batch.encode(ProducerId::NONE, 0, Compression::None).unwrap();
        let text = String::from_utf8_lossy(&encoded).into_owned();
        // The length of a value of one digit is 2 as a zigzag number.
        let last = text.rfind("run").map(|at| &text[at..]).unwrap();
        assert!(last.contains("sequence\u{2}7"), "{last:?}");
        assert!(last.contains("partition-sequence\u{2}5"), "{last:?}");
    }

    #[test]
    fn the_numbers_of_brokers_begin_again_after_two_to_the_31() {
        let (producer, _) = producer(1, BATCH_MAX, 0);
        let batch = producer.lanes[0].batches.front().unwrap();
        assert_eq!((batch.len(), after(i32::MAX as u32 - 1, batch)), (5, 3));
    }

    #[test]
    fn without_a_broker_messages_are_lost_at_the_end_and_numbered() {
        let (mut producer, shared) = producer(1, BATCH_MAX, 0);
        shared.interrupt();
        while !shared.over() {
            std::thread::yield_now();
        }
        assert_eq!(producer.drain(&shared), Some(Reason::TooLate));
        producer.finish(&shared);
        assert_eq!((producer.numbered, producer.held), (5, 0));
        assert_eq!(shared.summary().not_sent["too_late"].records, 5);
    }
}
