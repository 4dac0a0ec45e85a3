//! Alerts as runs of a program, by a helper process: the run itself may not start programs.
//!
//! ```text
//! Program ── Request ─▶ helper: starts the program, JSON on its standard input ─▶ exit status
//!    ▲                                                                             │
//!    └───────────────────────────── Reply, a line ◀────────────────────────────────┘
//! ```
//!
//! At most [`MOST_RUNNING`] run at a time, and one starts a second after [`BURST`] at once. Alerts wait meanwhile; those
//! for which there is no room are lost and counted.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use super::{Notice, Target, count_lost, count_sent};
use crate::Reason;
use crate::shared::{Shared, now};

/// Most programs that run at a time.
pub const MOST_RUNNING: usize = 4;

/// Most octets of a request; those of alerts are shorter than half of it.
const REQUEST_MAX: usize = 4 << 20;
const _: () = assert!(2 * super::ROOM_BYTES as usize <= REQUEST_MAX);

/// Programs that may start at once, after as many seconds without a start.
const BURST: u32 = 10;

/// A step of a wait.
const STEP: Duration = Duration::from_millis(20);

/// A request to the helper: four octets with the length of the rest, least significant first; then texts, each ended by
/// a zero octet: the JSON object, and environment variables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// For the program's standard input.
    pub json: String,
    /// Names and values, joined by `=`.
    pub variables: Vec<String>,
}

/// The helper's answer to a request: whether the program succeeded, and otherwise the reason. They come in any order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply(pub Result<(), String>);

impl Request {
    /// As octets.
    pub fn encode(&self) -> Vec<u8> {
        let mut octets = vec![0; 4];
        for text in std::iter::once(&self.json).chain(&self.variables) {
            octets.extend(text.bytes().filter(|octet| *octet != 0));
            octets.push(0);
        }
        let length = (octets.len() - 4) as u32;
        octets[..4].copy_from_slice(&length.to_le_bytes());
        octets
    }

    /// Removes the first request from `received`, if it is complete.
    ///
    /// # Errors
    /// It is longer than 4 MiB.
    pub fn take(received: &mut Vec<u8>) -> io::Result<Option<Self>> {
        let Some(length) = received.first_chunk() else { return Ok(None) };
        let length = u32::from_le_bytes(*length) as usize;
        if length > REQUEST_MAX {
            let text = format!("a request of {length} octets: at most {REQUEST_MAX} are allowed");
            return Err(io::Error::new(ErrorKind::InvalidData, text));
        }
        if received.len() < 4 + length {
            return Ok(None);
        }
        let rest = received.split_off(4 + length);
        let request = std::mem::replace(received, rest);
        let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
        let texts = request[4..].strip_suffix(&[0]).unwrap_or_default();
        let mut texts = texts.split(|octet| *octet == 0).map(text);
        Ok(Some(Self { json: texts.next().unwrap_or_default(), variables: texts.collect() }))
    }
}

impl Reply {
    /// As a line.
    pub fn encode(&self) -> String {
        match &self.0 {
            Ok(()) => "\n".into(),
            Err(why) => format!("{}\n", why.replace('\n', " ")),
        }
    }

    /// Removes the first reply from `received`, if it is complete.
    fn take(received: &mut Vec<u8>) -> Option<Self> {
        let end = received.iter().position(|octet| *octet == b'\n')?;
        let rest = received.split_off(end + 1);
        let line = std::mem::replace(received, rest);
        let why = String::from_utf8_lossy(&line[..end]).into_owned();
        Some(Self(if why.is_empty() { Ok(()) } else { Err(why) }))
    }
}

/// The limit of starts.
struct Starts {
    /// Starts that are allowed now.
    allowed: u32,
    /// When the number of them changed last.
    since: Instant,
}

impl Starts {
    /// Takes one start, if it is allowed.
    fn take(&mut self) -> bool {
        let more = self.since.elapsed().as_secs().min(BURST.into()) as u32;
        if more > 0 {
            self.allowed = (self.allowed + more).min(BURST);
            self.since = now();
        }
        let is_allowed = self.allowed > 0;
        self.allowed -= u32::from(is_allowed);
        is_allowed
    }
}

pub(crate) struct Program {
    /// To the helper; reads do not wait.
    stream: UnixStream,
    received: Vec<u8>,
    /// Requests without a reply.
    running: usize,
    starts: Starts,
    /// The helper has ended.
    gone: bool,
}

impl Program {
    pub(crate) fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            received: Vec::new(),
            running: 0,
            starts: Starts { allowed: BURST, since: now() },
            gone: false,
        })
    }

    /// Counts the alerts whose programs have ended.
    fn collect(&mut self, shared: &Shared) {
        let mut piece = [0; 4096];
        loop {
            match self.stream.read(&mut piece) {
                Ok(0) => self.gone = true,
                Ok(octets) => {
                    self.received.extend_from_slice(&piece[..octets]);
                    continue;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => self.gone = true,
            }
            break;
        }
        while let Some(Reply(result)) = Reply::take(&mut self.received) {
            self.running = self.running.saturating_sub(1);
            match result {
                Ok(()) => {
                    shared.works();
                    count_sent(0, shared);
                }
                Err(why) => Self::fail(&why, shared),
            }
        }
        if self.gone {
            for _ in 0..std::mem::take(&mut self.running) {
                Self::fail("the helper that runs programs has ended", shared);
            }
        }
    }

    fn fail(why: &str, shared: &Shared) {
        shared.fails(&why);
        count_lost(Reason::Failed, shared);
    }

    /// Writes a request; the helper always reads.
    fn write(&mut self, mut request: &[u8], shared: &Shared) -> io::Result<()> {
        while !request.is_empty() {
            match self.stream.write(request) {
                Ok(written) => request = &request[written..],
                Err(error) if error.kind() == ErrorKind::WouldBlock && !shared.over() => {
                    std::thread::sleep(STEP);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl Target for Program {
    fn deliver(&mut self, notice: &Notice, shared: &Shared) {
        loop {
            self.collect(shared);
            if self.gone {
                return Self::fail("the helper that runs programs has ended", shared);
            }
            if self.running < MOST_RUNNING && self.starts.take() {
                break;
            }
            let is_late = shared.ended_for().is_some_and(|time| time >= crate::LINGER);
            if shared.over() || is_late {
                return count_lost(Reason::TooLate, shared);
            }
            // The output is slow, but it works.
            if self.running == 0 {
                shared.note_progress();
            }
            std::thread::sleep(STEP);
        }
        let variable = |(name, value): &(String, String)| {
            format!("RINGTAP_ALERT_{}={value}", name.to_ascii_uppercase())
        };
        let text = ("text".to_owned(), notice.text.clone());
        let variables = notice.fields.iter().chain([&text]).map(variable).collect();
        let request = Request { json: notice.object(), variables };
        match self.write(&request.encode(), shared) {
            Ok(()) => self.running += 1,
            Err(error) => {
                // The helper cannot find the next request any more.
                self.gone = true;
                Self::fail(&error.to_string(), shared);
            }
        }
    }

    fn tick(&mut self, shared: &Shared) {
        self.collect(shared);
    }

    fn finish(&mut self, shared: &Shared) {
        let begin = now();
        loop {
            self.collect(shared);
            if self.running == 0 {
                return;
            }
            let waited = shared.ended_for().unwrap_or_else(|| begin.elapsed());
            if shared.over() || waited >= crate::LINGER {
                break;
            }
            std::thread::sleep(STEP);
        }
        for _ in 0..std::mem::take(&mut self.running) {
            shared.fails(&"the program still runs at the end");
            count_lost(Reason::TooLate, shared);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alerts::tests::{notice, shared};

    #[test]
    fn requests_are_read_back_one_by_one() {
        let request = |json: &str| Request { json: json.into(), variables: vec!["A=1".into()] };
        let mut bytes = request("one").encode();
        bytes.extend(Request { json: "t\0wo".into(), variables: vec![] }.encode());
        let mut received = Vec::new();
        let mut taken = Vec::new();
        for byte in bytes {
            received.push(byte);
            taken.extend(Request::take(&mut received).unwrap());
        }
        assert_eq!(taken, [request("one"), Request { json: "two".into(), variables: vec![] }]);
        let empty = Request::take(&mut vec![0; 4]).unwrap();
        assert_eq!(empty, Some(Request::default()));
        let mut long = (REQUEST_MAX as u32 + 1).to_le_bytes().to_vec();
        assert!(Request::take(&mut long).is_err());
    }

    #[test]
    fn a_few_run_at_a_time_and_each_is_counted_by_its_result() {
        let (ours, mut helper) = UnixStream::pair().unwrap();
        let mut program = Program::new(ours).unwrap();
        let shared = shared();
        (0..MOST_RUNNING).for_each(|_| program.deliver(&notice("x"), &shared));
        assert_eq!((program.running, shared.status().sent), (MOST_RUNNING, 0));
        let mut received = vec![0; 64 << 10];
        let octets = helper.read(&mut received).unwrap();
        received.truncate(octets);
        let request = Request::take(&mut received).unwrap().unwrap();
        assert_eq!(request.json, notice("x").json);
        assert_eq!(request.variables, ["RINGTAP_ALERT_ID=7", "RINGTAP_ALERT_TEXT=x"]);
        for reply in [Ok(()), Err("exit status: 3".into()), Ok(())] {
            helper.write_all(Reply(reply).encode().as_bytes()).unwrap();
        }
        program.deliver(&notice("x"), &shared);
        assert_eq!(program.running, 2);
        drop(helper);
        program.finish(&shared);
        let status = shared.status();
        assert_eq!((status.sent, status.lost(Reason::Failed)), (2, 3));
        let error = status.last_error.unwrap().0;
        assert_eq!(error, "the helper that runs programs has ended");
    }

    #[test]
    fn starts_are_limited() {
        let mut starts = Starts { allowed: BURST, since: now() };
        assert_eq!((0..1_000).filter(|_| starts.take()).count() as u32 / BURST, 1);
        starts.since -= Duration::from_secs(3);
        assert!((0..3).all(|_| starts.take()));
    }
}
