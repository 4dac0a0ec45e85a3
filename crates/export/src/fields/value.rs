//! The values of fields, and how text formats write them.

use ringtap_flow::{Facts, FlowStatistics, History, IpVersion, Kind};

use crate::formats::CommunityId;
use crate::formats::address::{push_address, push_mac};
use crate::formats::lines::{push_csv, push_fact, push_json, push_number};
use crate::formats::protocol::ICMPV6;

/// A value of a field. The variant is a constant of the row, so where it is written there is no branch.
pub(crate) enum Value<'a> {
    Number(u64),
    /// Protocol, and type and code of an ICMP message.
    TypeCode(u8, u16),
    /// As in [`ringtap_flow::FlowKey::src`].
    Address(IpVersion, &'a [u8; 16]),
    /// An Ethernet address.
    Mac(&'a [u8; 6]),
    /// A text that needs neither escapes nor quotes.
    Word(&'a str),
    /// Letters of a history.
    Letters(History),
    Id(CommunityId),
    /// Any text, UTF-8.
    Name(&'a [u8]),
    /// The values of a kind.
    Fact(&'a Facts, Kind),
    /// A list of numbers, not empty.
    List(Numbers<'a>),
}

/// A list of the statistics of a record.
#[derive(Clone, Copy)]
pub(crate) struct Numbers<'a> {
    pub(super) statistics: &'a FlowStatistics,
    /// What times count from, nanoseconds.
    pub(super) first_ns: u64,
    pub(super) direction: usize,
    pub(super) of: Listed,
}

/// What a list is of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listed {
    PacketOctets,
    PacketDirections,
    PacketTimes,
    PacketFlags,
    BurstPackets,
    BurstOctets,
    BurstTimes,
    BurstDurations,
}

impl Numbers<'_> {
    /// Calls `each` with the numbers in order.
    #[inline]
    pub(crate) fn each(self, mut each: impl FnMut(u64)) {
        let since = |ns: u64| ns.saturating_sub(self.first_ns) / 1_000;
        let packets = self.statistics.first_packets().iter();
        let bursts = self.statistics.bursts(self.direction);
        match self.of {
            Listed::PacketOctets => packets.for_each(|own| each(own.octets.into())),
            Listed::PacketDirections => packets.for_each(|own| each(own.side.into())),
            Listed::PacketTimes => packets.for_each(|own| each(since(own.ts_ns()))),
            Listed::PacketFlags => packets.for_each(|own| each(own.tcp_flags.into())),
            Listed::BurstPackets => bursts.for_each(|own| each(own.packets)),
            Listed::BurstOctets => bursts.for_each(|own| each(own.octets)),
            Listed::BurstTimes => bursts.for_each(|own| each(since(own.start_ns))),
            Listed::BurstDurations => bursts.for_each(|own| each(own.duration_us())),
        }
    }

    /// Appends the numbers, with a letter between them.
    fn push(self, line: &mut Vec<u8>, between: u8) {
        let mut is_first = true;
        self.each(|number| {
            if !std::mem::take(&mut is_first) {
                line.push(between);
            }
            push_number(line, number);
        });
    }
}

impl Value<'_> {
    /// Whether JSON has the second name, that for IPv6.
    #[inline(always)]
    pub(crate) fn is_v6(&self) -> bool {
        match *self {
            Self::TypeCode(protocol, _) => protocol == ICMPV6,
            Self::Address(version, _) => version == IpVersion::V6,
            _ => false,
        }
    }

    /// Whether it is a text that needs no escapes in JSON.
    #[inline(always)]
    pub(crate) fn is_plain(&self) -> bool {
        use Value::{Address, Id, Letters, Mac, Word};
        matches!(self, Address(..) | Mac(_) | Word(_) | Letters(_) | Id(_))
    }

    /// Appends it to JSON.
    #[inline(always)]
    pub(crate) fn json(self, line: &mut Vec<u8>) {
        match self {
            Self::Name(name) => push_json(line, name),
            Self::Fact(facts, kind) => push_fact(line, kind, facts.values(kind)),
            Self::List(numbers) => {
                line.push(b'[');
                numbers.push(line, b',');
                line.push(b']');
            }
            plain if plain.is_plain() => {
                line.push(b'"');
                plain.text(line);
                line.push(b'"');
            }
            number => number.text(line),
        }
    }

    /// Appends it to a field of CSV.
    #[inline(always)]
    pub(crate) fn csv(self, line: &mut Vec<u8>) {
        match self {
            Self::Name(name) => push_csv(line, std::iter::once(name)),
            Self::Fact(facts, kind) => push_csv(line, facts.values(kind)),
            Self::List(numbers) => numbers.push(line, b';'),
            _ => self.text(line),
        }
    }

    /// Appends it without escapes; nothing for a fact or a list.
    #[inline(always)]
    pub(crate) fn text(self, text: &mut Vec<u8>) {
        match self {
            Self::Number(number) => push_number(text, number),
            Self::TypeCode(_, code) => push_number(text, code),
            Self::Address(version, octets) => push_address(text, version, octets),
            Self::Mac(octets) => push_mac(text, octets),
            Self::Word(word) => text.extend_from_slice(word.as_bytes()),
            Self::Letters(history) => push_letters(text, history),
            Self::Id(id) => text.extend_from_slice(id.as_bytes()),
            Self::Name(name) => text.extend_from_slice(name),
            Self::Fact(..) | Self::List(_) => {}
        }
    }
}

fn push_letters(text: &mut Vec<u8>, history: History) {
    let (mut letters, mut count) = ([0; History::MOST], 0);
    for (place, letter) in letters.iter_mut().zip(history.iter()) {
        *place = letter as u8;
        count += 1;
    }
    text.extend_from_slice(&letters[..count]);
}

/// What the expression of a row may be.
pub(super) trait Reads<'a> {
    fn read(self) -> Option<Value<'a>>;
}

impl<'a> Reads<'a> for Value<'a> {
    #[inline(always)]
    fn read(self) -> Option<Value<'a>> {
        Some(self)
    }
}

impl<'a, T: Reads<'a>> Reads<'a> for Option<T> {
    #[inline(always)]
    fn read(self) -> Option<Value<'a>> {
        self.and_then(T::read)
    }
}

macro_rules! numbers {
    ($($type:ty)+) => {
        $(impl<'a> Reads<'a> for $type {
            #[inline(always)]
            fn read(self) -> Option<Value<'a>> {
                Some(Value::Number(self.into()))
            }
        })+
    };
}

numbers! { u8 u16 u32 u64 }
