//! Delivery of messages: each is sent until a broker acknowledges it, and numbered so that a reader detects repetitions.
//!
//! ```text
//! messages ─▶ numbers ─▶ a batch for each partition ─▶ acknowledged? ─ no ─▶ connect again, same numbers
//! ```
//!
//! The messages of a call are delivered or lost before the next call, so in each partition numbers increase, except
//! that a batch occurs again if its acknowledgement was lost. All messages have these headers:
//!
//! | header | is |
//! |---|---|
//! | `format` | the format of the value, as in the URL |
//! | `run` | 16 hexadecimal digits, different in each run |
//! | `sequence` | the number of the message in the run, from 0 |

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use rskafka::chrono::{DateTime, Utc};
use rskafka::record::Record;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use super::partition::partition_of;
use super::session::{Access, Outcome, Session};
use crate::shared::{Shared, now, wall_clock};
use crate::transports::Pauses;
use crate::{Reason, RecordTotals, Sent};

/// Time limits of a connection with the list of topics, and of a batch.
const CONNECT: Duration = Duration::from_secs(5);
const REQUEST: Duration = Duration::from_secs(10);

/// One wait, after which the end is checked.
const SLICE: Duration = Duration::from_millis(50);

/// Most bytes of a batch: less than the default limit of topics, 1 MiB. Smaller if a topic requires it.
const BATCH_MAX: usize = 512 << 10;

/// A message.
#[derive(Clone, Copy)]
pub(crate) struct Message<'a> {
    /// Messages with equal keys are in one partition.
    pub(crate) key: &'a [u8],
    /// The content.
    pub(crate) value: &'a [u8],
    /// The format of the content.
    pub(crate) format: &'static str,
    /// The flows that it contains.
    pub(crate) flows: RecordTotals,
}

/// Delivers messages to a topic.
pub(crate) struct Producer {
    access: Arc<Access>,
    /// `None` while it is dropped.
    runtime: Option<Runtime>,
    session: Option<Session>,
    pauses: Pauses,
    run: String,
    /// The number of the next message.
    next: u64,
    batch_max: usize,
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
        let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
        Ok(Self {
            access: Arc::new(access),
            runtime: Some(runtime),
            session: None,
            pauses: Pauses::new(),
            // A new hasher has random keys.
            run: format!("{:016x}", RandomState::new().hash_one(0)),
            next: 0,
            batch_max: BATCH_MAX,
        })
    }

    /// Sends messages, and counts the flows of each as sent or lost.
    pub(crate) fn deliver(&mut self, messages: &[Message<'_>], shared: &Shared) {
        let first = self.next;
        self.next += messages.len() as u64;
        let mut waiting: Vec<usize> = (0..messages.len()).collect();
        while !waiting.is_empty() {
            if !self.open(shared) {
                return lose(messages, &waiting, Reason::TooLate, shared);
            }
            let (Some(session), Some(runtime)) = (&mut self.session, &self.runtime) else { return };
            let batches = batches(messages, &waiting, session.partitions(), self.batch_max);
            let time = timestamp();
            let record =
                |&place: &usize| record(&messages[place], &self.run, first + place as u64, time);
            let records = batches
                .iter()
                .map(|(&partition, batch)| (partition, batch.places.iter().map(record).collect()));
            let (records, mut outcomes) = (records.collect(), BTreeMap::new());
            wait(runtime, REQUEST, shared, session.produce(records, &mut outcomes));
            let done = self.settle(messages, &batches, &mut outcomes, shared);
            waiting.retain(|place| done.binary_search(place).is_err());
        }
    }

    /// Counts the flows of all batches with a final outcome. Returns the places of their messages, sorted.
    fn settle(
        &mut self,
        messages: &[Message<'_>],
        batches: &BTreeMap<usize, Batch>,
        outcomes: &mut BTreeMap<usize, Outcome>,
        shared: &Shared,
    ) -> Vec<usize> {
        let (mut done, mut error, mut broken) = (Vec::new(), None, false);
        for (partition, batch) in batches {
            let no_answer = || Outcome::Broken("a broker does not answer".into());
            match outcomes.remove(partition).unwrap_or_else(no_answer) {
                Outcome::Taken => {
                    let flows = flows(messages, &batch.places);
                    let (messages, message_octets) =
                        (batch.places.len() as u64, batch.octets as u64);
                    shared.send(Sent { flows, messages, message_octets });
                    shared.works();
                    done.extend(&batch.places);
                }
                Outcome::TooLarge if batch.places.len() > 1 => self.batch_max = batch.octets / 2,
                Outcome::TooLarge => {
                    let octets = batch.octets;
                    error = Some(format!("the topic does not take a message of {octets} octets"));
                    lose(messages, &batch.places, Reason::Failed, shared);
                    done.extend(&batch.places);
                }
                Outcome::Refused(why) => {
                    error = Some(why);
                    lose(messages, &batch.places, Reason::Failed, shared);
                    done.extend(&batch.places);
                }
                Outcome::Broken(why) => (error, broken) = (Some(why), true),
            }
        }
        if let Some(error) = error {
            shared.fails(&error);
        }
        if broken {
            self.session = None;
            self.pauses.broke();
        }
        done.sort_unstable();
        done
    }

    /// Connects, unless there is a connection. Returns false if the output is not waited for any more.
    fn open(&mut self, shared: &Shared) -> bool {
        while self.session.is_none() && !shared.over() {
            shared.pause(self.pauses.left());
            self.connect(shared);
        }
        self.session.is_some()
    }

    /// Tries to connect once.
    fn connect(&mut self, shared: &Shared) {
        let Some(runtime) = &self.runtime else { return };
        let error = match wait(runtime, CONNECT, shared, Session::open(Arc::clone(&self.access))) {
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
        if self.session.is_none() && self.pauses.left().is_zero() {
            self.connect(shared);
            if self.session.is_some() {
                shared.works();
            }
        }
    }

    /// All messages were delivered or lost. A topic that cannot be reached is a failure even without messages.
    pub(crate) fn finish(&mut self, shared: &Shared) {
        if self.session.is_none() && self.open(shared) {
            shared.works();
        }
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        // A name that is still being resolved is not waited for.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Runs `future`. `None`: it took longer than the limit, or the output is not waited for any more.
fn wait<F: Future>(
    runtime: &Runtime,
    limit: Duration,
    shared: &Shared,
    future: F,
) -> Option<F::Output> {
    let end = now() + limit;
    runtime.block_on(async {
        let mut future = pin!(future);
        loop {
            match timeout(SLICE, future.as_mut()).await {
                Ok(output) => return Some(output),
                Err(_) if shared.over() || now() >= end => return None,
                Err(_) => {}
            }
        }
    })
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
    let headers = [
        ("format", message.format.to_owned()),
        ("run", run.to_owned()),
        ("sequence", number.to_string()),
    ];
    Record {
        key: Some(message.key.to_vec()),
        value: Some(message.value.to_vec()),
        headers: headers.map(|(name, value)| (name.to_owned(), value.into_bytes())).into(),
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
