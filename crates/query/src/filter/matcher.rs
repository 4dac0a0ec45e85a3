//! Filters over the records of a run, with the results that their SQL has over stored ones.

use std::net::IpAddr;

use regex_lite::{Regex, RegexBuilder};
use ringtap_export::{Cell, Cells, Reader};
use ringtap_flow::{FlowKey, FlowRecord, IpVersion};

use super::{Column, Comparison, End, Filter, Source, Test, Value};

const SYN: u8 = 2;
const RST: u8 = 4;
const TCP: u8 = 6;

/// Most memory of a compiled pattern, bytes.
const PATTERN_MOST: usize = 1 << 20;

/// A regular expression that cannot be compiled.
#[derive(Debug, thiserror::Error)]
#[error("invalid pattern {text:?}: {why}")]
pub struct InvalidPattern {
    text: String,
    why: String,
}

/// A compiled [`Filter`].
#[derive(Clone, Debug)]
pub struct Matcher(Node);

#[derive(Clone, Debug)]
enum Node {
    /// Tests of keys come first, none of which is a list of its kind: most flows are decided by them.
    And(Vec<Node>),
    Or(Vec<Node>),
    Not(Box<Node>),
    /// The bits of the mask are these; an address is laid out as in [`FlowKey::src`](ringtap_flow::FlowKey::src).
    Address {
        end: End,
        version: IpVersion,
        network: u128,
        mask: u128,
    },
    /// The lowest and the highest.
    Port(End, u16, u16),
    Protocol(u8),
    Version(u8),
    Failed,
    Refused,
    Number(Vec<Read>, Comparison, u64),
    /// In small letters.
    Text(Vec<Read>, Comparison, String),
    Pattern(Vec<Read>, Regex),
}

/// Reads a [`Source`].
#[derive(Clone, Copy, Debug)]
enum Read {
    Column(Reader),
    Sum([Reader; 2]),
    Duration,
}

impl Matcher {
    /// Compiles a filter.
    ///
    /// # Errors
    /// A regular expression is invalid, or too large.
    pub fn new(filter: &Filter) -> Result<Self, InvalidPattern> {
        Node::new(filter).map(Self)
    }

    /// A flag without which no record has a column of the filter, if there is one.
    pub fn needs(&self) -> Option<&'static str> {
        self.0.needs()
    }

    /// Whether packets alone can show, for some flows, that the filter does not select them.
    pub fn refuses_packets(&self) -> bool {
        self.0.can_be(false)
    }

    /// Whether the filter selects the flow of a packet, if the key of the packet shows it: the packet may be of either direction.
    pub fn of_packet(&self, key: &FlowKey) -> Option<bool> {
        self.0.decided(key, false)
    }

    /// Whether the filter selects the record.
    pub fn matches(&self, record: &FlowRecord) -> bool {
        // Most records fail one of the tests at the begin of a list.
        if let Node::And(all) = &self.0
            && all.iter().map_while(|own| own.of_key(&record.key)).any(|holds| !holds)
        {
            return false;
        }
        if let Some(decided) = self.0.decided(&record.key, true) {
            return decided;
        }
        Cells::with(record, |cells| self.0.holds(record, cells))
    }
}

impl Node {
    fn new(filter: &Filter) -> Result<Self, InvalidPattern> {
        let all = |all: &[Filter]| {
            let mut flat = Vec::new();
            for inner in all {
                match (filter, Self::new(inner)?) {
                    (Filter::And(_), Self::And(own)) | (Filter::Or(_), Self::Or(own)) => {
                        flat.extend(own);
                    }
                    (_, own) => flat.push(own),
                }
            }
            flat.sort_by_key(|own| !own.is_of_key());
            Ok(flat)
        };
        Ok(match filter {
            Filter::And(inner) => Self::And(all(inner)?),
            Filter::Or(inner) => Self::Or(all(inner)?),
            Filter::Not(inner) => Self::Not(Box::new(Self::new(inner)?)),
            Filter::Test(test) => Self::of_test(test)?,
        })
    }

    fn of_test(test: &Test) -> Result<Self, InvalidPattern> {
        Ok(match test {
            Test::Address(end, address, bits) => {
                let (version, address) = match address {
                    IpAddr::V4(address) => (IpVersion::V4, u128::from(u32::from(*address)) << 96),
                    IpAddr::V6(address) => (IpVersion::V6, u128::from(*address)),
                };
                let mask = !u128::MAX.checked_shr(u32::from(*bits)).unwrap_or(0);
                Self::Address { end: *end, version, network: address & mask, mask }
            }
            Test::Port(end, low, high) => Self::Port(*end, *low, *high),
            Test::Protocol(number) => Self::Protocol(*number),
            Test::Version(version) => Self::Version(*version),
            Test::Failed => Self::Failed,
            Test::Refused => Self::Refused,
            Test::Field(columns, comparison, value) => {
                let reads = columns.iter().filter_map(Read::of).collect();
                match value {
                    Value::Number(number) => Self::Number(reads, *comparison, *number),
                    Value::Text(text) if *comparison == Comparison::Matches => {
                        let pattern = RegexBuilder::new(text)
                            .case_insensitive(true)
                            .size_limit(PATTERN_MOST)
                            .build();
                        let wrong = |error: regex_lite::Error| InvalidPattern {
                            text: text.clone(),
                            why: error.to_string(),
                        };
                        Self::Pattern(reads, pattern.map_err(wrong)?)
                    }
                    Value::Text(text) => Self::Text(reads, *comparison, text.to_lowercase()),
                }
            }
        })
    }

    fn needs(&self) -> Option<&'static str> {
        match self {
            Self::And(all) | Self::Or(all) => all.iter().find_map(Self::needs),
            Self::Not(inner) => inner.needs(),
            Self::Number(reads, ..) | Self::Text(reads, ..) | Self::Pattern(reads, _) => {
                // Of several columns one may do.
                let mut all = reads.iter().map(|read| read.needs());
                let first = all.next()?;
                first.filter(|_| all.all(|other| other.is_some()))
            }
            _ => None,
        }
    }

    /// Whether [`Node::decided`] has this result for some key.
    fn can_be(&self, result: bool) -> bool {
        match self {
            Self::And(all) if result => all.iter().all(|own| own.can_be(true)),
            Self::Or(all) if !result => all.iter().all(|own| own.can_be(false)),
            Self::And(all) | Self::Or(all) => all.iter().any(|own| own.can_be(result)),
            Self::Not(inner) => inner.can_be(!result),
            _ => self.is_of_key(),
        }
    }

    /// Whether it is a test of keys alone.
    fn is_of_key(&self) -> bool {
        match self {
            Self::And(all) | Self::Or(all) => all.iter().all(Self::is_of_key),
            Self::Not(inner) => inner.is_of_key(),
            Self::Address { .. } | Self::Port(..) | Self::Protocol(_) | Self::Version(_) => true,
            _ => false,
        }
    }

    /// The result for a flow, if its key decides it. `is_directed`: its source is the initiator, otherwise it may be the other
    /// end.
    fn decided(&self, key: &FlowKey, is_directed: bool) -> Option<bool> {
        match self {
            Self::And(all) => Self::joined(all, false, key, is_directed),
            Self::Or(all) => Self::joined(all, true, key, is_directed),
            Self::Not(inner) => inner.decided(key, is_directed).map(|own| !own),
            own => {
                let result = own.of_key(key)?;
                let both = is_directed || own.of_key(&key.reversed()) == Some(result);
                both.then_some(result)
            }
        }
    }

    /// The first one with the deciding result; else all must have the other one.
    fn joined(all: &[Self], deciding: bool, key: &FlowKey, is_directed: bool) -> Option<bool> {
        let mut decided = Some(!deciding);
        for own in all {
            match own.decided(key, is_directed) {
                Some(result) if result == deciding => return Some(deciding),
                Some(_) => {}
                None => decided = None,
            }
        }
        decided
    }

    /// The result of a test of keys; `None` for another one.
    #[inline(always)]
    fn of_key(&self, key: &FlowKey) -> Option<bool> {
        Some(match self {
            Self::Address { end, version, network, mask } => {
                let own = |end| u128::from_be_bytes(if end == 0 { key.src } else { key.dst });
                key.version == *version && end.any(|end| own(end) & mask == *network)
            }
            Self::Port(end, low, high) => {
                let own = |end| if end == 0 { key.src_port } else { key.dst_port };
                end.any(|end| (*low..=*high).contains(&own(end))) && key.has_ports()
            }
            Self::Protocol(number) => key.protocol == *number,
            Self::Version(version) => key.version as u8 == *version,
            _ => return None,
        })
    }

    fn holds(&self, record: &FlowRecord, cells: &Cells<'_>) -> bool {
        match self {
            Self::And(all) => all.iter().all(|own| own.holds(record, cells)),
            Self::Or(all) => all.iter().any(|own| own.holds(record, cells)),
            Self::Not(inner) => !inner.holds(record, cells),
            Self::Failed => has_syn(record) && record.packets[1] == 0,
            Self::Refused => has_syn(record) && record.tcp_flags[1] & (SYN | RST) == RST,
            Self::Number(reads, comparison, number) => reads
                .iter()
                .any(|read| read.any(record, cells, |cell| matches!(cell, Cell::Number(own) if comparison.holds(&own, number)))),
            Self::Text(reads, comparison, text) => reads.iter().any(|read| {
                read.any(record, cells, |cell| {
                    matches!(cell, Cell::Text(own) if comparison.holds(own.to_lowercase().as_str(), text.as_str()))
                })
            }),
            Self::Pattern(reads, pattern) => reads.iter().any(|read| {
                read.any(record, cells, |cell| matches!(cell, Cell::Text(own) if pattern.is_match(&own)))
            }),
            _ => self.of_key(&record.key) == Some(true),
        }
    }
}

impl End {
    /// Whether one of its ends passes the test: 0 is the source.
    #[inline(always)]
    fn any(self, test: impl Fn(usize) -> bool) -> bool {
        match self {
            Self::Source => test(0),
            Self::Destination => test(1),
            Self::Either => test(0) || test(1),
        }
    }
}

impl Comparison {
    fn holds<T: PartialOrd + ?Sized>(self, own: &T, other: &T) -> bool {
        match self {
            Self::Equal | Self::Matches => own == other,
            Self::Below => own < other,
            Self::AtMost => own <= other,
            Self::Above => own > other,
            Self::AtLeast => own >= other,
        }
    }
}

impl Read {
    fn of(column: &Column) -> Option<Self> {
        Some(match column.source {
            Source::Column(name) => Self::Column(Reader::of(name)?),
            Source::Sum([one, other]) => Self::Sum([Reader::of(one)?, Reader::of(other)?]),
            Source::Duration => Self::Duration,
        })
    }

    fn needs(&self) -> Option<&'static str> {
        match self {
            Self::Column(reader) => reader.needs(),
            Self::Sum(readers) => readers.iter().find_map(|reader| reader.needs()),
            Self::Duration => None,
        }
    }

    /// Whether a value passes the test.
    fn any(
        self,
        record: &FlowRecord,
        cells: &Cells<'_>,
        mut test: impl FnMut(Cell<'_>) -> bool,
    ) -> bool {
        match self {
            Self::Column(reader) => reader.any(cells, test),
            Self::Sum(readers) => {
                let own = |reader: Reader| reader.number(cells).unwrap_or(0);
                test(Cell::Number(readers.map(own).iter().sum()))
            }
            Self::Duration => {
                test(Cell::Number(record.last_ns / 1_000_000 - record.first_ns / 1_000_000))
            }
        }
    }
}

fn has_syn(record: &FlowRecord) -> bool {
    record.key.protocol == TCP && record.tcp_flags[0] & SYN != 0
}
