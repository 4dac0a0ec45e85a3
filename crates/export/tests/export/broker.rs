//! Export to a peer that speaks the protocol of Kafka: requests in flight, repetitions and losses, by counts.

use std::collections::BTreeMap;
use std::io::{Cursor, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use ringtap_export::{Output, Prepared, Settings, Status, Summary};
use rskafka::protocol::record::{ControlBatchOrRecords, Record, RecordBatch};
use rskafka::protocol::traits::ReadType as _;

use crate::common::{answered, record_sinks};

const TOPIC: &str = "flows";

const DUPLICATE: i16 = 46;
const OUT_OF_ORDER: i16 = 45;
const TOO_LARGE: i16 = 10;

/// Batches of a partition that may be in flight.
const IN_FLIGHT: usize = 5;

/// The time after which a test fails, on a busy machine, too.
const HANGS: Duration = Duration::from_secs(300);

/// What a broker has, and what it saw.
#[derive(Default)]
struct Log {
    /// Messages by partition, in the order in which they were taken.
    messages: BTreeMap<i32, Vec<Record>>,
    /// The next number of each partition.
    next: BTreeMap<i32, i32>,
    /// Requests for batches, and those without an answer now and at most.
    requests: usize,
    pending: usize,
    most_pending: usize,
    /// Batches that were repeated, or came before one that was missing.
    repeated: usize,
    early: usize,
    /// Whether requests are read, and batches answered.
    is_open: bool,
    answers: bool,
}

/// A broker that leads all partitions of a topic.
struct Broker {
    address: String,
    log: Mutex<Log>,
    changed: Condvar,
    /// The number of the request after which the connection is closed without an answer. Then batches are answered.
    breaks_at: Option<usize>,
    /// The number of the request that is refused, in `refuses`, because it is too large.
    refuses: Option<usize>,
    /// Whether producers get numbers.
    numbers: bool,
    partitions: i32,
}

impl Broker {
    /// Starts a broker that reads nothing before [`Self::open`], and answers no batch before [`Self::answer`].
    fn start(change: impl FnOnce(&mut Self)) -> Arc<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut broker = Self {
            address: listener.local_addr().unwrap().to_string(),
            log: Mutex::default(),
            changed: Condvar::new(),
            breaks_at: None,
            refuses: None,
            numbers: true,
            partitions: 1,
        };
        change(&mut broker);
        let broker = Arc::new(broker);
        let own = Arc::clone(&broker);
        spawn(move || {
            for stream in listener.incoming().flatten() {
                let own = Arc::clone(&own);
                spawn(move || own.serve(stream));
            }
        });
        broker
    }

    fn url(&self) -> String {
        format!("kafka://{}/{TOPIC}", self.address)
    }

    /// Reads requests from now on.
    fn open(&self) {
        self.log.lock().unwrap().is_open = true;
        self.changed.notify_all();
    }

    /// Answers all batches from now on.
    fn answer(&self) {
        self.log.lock().unwrap().answers = true;
        self.changed.notify_all();
    }

    /// Answers all batches once this number of them waits for an answer.
    fn answer_after(&self, pending: usize) {
        drop(self.wait(|log| log.pending == pending));
        self.answer();
    }

    /// Waits until the condition is true.
    fn wait(&self, is: impl Fn(&Log) -> bool) -> MutexGuard<'_, Log> {
        let log = self.log.lock().unwrap();
        let (log, waited) = self.changed.wait_timeout_while(log, HANGS, |log| !is(log)).unwrap();
        assert!(!waited.timed_out(), "the producer hangs");
        log
    }

    /// Reads requests. Batches are answered by another thread, so requests are read meanwhile.
    fn serve(self: Arc<Self>, stream: TcpStream) {
        stream.set_nodelay(true).unwrap();
        drop(self.wait(|log| log.is_open));
        let (to, answers) = std::sync::mpsc::sync_channel::<Vec<u8>>(1 << 16);
        let (mut writer, own) = (stream.try_clone().unwrap(), Arc::clone(&self));
        spawn(move || {
            for answer in answers {
                own.wait(|log| log.answers).pending -= 1;
                let _ = writer.write_all(&answer);
            }
        });
        let mut reader = stream;
        while let Some(request) = frame(&mut reader) {
            let mut rest = &request[..];
            let (key, version) = (i16_of(&mut rest), i16_of(&mut rest));
            let number = take(&mut rest, 4).to_vec();
            text(&mut rest);
            let body = match key {
                0 => match self.produce(rest, &number) {
                    Some(answer) => {
                        to.send(answer).unwrap();
                        continue;
                    }
                    None => {
                        reader.shutdown(std::net::Shutdown::Both).unwrap();
                        return self.answer();
                    }
                },
                3 => self.metadata(),
                18 => self.versions(version),
                22 => producer(),
                other => panic!("request {other}"),
            };
            let _ = reader.write_all(&framed(&number, &body));
        }
    }

    fn versions(&self, version: i16) -> Vec<u8> {
        assert_eq!(version, 3);
        let mut known = vec![[0, 3, 7], [3, 0, 4], [18, 0, 3]];
        known.extend(self.numbers.then_some([22, 0, 1]));
        let mut body = vec![0, 0, known.len() as u8 + 1];
        for [key, first, last] in known {
            body.extend([0, key, 0, first, 0, last, 0]);
        }
        body.extend([0; 5]);
        body
    }

    fn metadata(&self) -> Vec<u8> {
        let (host, port) = self.address.rsplit_once(':').unwrap();
        let mut body = Vec::new();
        let i32s = |body: &mut Vec<u8>, numbers: &[i32]| {
            numbers.iter().for_each(|number| body.extend(number.to_be_bytes()));
        };
        i32s(&mut body, &[0, 1, 7]);
        put_text(&mut body, host);
        i32s(&mut body, &[port.parse().unwrap()]);
        body.extend([0xff; 4]); // no rack, no name of the cluster
        i32s(&mut body, &[7, 1]);
        body.extend([0; 2]);
        put_text(&mut body, TOPIC);
        body.push(0);
        i32s(&mut body, &[self.partitions]);
        for partition in 0..self.partitions {
            body.extend([0; 2]);
            i32s(&mut body, &[partition, 7, 1, 7, 1, 7]);
        }
        body
    }

    /// Takes a batch as Kafka does. `None`: the connection breaks.
    fn produce(&self, mut rest: &[u8], number: &[u8]) -> Option<Vec<u8>> {
        take(&mut rest, 2 + 2 + 4 + 4);
        text(&mut rest);
        take(&mut rest, 4);
        let partition = i32_of(&mut rest);
        let length = i32_of(&mut rest) as usize;
        let mut batch = Cursor::new(take(&mut rest, length));
        let batch = RecordBatch::read(&mut batch).unwrap();
        let ControlBatchOrRecords::Records(records) = batch.records else { panic!("no records") };

        let mut log = self.log.lock().unwrap();
        log.requests += 1;
        if self.breaks_at == Some(log.requests) {
            return None;
        }
        log.pending += 1;
        log.most_pending = log.most_pending.max(log.pending);
        self.changed.notify_all();
        let next = *log.next.entry(partition).or_default();
        let error = if self.refuses == Some(log.requests) {
            TOO_LARGE
        } else if self.numbers && batch.base_sequence < next {
            log.repeated += 1;
            DUPLICATE
        } else if self.numbers && batch.base_sequence > next {
            log.early += 1;
            OUT_OF_ORDER
        } else {
            *log.next.entry(partition).or_default() += records.len() as i32;
            log.messages.entry(partition).or_default().extend(records);
            0
        };
        let mut body = vec![0, 0, 0, 1];
        put_text(&mut body, TOPIC);
        body.extend(1_i32.to_be_bytes());
        body.extend(partition.to_be_bytes());
        body.extend(error.to_be_bytes());
        body.extend([0; 24 + 4]);
        Some(framed(number, &body))
    }
}

/// Starts a thread that ends with the test program.
fn spawn(work: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().spawn(work).unwrap();
}

fn producer() -> Vec<u8> {
    let mut body = vec![0; 6];
    body.extend(77_i64.to_be_bytes());
    body.extend([0; 2]);
    body
}

fn frame(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length).ok()?;
    let mut request = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut request).ok()?;
    Some(request)
}

fn framed(number: &[u8], body: &[u8]) -> Vec<u8> {
    let length = (number.len() + body.len()) as u32;
    [&length.to_be_bytes(), number, body].concat()
}

fn take<'a>(rest: &mut &'a [u8], count: usize) -> &'a [u8] {
    let (taken, after) = rest.split_at(count);
    *rest = after;
    taken
}

fn i16_of(rest: &mut &[u8]) -> i16 {
    i16::from_be_bytes(take(rest, 2).try_into().unwrap())
}

fn i32_of(rest: &mut &[u8]) -> i32 {
    i32::from_be_bytes(take(rest, 4).try_into().unwrap())
}

fn text(rest: &mut &[u8]) {
    let length = i16_of(rest);
    take(rest, length as usize);
}

fn put_text(body: &mut Vec<u8>, text: &str) {
    body.extend((text.len() as u16).to_be_bytes());
    body.extend(text.as_bytes());
}

/// Exports this number of records. When workers have handed over all of them, opens the broker and calls `opened`. The run
/// ends when they are sent or lost, because its end waits for a limited time.
fn export(broker: &Broker, count: u64, opened: impl FnOnce()) -> Summary {
    let settings = Settings { probe: Some("site a".into()), ..Settings::default() };
    let output = broker.url().parse::<Output>().unwrap();
    let prepared = Prepared::new(&[output], settings).unwrap();
    let no_file = |_: &std::path::Path| unreachable!("no file");
    let (mut sinks, exports) = record_sinks(prepared.start(1, no_file).unwrap());
    for number in 0..count {
        let mut record = answered();
        record.key.src_port = number as u16;
        record.first_ns += number;
        sinks[0].take(&record);
    }
    sinks[0].finish();
    broker.open();
    opened();
    let (handle, pause) = (exports.handle(), Duration::from_millis(5));
    let is_done = |status: &Status| status.sent + status.lost_total() == count;
    for _ in 0..HANGS.as_millis() / pause.as_millis() {
        if is_done(&handle.status()[0]) {
            break;
        }
        std::thread::sleep(pause);
    }
    sinks[0].ending();
    exports.finish().remove(0)
}

/// The header of a message, as text.
fn header(record: &Record, name: &str) -> Option<String> {
    let found = record.headers.iter().find(|header| header.key == name)?;
    Some(String::from_utf8(found.value.clone()).unwrap())
}

/// Checks that all of `count` records are there once and in order, then the statistics of the end. Returns these.
fn check(log: &Log, count: u64, summary: &Summary) -> serde_json::Value {
    assert_eq!((summary.sent.flows.records, summary.sent.messages), (count, count));
    assert!(summary.not_sent.is_empty() && summary.failure.is_none(), "{summary:?}");
    let (mut numbers, mut statistics) = (Vec::new(), Vec::new());
    for records in log.messages.values() {
        let mut own = Vec::new();
        for record in records {
            assert_eq!(header(record, "probe").as_deref(), Some("site a"));
            let value = serde_json::from_slice(record.value.as_ref().unwrap()).unwrap();
            let value: serde_json::Value = value;
            assert_eq!(value["probe"], "site a");
            if header(record, "format").unwrap() == "statistics" {
                assert_eq!(header(record, "sequence"), None);
                assert_eq!(record.key.as_deref(), Some(&b"site a"[..]));
                statistics.push(value);
                continue;
            }
            let number = |name| header(record, name).unwrap().parse::<u64>().unwrap();
            assert_eq!(number("partition-sequence"), own.len() as u64);
            own.push(number("sequence"));
        }
        assert!(own.is_sorted(), "repetitions do not change the order");
        numbers.extend(own);
    }
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(0..count));
    assert_eq!(statistics.len(), 1, "at the end");
    statistics.remove(0)
}

#[test]
fn several_large_batches_are_in_flight_and_what_waits_is_one_batch() {
    let broker = Broker::start(|_| {});
    // 20 MB: more than may be without an answer, and less than may wait.
    let summary = export(&broker, 20_000, || broker.answer_after(IN_FLIGHT));
    let log = broker.log.lock().unwrap();
    let statistics = check(&log, 20_000, &summary);
    assert_eq!((&statistics["records"], &statistics["sent"]), (&20_000.into(), &20_000.into()));
    assert_eq!((&statistics["last"], &statistics["lost"]), (&true.into(), &serde_json::json!({})));
    assert_eq!(log.most_pending, IN_FLIGHT);
    // Each is full, but for the last and the statistics.
    let bytes = summary.sent.message_octets as usize;
    assert!(bytes > 8 << 20, "{bytes}");
    assert!(log.requests <= bytes.div_ceil(400 << 10) + 2, "{} requests", log.requests);
    assert_eq!((log.repeated, log.early), (0, 0));
}

#[test]
fn without_numbers_of_the_cluster_one_batch_is_in_flight() {
    let broker = Broker::start(|broker| broker.numbers = false);
    let summary = export(&broker, 5_000, || broker.answer_after(1));
    let log = broker.log.lock().unwrap();
    check(&log, 5_000, &summary);
    assert_eq!(log.most_pending, 1);
}

#[test]
fn batches_without_an_answer_are_sent_again_and_taken_once() {
    let broker = Broker::start(|broker| (broker.partitions, broker.breaks_at) = (3, Some(3)));
    let summary = export(&broker, 20_000, || {});
    let log = broker.log.lock().unwrap();
    check(&log, 20_000, &summary);
    // The two before the broken connection were taken, and had no answer.
    assert!(log.repeated >= 2, "{}", log.repeated);
    assert_eq!(log.messages.len(), 3);
}

#[test]
fn a_batch_that_is_too_large_is_divided_and_those_behind_it_wait() {
    let broker = Broker::start(|broker| broker.refuses = Some(2));
    let summary = export(&broker, 10_000, || broker.answer_after(IN_FLIGHT));
    let log = broker.log.lock().unwrap();
    check(&log, 10_000, &summary);
    // Those in flight behind the refused one, and one more if the answer to the first is read alone.
    assert!((3..=4).contains(&log.early), "{}", log.early);
}
