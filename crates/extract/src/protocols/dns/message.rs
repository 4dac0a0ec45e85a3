//! Messages (RFC 1035, section 4): header, questions and resource records.
//!
//! ```text
//!  0    2       4           6         8             10           12
//!  | id | flags | questions | answers | authorities | additional | name | type | class | …
//!
//!  flags:  | QR | opcode (4) | AA | TC | RD | RA | Z | AD | CD | response code (4) |
//!  record: | name | type | class | time to live (4) | length | data … |
//! ```
//!
//! A view of the bytes: nothing is copied but names while they are read.

use crate::text::Text;
use crate::{Kind, Unread};

use super::format::{Fault, HEADER};
use super::names::Name;
use super::record::{INTERNET, Record, Refers, push_known};
use super::types::{
    AUTHORITATIVE, FLAGS, OPT, RECURSION_AVAILABLE, TRUNCATED, ZERO, class_name, code_name,
    is_usual_class, operation_name, type_name,
};

/// Most questions read from a message; more than one is unusual.
const QUESTIONS_MAX: usize = 15;
/// Most answers, or updated records, read from a message.
const RECORDS_MAX: usize = 20;
/// Bytes of the shortest question and of the shortest record: the root as name.
const QUESTION_MIN: usize = 5;
const RECORD_MIN: usize = 11;

const CODE: u16 = 0xf;

/// The operations of a message (RFC 1035, 1996, 2136, 8490).
const QUERY: u16 = 0;
const INVERSE_QUERY: u16 = 1;
const STATUS: u16 = 2;
const NOTIFY: u16 = 4;
const UPDATE: u16 = 5;
const STATEFUL: u16 = 6;

/// A message, as far as it is there.
#[derive(Clone, Copy)]
pub(super) struct Message<'a> {
    pub(super) bytes: &'a [u8],
    /// True if the message has more bytes than these.
    pub(super) cut: bool,
}

/// The fixed part of a message.
#[derive(Clone, Copy)]
pub(super) struct Header {
    pub(super) id: u16,
    flags: u16,
    /// Numbers of questions and of records in the three sections.
    counts: [u16; 4],
}

/// What a message says about itself and its records.
#[derive(Default)]
pub(super) struct Outcome {
    /// The message has more values than are read.
    pub(super) too_much: bool,
    /// The extended response code's upper bits, in the place of a code.
    extended: u16,
}

/// A question.
#[derive(Clone)]
pub(super) struct Question {
    pub(super) name: Name,
    pub(super) kind: u16,
    class: u16,
}

impl Question {
    /// No question.
    pub(super) const EMPTY: Self = Self { name: Name::EMPTY, kind: 0, class: 0 };
}

impl Header {
    pub(super) fn is_answer(&self) -> bool {
        self.flags >> 15 != 0
    }

    fn operation(&self) -> u16 {
        self.flags >> 11 & 0xf
    }

    /// True for ordinary questions and answers.
    pub(super) fn is_query(&self) -> bool {
        self.operation() == QUERY
    }

    pub(super) fn questions(&self) -> usize {
        usize::from(self.counts[0])
    }

    fn records(&self) -> usize {
        self.counts[1..].iter().map(|&count| usize::from(count)).sum()
    }

    /// True if a message of this length can have this header; the operation is a registered one.
    pub(super) fn is_possible(&self, len: usize) -> bool {
        let least = HEADER + self.questions() * QUESTION_MIN + self.records() * RECORD_MIN;
        // The counts of a truncated answer may be those of the whole one.
        let fits = least <= len || self.is_answer() && self.flags & TRUNCATED != 0;
        match self.operation() {
            // Zeros are filler, not a message.
            QUERY if !self.is_answer() => fits && self.counts != [0; 4],
            QUERY | INVERSE_QUERY | STATUS | NOTIFY | UPDATE => fits,
            STATEFUL => self.counts == [0; 4],
            _ => false,
        }
    }

    /// True if the header is that of an ordinary question or answer with one question, so that other protocols do not
    /// look like it.
    pub(super) fn is_usual(&self, len: usize) -> bool {
        let [questions, answers, authorities, additional] = self.counts;
        let usual = if self.is_answer() {
            self.flags & CODE <= 10
        } else {
            // A question may have an authority (RFC 1995), and EDNS and a signature as additional records.
            let unset = AUTHORITATIVE | TRUNCATED | RECURSION_AVAILABLE | CODE;
            self.flags & unset == 0 && answers == 0 && authorities <= 1 && additional <= 2
        };
        self.is_query()
            && self.flags & ZERO == 0
            && questions == 1
            && usual
            && self.is_possible(len)
    }
}

impl<'a> Message<'a> {
    pub(super) fn header(&self) -> Result<Header, Fault> {
        let head = self.bytes.first_chunk::<HEADER>().ok_or(Fault::Short)?;
        let field = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
        Ok(Header {
            id: field(0),
            flags: field(2),
            counts: [field(4), field(6), field(8), field(10)],
        })
    }

    /// The reason for a fault.
    pub(super) fn unread(&self, fault: Fault) -> Unread {
        let truncated = |header: Header| header.is_answer() && header.flags & TRUNCATED != 0;
        match fault {
            Fault::Short if self.cut || self.header().is_ok_and(truncated) => Unread::Truncated,
            Fault::Short | Fault::Wrong => Unread::Malformed,
        }
    }

    /// True if a message of this length, of which the bytes may be a part, is an ordinary question or answer without
    /// doubt.
    pub(super) fn is_certain(&self, len: usize) -> bool {
        let Ok(header) = self.header() else { return false };
        if !header.is_usual(len) {
            return false;
        }
        let mut usual = true;
        let mut question = Question::EMPTY;
        let read = self.each_question(&header, &mut question, |question| {
            let &Question { ref name, kind, class } = question;
            let netbios = matches!(kind, 32 | 33) && name.is_netbios();
            usual &= name.is_printable()
                && type_name(kind).is_some()
                && is_usual_class(class)
                && !netbios;
        });
        let at = match read {
            Ok(at) if usual => at,
            Err(Fault::Short) => return self.cut,
            _ => return false,
        };
        match self.each_record(&header, at, &mut |_, _| Ok(())) {
            Ok(end) => self.cut || end == self.bytes.len(),
            Err(Fault::Short) => self.cut || header.flags & TRUNCATED != 0,
            Err(Fault::Wrong) => false,
        }
    }

    /// Reads each question, of at most 15, into `question`, and passes it. Returns the position after them.
    pub(super) fn each_question(
        &self,
        header: &Header,
        question: &mut Question,
        mut each: impl FnMut(&Question),
    ) -> Result<usize, Fault> {
        let mut at = HEADER;
        for _ in 0..header.questions().min(QUESTIONS_MAX) {
            let end = question.name.read(self.bytes, at)?;
            let [t0, t1, c0, c1] = *self.chunk(end)?;
            question.kind = u16::from_be_bytes([t0, t1]);
            question.class = u16::from_be_bytes([c0, c1]);
            each(question);
            at = end + 4;
        }
        Ok(at)
    }

    /// Passes each record and its number, from 0. Returns the position after the last.
    fn each_record(
        &self,
        header: &Header,
        mut at: usize,
        each: &mut dyn FnMut(usize, Record) -> Result<(), Fault>,
    ) -> Result<usize, Fault> {
        for number in 0..header.records() {
            let owner = at;
            let fixed = Name::skip(self.bytes, owner)?;
            let &[t0, t1, c0, c1, l0, l1, l2, l3, d0, d1] = self.chunk(fixed)?;
            let data = fixed + 10..fixed + 10 + usize::from(u16::from_be_bytes([d0, d1]));
            at = data.end;
            if at > self.bytes.len() {
                return Err(Fault::Short);
            }
            let (kind, class) = (u16::from_be_bytes([t0, t1]), u16::from_be_bytes([c0, c1]));
            let ttl = u32::from_be_bytes([l0, l1, l2, l3]);
            each(number, Record { owner, kind, class, ttl, data })?;
        }
        Ok(at)
    }

    /// True if the records can be read, as far as they are there.
    pub(super) fn has_records(&self, header: &Header) -> bool {
        match self.each_record(header, HEADER, &mut |_, _| Ok(())) {
            Ok(_) => true,
            Err(fault) => self.unread(fault) == Unread::Truncated,
        }
    }

    /// Reads the records behind the questions, and passes answers, or what an update changes. `text` is room for one.
    pub(super) fn read_records(
        &self,
        header: &Header,
        at: usize,
        multicast: bool,
        text: &mut Vec<u8>,
        outcome: &mut Outcome,
        found: &mut dyn FnMut(Kind, &[u8]),
    ) -> Result<(), Fault> {
        if header.questions() > QUESTIONS_MAX {
            outcome.too_much = true;
            return Ok(());
        }
        if header.records() == 0 {
            return Ok(());
        }
        let answers = usize::from(header.counts[1]);
        let first_additional = answers + usize::from(header.counts[2]);
        let listed = match (header.is_answer(), header.operation()) {
            (true, QUERY) => 0..answers,
            // Before them are the conditions (RFC 2136, section 2).
            (false, UPDATE) => answers..first_additional,
            _ => 0..0,
        };
        let (mut passed, mut owner, mut name) = (0, Owner::NONE, Name::EMPTY);
        self.each_record(header, at, &mut |number, record| {
            if record.kind == OPT && number >= first_additional {
                outcome.extended = (record.ttl >> 24) as u16;
            }
            if !listed.contains(&number) {
                return Ok(());
            }
            if passed == RECORDS_MAX {
                outcome.too_much = true;
                return Ok(());
            }
            passed += 1;
            let owner = owner.read(self.bytes, record.owner)?;
            let data = record.write(self.bytes, owner, multicast, text)?;
            if header.is_answer() {
                match record.refers() {
                    Refers::Whole => found(Kind::DnsAnswers, &text[data..]),
                    Refers::NameAt(at) => {
                        name.read(self.bytes, record.data.start + at)?;
                        found(Kind::DnsAnswers, name.bytes());
                    }
                    Refers::Other => {}
                }
            }
            found(Kind::DnsRecords, text);
            Ok(())
        })?;
        Ok(())
    }
}

/// The owner of a record: those of most records are the same pointer.
struct Owner {
    name: Name,
    pointer: Option<[u8; 2]>,
}

impl Owner {
    const NONE: Self = Self { name: Name::EMPTY, pointer: None };

    /// The name at this position.
    fn read(&mut self, message: &[u8], at: usize) -> Result<&Name, Fault> {
        let pointer = message.get(at..).and_then(<[u8]>::first_chunk).copied();
        let pointer = pointer.filter(|head: &[u8; 2]| head[0] >= 0xc0);
        if pointer.is_none() || pointer != self.pointer {
            self.pointer = None;
            self.name.read(message, at)?;
            self.pointer = pointer;
        }
        Ok(&self.name)
    }
}

impl<'a> Message<'a> {
    fn chunk<const N: usize>(&self, at: usize) -> Result<&'a [u8; N], Fault> {
        self.bytes.get(at..).and_then(|rest| rest.first_chunk()).ok_or(Fault::Short)
    }
}

/// Passes a question.
pub(super) fn pass_question(
    question: &Question,
    multicast: bool,
    text: &mut Vec<u8>,
    found: &mut dyn FnMut(Kind, &[u8]),
) {
    let &Question { ref name, kind, class } = question;
    found(Kind::DnsQueryName, name.bytes());
    match type_name(kind) {
        Some(name) => found(Kind::DnsQueryType, name.as_bytes()),
        None => found(Kind::DnsQueryType, Text::of(format_args!("TYPE{kind}")).bytes()),
    }
    // The upper bit of multicast DNS asks for a unicast answer (RFC 6762, section 5.4).
    let class = if multicast { class & 0x7fff } else { class };
    if class != INTERNET {
        text.clear();
        push_known(text, class_name(class), "CLASS", class);
        found(Kind::DnsQueryClass, text);
    }
}

/// Passes the operation, unless it is that of ordinary questions and answers, and the flags that are set.
pub(super) fn pass_flags(header: &Header, text: &mut Vec<u8>, found: &mut dyn FnMut(Kind, &[u8])) {
    text.clear();
    let operation = operation_name(header.operation()).filter(|_| !header.is_query());
    let flags = FLAGS.iter().filter(|(flag, _)| header.flags & flag != 0).map(|(_, name)| *name);
    for word in operation.into_iter().chain(flags) {
        if !text.is_empty() {
            text.push(b' ');
        }
        text.extend_from_slice(word.as_bytes());
    }
    if !text.is_empty() {
        found(Kind::DnsFlags, text);
    }
}

/// Passes the name of an answer's response code.
pub(super) fn pass_code(header: &Header, outcome: &Outcome, found: &mut dyn FnMut(Kind, &[u8])) {
    let code = outcome.extended << 4 | header.flags & CODE;
    match code_name(code) {
        Some(name) => found(Kind::DnsResponseCode, name.as_bytes()),
        None => found(Kind::DnsResponseCode, Text::of(format_args!("RCODE{code}")).bytes()),
    }
}
