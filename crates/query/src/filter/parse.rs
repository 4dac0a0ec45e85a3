//! Filters as text.

use std::net::IpAddr;

use ringtap_export::ColumnType;
use ringtap_terminal::units;

use super::columns::{known, like};
use super::{Column, Comparison, End, Filter, Source, Test, Value};
use crate::moment::{self, Zone};
use crate::text::{Is, Misunderstood, Words};

/// Deepest nesting.
const DEEPEST: usize = 64;

/// Words for protocols.
const PROTOCOLS: [(&str, u8); 14] = [
    ("tcp", 6),
    ("udp", 17),
    ("icmp", 1),
    ("icmp6", 58),
    ("sctp", 132),
    ("gre", 47),
    ("esp", 50),
    ("ah", 51),
    ("igmp", 2),
    ("ospf", 89),
    ("pim", 103),
    ("vrrp", 112),
    ("dccp", 33),
    ("udplite", 136),
];

const COMPARISONS: [(&str, Comparison, bool); 9] = [
    ("=", Comparison::Equal, true),
    ("==", Comparison::Equal, true),
    ("!=", Comparison::Equal, false),
    ("<", Comparison::Below, true),
    ("<=", Comparison::AtMost, true),
    (">", Comparison::Above, true),
    (">=", Comparison::AtLeast, true),
    ("~", Comparison::Matches, true),
    ("!~", Comparison::Matches, false),
];

type Read<T> = Result<T, Misunderstood>;

impl Filter {
    /// Reads a filter, up to a word that does not belong to it.
    pub(crate) fn read(words: &mut Words<'_>) -> Read<Self> {
        Self::joined(words, DEEPEST)
    }

    fn joined(words: &mut Words<'_>, deeper: usize) -> Read<Self> {
        let first = Self::one(words, deeper)?;
        let (mut all, mut joined_by_and) = (vec![first], None);
        loop {
            let by_and = words.accept("and") || words.accept("&&");
            if !by_and && !words.accept("or") && !words.accept("||") {
                break;
            }
            // In tcpdump both have the same precedence, elsewhere they do not.
            if *joined_by_and.get_or_insert(by_and) != by_and {
                return Err(words.wrong("and beside or: use parentheses to say which is first"));
            }
            all.push(Self::one(words, deeper)?);
        }
        Ok(match joined_by_and {
            None => all.remove(0),
            Some(true) => Self::And(all),
            Some(false) => Self::Or(all),
        })
    }

    fn one(words: &mut Words<'_>, deeper: usize) -> Read<Self> {
        let Some(deeper) = deeper.checked_sub(1) else {
            return Err(words.expected("fewer parentheses and nots"));
        };
        if words.accept("not") || words.accept("!") {
            return Ok(Self::Not(Box::new(Self::one(words, deeper)?)));
        }
        if words.accept("(") {
            let inner = Self::joined(words, deeper)?;
            return if words.accept(")") { Ok(inner) } else { Err(words.expected(")")) };
        }
        test(words)
    }
}

fn test(words: &mut Words<'_>) -> Read<Filter> {
    let end = if words.accept("src") || words.accept("source") {
        End::Source
    } else if words.accept("dst") || words.accept("destination") {
        End::Destination
    } else {
        End::Either
    };
    if let Some(test) = of_end(words, end)? {
        return Ok(Filter::Test(test));
    }
    if end != End::Either {
        return Err(words.expected("host, net, port or portrange"));
    }
    if words.accept("ip") || words.accept("ip4") {
        return Ok(Filter::Test(Test::Version(4)));
    }
    if words.accept("ip6") {
        return Ok(Filter::Test(Test::Version(6)));
    }
    if words.accept("failed") {
        return Ok(Filter::Test(Test::Failed));
    }
    if words.accept("refused") {
        return Ok(Filter::Test(Test::Refused));
    }
    if words.accept("proto") {
        let word = words.word("the number or the name of a protocol")?;
        let number = protocol(&word).or_else(|| word.parse().ok());
        let number = number.ok_or_else(|| {
            words.wrong(format!("unknown protocol {word}: use a number from 0 to 255, tcp, udp, …"))
        })?;
        return Ok(Filter::Test(Test::Protocol(number)));
    }
    let Some(Is::Word(word)) = words.peek().cloned() else {
        return Err(words.expected("a test such as host 10.1.2.3"));
    };
    words.take();
    if let Some(number) = protocol(&word) {
        return with_port(words, number);
    }
    let columns = known(&word);
    if columns.is_empty() {
        return Err(words.wrong(format!("unknown field {word}{}", like(&word))));
    }
    comparison(words, columns)
}

fn protocol(word: &str) -> Option<u8> {
    let found = PROTOCOLS.iter().find(|(name, _)| name.eq_ignore_ascii_case(word));
    found.map(|(_, number)| *number)
}

/// `tcp`, or `tcp dst port 443`.
fn with_port(words: &mut Words<'_>, protocol: u8) -> Read<Filter> {
    let own = Filter::Test(Test::Protocol(protocol));
    let is =
        |word: &str| matches!(words.peek(), Some(Is::Word(own)) if own.eq_ignore_ascii_case(word));
    if ["src", "dst", "port", "portrange"].into_iter().any(is) {
        return Ok(Filter::And(vec![own, test(words)?]));
    }
    Ok(own)
}

/// The tests that an end can have.
fn of_end(words: &mut Words<'_>, end: End) -> Read<Option<Test>> {
    Ok(Some(if words.accept("host") {
        let word = words.word("an address")?;
        let address = address(words, &word)?;
        Test::Address(end, address, bits(address))
    } else if words.accept("net") {
        let word = words.word("a network such as 10.0.0.0/8")?;
        let (text, len) = word.split_once('/').unwrap_or((&word, ""));
        let address = address(words, text)?;
        let most = bits(address);
        let len = if len.is_empty() { Some(most) } else { len.parse().ok() };
        let len = len.filter(|&len| len <= most);
        Test::Address(
            end,
            address,
            len.ok_or_else(|| {
                words.wrong(format!("invalid network {word}: use at most {most} bits"))
            })?,
        )
    } else if words.accept("port") {
        let port = port(words)?;
        Test::Port(end, port, port)
    } else if words.accept("portrange") {
        let word = words.word("ports such as 8000-8999")?;
        let range = word.split_once('-').and_then(|(low, high)| {
            Some((low.parse().ok()?, high.parse().ok()?))
                .filter(|(low, high): &(u16, u16)| low <= high)
        });
        let (low, high) =
            range.ok_or_else(|| words.wrong(format!("invalid range {word}: use 8000-8999")))?;
        Test::Port(end, low, high)
    } else {
        return Ok(None);
    }))
}

/// The length of an address.
pub(crate) const fn bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// The word before is an address.
pub(crate) fn address(words: &Words<'_>, word: &str) -> Read<IpAddr> {
    let wrong = || words.wrong(format!("invalid address {word}: for names use name = \"{word}\""));
    word.parse().map_err(|_| wrong())
}

fn port(words: &mut Words<'_>) -> Read<u16> {
    let word = words.word("a port")?;
    word.parse().map_err(|_| words.wrong(format!("invalid port {word}: use a number below 65536")))
}

/// What follows the name of a field. Without a comparison: it equals the value.
fn comparison(words: &mut Words<'_>, columns: Vec<Column>) -> Read<Filter> {
    let sign = match words.peek() {
        Some(Is::Sign(sign)) => COMPARISONS.iter().find(|(own, ..)| own == sign),
        _ => None,
    };
    if sign.is_some() {
        words.take();
    }
    let &(_, comparison, holds) = sign.unwrap_or(&COMPARISONS[0]);
    let text = words.word("a value, or one of = != < <= > >= ~ !~")?;
    let first = &columns[0];
    let value = match first.of {
        _ if comparison == Comparison::Matches && first.of != ColumnType::Text => {
            return Err(words.wrong("~ is for texts; use = < > for numbers"));
        }
        ColumnType::Text => Ok(Value::Text(text)),
        ColumnType::Time => moment::parse(&text, moment::now(), Zone::Utc)
            .map(|at| Value::Number(at as u64))
            .map_err(|error| error.to_string()),
        ColumnType::Number if first.source == Source::Duration => {
            units::duration_ns(&text).map(|ns| Value::Number(ns / 1_000_000))
        }
        ColumnType::Number => units::count(&text).map(Value::Number),
    };
    let value = value.map_err(|error| words.wrong(error))?;
    let test = Filter::Test(Test::Field(columns, comparison, value));
    Ok(if holds { test } else { Filter::Not(Box::new(test)) })
}
