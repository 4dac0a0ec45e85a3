//! Delivery of messages: each is sent until a broker acknowledges it, and numbered so that a reader detects repetitions.
//!
//! ```text
//! messages ─▶ numbers ─▶ a batch for each partition ─▶ acknowledged? ─ no ─▶ connect again, same numbers
//! ```
//!
//! The messages of a call are delivered or lost before the next call, so in each partition numbers increase, except
//! that a batch occurs again if its acknowledgement was lost. All messages have these headers after their own:
//!
//! | header | is |
//! |---|---|
//! | `run` | 16 hexadecimal digits, different in each run; for states the number of the run in the state |
//! | `sequence` | the number of the message in the run, from 0 |

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use rskafka::chrono::{DateTime, Utc};
use rskafka::record::Record;

use super::partition::partition_of;
use super::runtime::Runtime;
use super::session::{Access, Outcome, Session};
use crate::shared::{Shared, wall_clock};
use crate::transports::Pauses;
use crate::{Reason, RecordTotals, Sent};

/// Time limits of a connection with the list of topics, and of a batch.
const CONNECT: Duration = Duration::from_secs(5);
const REQUEST: Duration = Duration::from_secs(10);

/// Most bytes of a batch: less than the default limit of topics, 1 MiB. Smaller if a topic requires it.
const BATCH_MAX: usize = 512 << 10;

const SILENCE: &str = "a broker does not answer";
const QUOTA: &str =
    "the broker limits us by a quota, so its acknowledgements cannot be read; remove the quota";

/// A message.
#[derive(Clone, Copy)]
pub(crate) struct Message<'a> {
    /// Messages with equal keys are in one partition.
    pub(crate) key: &'a [u8],
    /// The content.
    pub(crate) value: &'a [u8],
    /// Names and values.
    pub(crate) headers: &'a [(&'a str, &'a [u8])],
    /// The flows that it contains.
    pub(crate) flows: RecordTotals,
}

/// Delivers messages to a topic.
pub(crate) struct Producer {
    access: Arc<Access>,
    runtime: Runtime,
    session: Option<Session>,
    pauses: Pauses,
    run: String,
    /// The number of the next message.
    next: u64,
    batch_max: usize,
    /// Why a broker does not answer in time.
    silence: &'static str,
}

/// Messages for one partition.
#[derive(Default)]
struct Batch {
    /// Their places among all messages.
    places: Vec<usize>,
    /// Their octets.
    octets: usize,
    /// The next message does not fit.
    is_full: bool,
}

impl Producer {
    /// Creates a producer. Connects later.
    ///
    /// # Errors
    /// The error of the system if it has no resources for the connections.
    pub(crate) fn new(access: Access) -> io::Result<Self> {
        Ok(Self {
            access: Arc::new(access),
            runtime: Runtime::new()?,
            session: None,
            pauses: Pauses::new(),
            // A new hasher has random keys.
            run: format!("{:016x}", RandomState::new().hash_one(0)),
            next: 0,
            batch_max: BATCH_MAX,
            silence: SILENCE,
        })
    }

    /// Sets the number of the run, for messages that contain it.
    pub(crate) fn set_run(&mut self, run: u64) {
        self.run = format!("{run:016x}");
    }

    /// Sends messages, and counts the flows of each as sent or lost. Returns why messages were lost, if any was.
    pub(crate) fn deliver(&mut self, messages: &[Message<'_>], shared: &Shared) -> Option<Reason> {
        let mut lost = None;
        let first = self.next;
        self.next += messages.len() as u64;
        let mut waiting: Vec<usize> = (0..messages.len()).collect();
        while !waiting.is_empty() {
            let Some(mut session) = self.open(shared) else {
                lose(messages, &waiting, Reason::TooLate, shared);
                return Some(Reason::TooLate);
            };
            let batches = batches(messages, &waiting, session.partitions(), self.batch_max);
            let time = timestamp();
            let record =
                |&place: &usize| record(&messages[place], &self.run, first + place as u64, time);
            let records = batches
                .iter()
                .map(|(&partition, batch)| (partition, batch.places.iter().map(record).collect()));
            let (records, mut outcomes) = (records.collect(), BTreeMap::new());
            self.runtime.wait(REQUEST, shared, session.produce(records, &mut outcomes));
            self.session = Some(session);
            let (done, refused) = self.settle(messages, &batches, &mut outcomes, shared);
            waiting.retain(|place| done.binary_search(place).is_err());
            lost = lost.or(refused.then_some(Reason::Failed));
        }
        lost
    }

    /// Counts the flows of all batches with a final outcome, and ends the session if a connection is broken. Returns the
    /// places of the counted messages, sorted, and whether any of them is lost.
    fn settle(
        &mut self,
        messages: &[Message<'_>],
        batches: &BTreeMap<usize, Batch>,
        outcomes: &mut BTreeMap<usize, Outcome>,
        shared: &Shared,
    ) -> (Vec<usize>, bool) {
        let (mut done, mut error, mut broken, mut refused) = (Vec::new(), None, false, false);
        for (partition, Batch { places, octets, .. }) in batches {
            let no_answer = Outcome::Broken(self.silence.into());
            let refusal = match outcomes.remove(partition).unwrap_or(no_answer) {
                Outcome::Taken => {
                    let (flows, messages) = (flows(messages, places), places.len() as u64);
                    shared.send(Sent { flows, messages, message_octets: *octets as u64 });
                    shared.works();
                    self.silence = SILENCE;
                    done.extend(places);
                    continue;
                }
                Outcome::TooLarge if places.len() > 1 => {
                    self.batch_max = octets / 2;
                    continue;
                }
                Outcome::Broken(why) => {
                    (error, broken) = (Some(why), true);
                    continue;
                }
                Outcome::TooLarge => {
                    format!("the topic does not take a message of {octets} octets")
                }
                Outcome::Refused(why) => why,
                Outcome::OverQuota => {
                    // It reads nothing for a time.
                    self.silence = QUOTA;
                    QUOTA.into()
                }
            };
            (error, refused) = (Some(refusal), true);
            lose(messages, places, Reason::Failed, shared);
            done.extend(places);
        }
        if let Some(error) = error {
            shared.fails(&error);
        }
        if broken {
            self.session = None;
            self.pauses.broke();
        }
        done.sort_unstable();
        (done, refused)
    }

    /// The session, after connecting if there is none. `None`: the output is not waited for any more.
    fn open(&mut self, shared: &Shared) -> Option<Session> {
        while self.session.is_none() && !shared.over() {
            shared.pause(self.pauses.left());
            self.connect(shared);
        }
        self.session.take()
    }

    /// Tries to connect once.
    fn connect(&mut self, shared: &Shared) {
        let session = Session::open(Arc::clone(&self.access));
        let error = match self.runtime.wait(CONNECT, shared, session) {
            Some(Ok(session)) => {
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

    /// Connects before there are messages, so that an error is reported at once.
    pub(crate) fn tick(&mut self, shared: &Shared) {
        if self.session.is_none() && self.pauses.left().is_zero() && !shared.over() {
            self.connect(shared);
            if self.session.is_some() {
                shared.works();
            }
        }
    }

    /// All messages were delivered or lost. A topic that cannot be reached is a failure even without messages.
    pub(crate) fn finish(&mut self, shared: &Shared) {
        if self.session.is_none() && self.open(shared).is_some() {
            shared.works();
        }
    }
}

/// The first messages that wait for each partition, up to `most` octets, or one.
fn batches(
    messages: &[Message<'_>],
    waiting: &[usize],
    partitions: usize,
    most: usize,
) -> BTreeMap<usize, Batch> {
    let mut batches: BTreeMap<usize, Batch> = BTreeMap::new();
    for &place in waiting {
        let Message { key, value, .. } = messages[place];
        let batch = batches.entry(partition_of(key, partitions)).or_default();
        let octets = key.len() + value.len();
        batch.is_full |= !batch.places.is_empty() && batch.octets + octets > most;
        if !batch.is_full {
            batch.places.push(place);
            batch.octets += octets;
        }
    }
    batches
}

fn record(message: &Message<'_>, run: &str, number: u64, timestamp: DateTime<Utc>) -> Record {
    let number = number.to_string();
    let own = [("run", run.as_bytes()), ("sequence", number.as_bytes())];
    let headers = message.headers.iter().copied().chain(own);
    Record {
        key: Some(message.key.to_vec()),
        value: Some(message.value.to_vec()),
        headers: headers.map(|(name, value)| (name.to_owned(), value.to_vec())).collect(),
        timestamp,
    }
}

/// The time of sending: with packet time, a topic would delete messages of old captures at once.
fn timestamp() -> DateTime<Utc> {
    let since = wall_clock().duration_since(UNIX_EPOCH).unwrap_or_default();
    DateTime::from_timestamp_millis(since.as_millis() as i64).unwrap_or_default()
}

fn flows(messages: &[Message<'_>], places: &[usize]) -> RecordTotals {
    let mut flows = RecordTotals::default();
    places.iter().for_each(|&place| flows += messages[place].flows);
    flows
}

fn lose(messages: &[Message<'_>], places: &[usize], reason: Reason, shared: &Shared) {
    shared.lose(reason, flows(messages, places));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::WaitPolicy;
    use crate::{KafkaTopic, Settings};

    const KEYS: [&[u8]; 5] = [b"a", b"b", b"a", b"c", b"a"];

    /// A message with 9 octets of content for each key.
    fn messages() -> Vec<Message<'static>> {
        let flows = RecordTotals { records: 1, packets: 2, octets: 3 };
        let headers: &[(&str, &[u8])] = &[("format", b"json")];
        let message = |key| Message { key, value: b"123456789", headers, flows };
        KEYS.into_iter().map(message).collect()
    }

    fn producer() -> (Producer, Shared) {
        let (topic, _) = KafkaTopic::parse("127.0.0.1:9/flows").unwrap();
        let access = Access::new(&topic, &Settings::default()).unwrap();
        let shared = Shared::new("test".into(), WaitPolicy::Collector, false);
        (Producer::new(access).unwrap(), shared)
    }

    /// Five messages for one partition, with this outcome. Returns the settled places.
    fn settle(
        producer: &mut Producer,
        shared: &Shared,
        most: usize,
        outcome: Outcome,
    ) -> Vec<usize> {
        let (messages, all) = (messages(), [0, 1, 2, 3, 4]);
        let batches = batches(&messages, &all, 1, most);
        producer.settle(&messages, &batches, &mut BTreeMap::from([(0, outcome)]), shared).0
    }

    #[test]
    fn a_batch_is_full_before_a_message_that_does_not_fit() {
        let messages = messages();
        let all: Vec<_> = (0..messages.len()).collect();
        let one = batches(&messages, &all, 1, 1_000);
        assert_eq!((&one[&0].places, one[&0].octets), (&all, 50));
        assert_eq!(batches(&messages, &all, 1, 20)[&0].places, [0, 1]);
        assert_eq!(batches(&messages, &all, 1, 1)[&0].places, [0], "one always fits");
        assert_eq!(batches(&messages, &all[3..], 1, 20)[&0].places, [3, 4]);
        // Equal keys are together, in order.
        let several = batches(&messages, &all, 1_000, 1_000);
        assert_eq!(several.len(), 3);
        assert!(several.values().any(|batch| batch.places == [0, 2, 4]));
    }

    #[test]
    fn a_message_has_key_value_and_headers() {
        let message = record(&messages()[1], "00ff", 7, timestamp());
        assert_eq!(message.key.as_deref(), Some(&b"b"[..]));
        assert_eq!(message.value.as_deref(), Some(&b"123456789"[..]));
        let headers: Vec<_> = message.headers.iter().collect();
        let text = |text: &str| text.as_bytes().to_vec();
        let expected = [("format", "json"), ("run", "00ff"), ("sequence", "7")];
        let expected = expected.map(|(name, value)| (name.to_owned(), text(value)));
        assert!(headers.into_iter().eq(expected.iter().map(|(name, value)| (name, value))));
    }

    #[test]
    fn acknowledged_messages_are_sent_and_a_broken_connection_settles_none() {
        let (mut producer, shared) = producer();
        assert_eq!(settle(&mut producer, &shared, 20, Outcome::Taken), [0, 1]);
        let sent = shared.sent();
        assert_eq!((sent.flows.records, sent.messages, sent.message_octets), (2, 2, 20));
        let broken = Outcome::Broken("reset".into());
        assert_eq!(settle(&mut producer, &shared, 20, broken), [0; 0]);
        assert!(shared.is_failing());
        assert_eq!(shared.last_error().as_deref(), Some("reset"));
        assert_eq!(shared.not_sent().records, 0);
    }

    #[test]
    fn large_batches_are_divided_and_large_messages_are_lost() {
        let (mut producer, shared) = producer();
        assert_eq!(settle(&mut producer, &shared, 1_000, Outcome::TooLarge), [0; 0]);
        assert_eq!((producer.batch_max, shared.is_failing()), (25, false));
        assert_eq!(settle(&mut producer, &shared, 25, Outcome::TooLarge), [0; 0]);
        // Now each batch is one message.
        assert_eq!(settle(&mut producer, &shared, 10, Outcome::TooLarge), [0]);
        assert!(shared.last_error().unwrap().contains("10 octets"));
        let refused = Outcome::Refused("invalid".into());
        assert_eq!(settle(&mut producer, &shared, 20, refused), [0, 1]);
        assert_eq!(shared.not_sent().records, 3);
        shared.judge();
        assert_eq!(shared.summary().not_sent["failed"].packets, 6);
        assert_eq!(shared.summary().failure.as_deref(), Some("invalid"));
    }

    #[test]
    fn a_batch_over_quota_is_lost_and_the_silence_after_it_explained() {
        let (mut producer, shared) = producer();
        assert_eq!(settle(&mut producer, &shared, 20, Outcome::OverQuota), [0, 1]);
        assert_eq!(shared.summary().not_sent["failed"].records, 2);
        let (messages, all) = (messages(), [2, 3]);
        let unanswered = batches(&messages, &all, 1, 20);
        let settled = producer.settle(&messages, &unanswered, &mut BTreeMap::new(), &shared);
        assert_eq!(settled, (Vec::new(), false));
        assert!(shared.last_error().unwrap().contains("quota"));
        settle(&mut producer, &shared, 20, Outcome::Taken);
        producer.settle(&messages, &unanswered, &mut BTreeMap::new(), &shared);
        assert_eq!(shared.last_error().as_deref(), Some(SILENCE));
    }

    #[test]
    fn without_a_broker_messages_are_lost_at_the_end_and_numbered() {
        let (mut producer, shared) = producer();
        shared.interrupt();
        assert_eq!(producer.deliver(&messages(), &shared), Some(Reason::TooLate));
        producer.finish(&shared);
        assert_eq!(producer.next, 5);
        assert_eq!(shared.summary().not_sent["too_late"].records, 5);
        assert!(shared.last_error().unwrap().contains("127.0.0.1:9"));
    }
}
