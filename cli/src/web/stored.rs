//! The page's questions to the store, which a process of its own answers (see [`crate::query::helper`]): one at a time, in
//! the order in which views want them.
//!
//! Invariants: asking never waits; answers and questions are bounded, those unwanted for longest are dropped.

use std::cell::{Cell, RefCell};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use hashbrown::HashMap;

use super::answer::Answer;
use crate::query::helper::{Ask, MOST_REPLY, Reply};

/// Most questions that are known, and most bytes of their answers.
const MOST: usize = 256;
const MOST_BYTES: usize = 16 << 20;
/// A question that no view has wanted for so many seconds is not asked.
const WANTED_S: u64 = 15;
/// Seconds after which a question that failed is asked again.
const RETRY_S: u64 = 30;

/// What is known of a question.
#[derive(Clone, Debug)]
pub(super) enum Known {
    /// Not answered yet.
    Asked,
    Answered(Arc<Answer>),
    Failed(Arc<str>),
}

struct Entry {
    known: Known,
    bytes: usize,
    /// When it failed.
    since_s: u64,
    /// When a view wanted it last: second of the run, and running number.
    wanted: (u64, u64),
}

/// The times of a store's files, seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Files {
    /// Their length.
    pub(crate) rotate_s: u64,
    /// At multiples of this, a file, a part of each live flow and a slice end.
    pub(crate) joint_s: u64,
}

/// The store of the run, for its page.
pub(crate) struct Store {
    /// Its path, as it was given.
    pub(crate) path: String,
    /// The probe whose records the page shows.
    pub(crate) probe: String,
    pub(crate) files: Files,
    /// The connection to the process that reads it.
    pub(crate) helper: UnixStream,
}

/// The store, as the page sees it.
pub(super) struct Stored {
    /// The path, as it was given.
    pub(super) path: String,
    /// The probe whose records are asked for.
    pub(super) probe: String,
    pub(super) files: Files,
    connection: UnixStream,
    received: Vec<u8>,
    asked: RefCell<Asked>,
    /// Whether the view that is being rendered waits for an answer.
    waits: Cell<bool>,
}

#[derive(Default)]
struct Asked {
    entries: HashMap<Ask, Entry>,
    running: Option<Ask>,
    bytes: usize,
    number: u64,
    /// The connection is closed.
    is_over: bool,
}

impl Stored {
    pub(super) fn new(store: Store) -> io::Result<Self> {
        let Store { path, probe, files, helper: connection } = store;
        connection.set_nonblocking(true)?;
        let (received, asked, waits) = (Vec::new(), RefCell::default(), Cell::new(false));
        Ok(Self { path, probe, files, connection, received, asked, waits })
    }

    /// A view is rendered.
    pub(super) fn begin_view(&self) {
        self.waits.set(false);
    }

    /// Whether the view that was rendered waits for an answer.
    pub(super) fn is_asked(&self) -> bool {
        self.waits.get()
    }

    /// What is known of a question, which is asked if nothing is. `now_s` is the second of the run.
    pub(super) fn know(&self, ask: &Ask, now_s: u64) -> Known {
        let asked = &mut *self.asked.borrow_mut();
        asked.number += 1;
        let wanted = (now_s, asked.number);
        if let Some(entry) = asked.entries.get_mut(ask) {
            entry.wanted = wanted;
            if matches!(entry.known, Known::Failed(_)) && entry.since_s + RETRY_S <= now_s {
                entry.known = Known::Asked;
            }
            self.waits.set(self.waits.get() || matches!(entry.known, Known::Asked));
            return entry.known.clone();
        }
        if asked.is_over {
            return Known::Failed("the process that reads the store has ended".into());
        }
        let entry = Entry { known: Known::Asked, bytes: 0, since_s: 0, wanted };
        asked.entries.insert(ask.clone(), entry);
        self.waits.set(true);
        asked.make_room();
        Known::Asked
    }

    /// The answer to the same question about the latest other window that fits, and that window, if it is known: views of the
    /// present ask about one after another.
    pub(super) fn earlier(
        &self,
        ask: &Ask,
        fits: impl Fn([i64; 2]) -> bool,
    ) -> Option<(Arc<Answer>, [i64; 2])> {
        let asked = self.asked.borrow();
        let known = asked.entries.iter().filter_map(|(other, entry)| {
            let is_same = (&other.question, other.rows) == (&ask.question, ask.rows);
            match (&entry.known, other.window) {
                (Known::Answered(answer), [Some(from), Some(to)])
                    if is_same && fits([from, to]) =>
                {
                    Some((answer, [from, to]))
                }
                _ => None,
            }
        });
        let latest = known.max_by_key(|(_, [from, to])| (*to, *from));
        latest.map(|(answer, window)| (Arc::clone(answer), window))
    }

    /// Takes the answers that have arrived, and asks the next question. Returns whether there is an answer.
    pub(super) fn turn(&mut self, now_s: u64) -> bool {
        let arrived = self.read(now_s);
        let asked = self.asked.get_mut();
        if asked.running.is_none() && !asked.is_over {
            let waits = |entry: &Entry| matches!(entry.known, Known::Asked);
            asked.entries.retain(|_, entry| {
                !waits(entry) || entry.wanted.0.saturating_add(WANTED_S) >= now_s
            });
            let waiting = asked.entries.iter().filter(|(_, entry)| waits(entry));
            let next = waiting.min_by_key(|(_, entry)| entry.wanted.1).map(|(ask, _)| ask.clone());
            if let Some(ask) = next {
                let line = serde_json::to_string(&ask).unwrap_or_default() + "\n";
                // A question is short, and none is on its way.
                match self.connection.write_all(line.as_bytes()) {
                    Ok(()) => asked.running = Some(ask),
                    Err(_) => asked.end(),
                }
            }
        }
        arrived
    }

    fn read(&mut self, now_s: u64) -> bool {
        let mut piece = [0; 16 << 10];
        let mut arrived = false;
        loop {
            match self.connection.read(&mut piece) {
                Ok(0) => self.asked.get_mut().end(),
                Ok(octets) if self.received.len() + octets <= MOST_REPLY => {
                    self.received.extend_from_slice(&piece[..octets]);
                    while let Some(end) = self.received.iter().position(|octet| *octet == b'\n') {
                        let line: Vec<u8> = self.received.drain(..=end).collect();
                        self.asked.get_mut().replied(&line, now_s);
                        arrived = true;
                    }
                    continue;
                }
                Ok(_) => self.asked.get_mut().end(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => self.asked.get_mut().end(),
            }
            return arrived;
        }
    }
}

impl Asked {
    /// A reply to the running question.
    fn replied(&mut self, line: &[u8], now_s: u64) {
        let Some(entry) = self.running.take().and_then(|ask| self.entries.get_mut(&ask)) else {
            return;
        };
        entry.known = match serde_json::from_slice(line) {
            Ok(Reply::Answer(answer)) => {
                entry.bytes = line.len();
                Known::Answered(Arc::new(answer))
            }
            Ok(Reply::Error(error)) => Known::Failed(error.into()),
            Err(error) => Known::Failed(format!("reading the answer: {error}").into()),
        };
        entry.since_s = now_s;
        self.bytes += entry.bytes;
        self.make_room();
    }

    /// Drops what no view has wanted for longest.
    fn make_room(&mut self) {
        while self.entries.len() > MOST || self.bytes > MOST_BYTES {
            let is_free = |ask: &Ask| self.running.as_ref() != Some(ask);
            let oldest = self.entries.iter().filter(|(ask, _)| is_free(ask));
            let oldest = oldest.min_by_key(|(_, entry)| entry.wanted.1).map(|(ask, _)| ask.clone());
            let Some(entry) = oldest.and_then(|ask| self.entries.remove(&ask)) else { break };
            self.bytes -= entry.bytes;
        }
    }

    /// No more answers come.
    fn end(&mut self) {
        (self.is_over, self.running) = (true, None);
        self.entries.retain(|_, entry| !matches!(entry.known, Known::Asked));
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};

    use serde_json::json;

    use super::*;

    fn pair() -> (Stored, BufReader<UnixStream>) {
        let (ours, its) = UnixStream::pair().unwrap();
        let files = Files { rotate_s: 300, joint_s: 300 };
        let store = Store { path: "store".into(), probe: "edge".into(), files, helper: ours };
        (Stored::new(store).unwrap(), BufReader::new(its))
    }

    fn ask(number: u64) -> Ask {
        Ask { question: format!("top {number} hosts"), rows: 10, ..Ask::default() }
    }

    fn next(its: &mut BufReader<UnixStream>) -> Ask {
        let mut line = String::new();
        its.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    fn send(its: &mut BufReader<UnixStream>, reply: &Reply) {
        let line = serde_json::to_string(reply).unwrap() + "\n";
        its.get_mut().write_all(line.as_bytes()).unwrap();
    }

    #[test]
    fn questions_are_asked_one_by_one_as_long_as_a_view_wants_them() {
        let (mut stored, mut its) = pair();
        for number in 0..3 {
            assert!(matches!(stored.know(&ask(number), 100), Known::Asked));
        }
        stored.turn(100);
        assert_eq!(next(&mut its), ask(0));
        // The second is not wanted any more when it could be asked.
        stored.know(&ask(2), 110);
        let answer = Answer { columns: vec!["host".into()], rows: vec![vec![json!("10.0.0.1")]] };
        send(&mut its, &Reply::Answer(answer.clone()));
        while !stored.turn(116) {}
        assert!(matches!(stored.know(&ask(0), 116), Known::Answered(own) if *own == answer));
        assert_eq!(next(&mut its), ask(2));
        send(&mut its, &Reply::Error("no file".into()));
        while !stored.turn(117) {}
        assert!(matches!(stored.know(&ask(2), 117), Known::Failed(error) if &*error == "no file"));
        // A file may be there, or an engine, later.
        assert!(matches!(stored.know(&ask(2), 116 + RETRY_S), Known::Failed(_)));
        assert!(matches!(stored.know(&ask(2), 117 + RETRY_S), Known::Asked));
        stored.turn(117 + RETRY_S);
        assert_eq!(next(&mut its), ask(2));
    }

    #[test]
    fn until_a_window_is_answered_there_is_the_one_before() {
        let (mut stored, mut its) = pair();
        let of = |from, to| Ask { window: [Some(from), Some(to)], ..ask(1) };
        for (number, window) in [(1, (0, 90)), (2, (50, 90)), (3, (60, 90)), (4, (60, 120))] {
            stored.know(&of(window.0, window.1), 100);
            stored.turn(100);
            next(&mut its);
            let answer = Answer { columns: vec!["n".into()], rows: vec![vec![json!(number)]] };
            send(&mut its, &Reply::Answer(answer));
            while !stored.turn(100) {}
        }
        let earlier = |fits: &dyn Fn([i64; 2]) -> bool| {
            let (answer, window) = stored.earlier(&of(65, 130), fits)?;
            Some((answer.rows[0][0].as_u64()?, window))
        };
        assert_eq!(earlier(&|_| true), Some((4, [60, 120])));
        assert_eq!(earlier(&|[_, to]| to == 90), Some((3, [60, 90])));
        assert_eq!(earlier(&|[from, _]| from > 70), None);
        assert!(stored.earlier(&Ask { window: of(65, 130).window, ..ask(2) }, |_| true).is_none());
    }

    #[test]
    fn what_is_kept_is_bounded_and_an_end_is_replied() {
        let (mut stored, mut its) = pair();
        let long = Answer {
            columns: vec!["name".into()],
            rows: vec![vec![json!("n".repeat(MOST_BYTES / 8))]],
        };
        for number in 0..20 {
            stored.know(&ask(number), 100);
            stored.turn(100);
            assert_eq!(next(&mut its), ask(number));
            std::thread::scope(|scope| {
                scope.spawn(|| send(&mut its, &Reply::Answer(long.clone())));
                while !stored.turn(100) {}
            });
        }
        assert!(
            stored.asked.borrow().bytes <= MOST_BYTES && stored.asked.borrow().entries.len() < 9
        );
        for number in 100..100 + 2 * MOST as u64 {
            stored.know(&ask(number), 100);
        }
        assert!(stored.asked.borrow().entries.len() <= MOST);
        drop(its);
        stored.turn(100);
        assert!(matches!(stored.know(&ask(1_000), 100), Known::Failed(_)));
    }
}
