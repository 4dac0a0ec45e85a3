//! Filters in SQL, as conditions on rows of the table `flows`.

use std::borrow::Cow;
use std::net::IpAddr;

use ringtap_export::ColumnType;

use super::{Column, Comparison, End, Filter, Source, Test, Value};
use crate::sql::literal;

impl Filter {
    /// The condition, in parentheses where it has parts.
    pub fn sql(&self) -> String {
        let joined = |all: &[Self], by| {
            let all: Vec<_> = all.iter().map(Self::sql).collect();
            format!("({})", all.join(by))
        };
        match self {
            Self::And(all) => joined(all, " AND "),
            Self::Or(all) => joined(all, " OR "),
            Self::Not(inner) => format!("NOT {}", inner.sql()),
            Self::Test(test) => test.sql(),
        }
    }
}

impl Test {
    fn sql(&self) -> String {
        match self {
            Self::Address(end, address, bits) => of_ends(*end, ADDRESSES, |own| within(own, *address, *bits)),
            Self::Port(end, low, high) if low == high => of_ends(*end, PORTS, |own| format!("coalesce({own} = {low}, false)")),
            Self::Port(end, low, high) => of_ends(*end, PORTS, |own| format!("coalesce({own} BETWEEN {low} AND {high}, false)")),
            Self::Protocol(number) => format!("protocolIdentifier = {number}"),
            Self::Version(version) => format!("ipVersion = {version}"),
            Self::Failed => "(protocolIdentifier = 6 AND coalesce(tcpControlBits & 2, 0) <> 0 AND coalesce(reversePacketDeltaCount, 0) = 0)".to_owned(),
            Self::Refused => "(protocolIdentifier = 6 AND coalesce(tcpControlBits & 2, 0) <> 0 AND coalesce(reverseTcpControlBits & 6, 0) = 4)".to_owned(),
            Self::Field(columns, comparison, value) => {
                let tests: Vec<_> = columns.iter().map(|column| compared(column, *comparison, value)).collect();
                if let [one] = &tests[..] { one.clone() } else { format!("({})", tests.join(" OR ")) }
            }
        }
    }
}

const ADDRESSES: [&str; 2] = ["sourceIPAddress", "destinationIPAddress"];
const PORTS: [&str; 2] = ["sourceTransportPort", "destinationTransportPort"];

fn of_ends(end: End, [source, destination]: [&str; 2], test: impl Fn(&str) -> String) -> String {
    match end {
        End::Source => test(source),
        End::Destination => test(destination),
        End::Either => format!("({} OR {})", test(source), test(destination)),
    }
}

/// Whether an address, as text, is in a network.
fn within(own: &str, address: IpAddr, bits: u8) -> String {
    match address {
        IpAddr::V4(address) if bits == 32 => format!("{own} = '{address}'"),
        IpAddr::V6(address) if bits == 128 => format!("{own} = '{address}'"),
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
            let low = u32::from(address) & mask;
            // Whole octets are the begin of the text.
            if bits > 0 && bits.is_multiple_of(8) {
                let octets = low.to_be_bytes();
                let text: String = octets[..usize::from(bits / 8)]
                    .iter()
                    .map(|octet| format!("{octet}."))
                    .collect();
                return format!("starts_with({own}, '{text}')");
            }
            format!("(ipVersion = 4 AND ipv4_number({own}) BETWEEN {low} AND {})", low | !mask)
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
            let low = u128::from(address) & mask;
            format!(
                "(ipVersion = 6 AND ipv6_digits({own}) BETWEEN '{low:032x}' AND '{:032x}')",
                low | !mask
            )
        }
    }
}

impl Source {
    fn sql(self) -> Cow<'static, str> {
        match self {
            Self::Column(name) => name.into(),
            Self::Sum([one, other]) => format!("({one} + coalesce({other}, 0))").into(),
            Self::Duration => {
                "(epoch_ms(flowEndMilliseconds) - epoch_ms(flowStartMilliseconds))".into()
            }
        }
    }
}

/// A test of one column, which is never null.
fn compared(column: &Column, comparison: Comparison, value: &Value) -> String {
    let test = |own: &str| match value {
        Value::Number(number) => {
            let own = if column.of == ColumnType::Time {
                format!("epoch_ms({own})")
            } else {
                own.to_owned()
            };
            format!("{own} {} {number}", sign(comparison))
        }
        Value::Text(text) => match comparison {
            Comparison::Matches => format!("regexp_matches({own}, {}, 'i')", literal(text)),
            _ => format!("lower({own}) {} {}", sign(comparison), literal(&text.to_lowercase())),
        },
    };
    if column.is_list {
        format!(
            "coalesce(len(list_filter({}, lambda value: {})) > 0, false)",
            column.source.sql(),
            test("value")
        )
    } else {
        format!("coalesce({}, false)", test(&column.source.sql()))
    }
}

const fn sign(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::Equal | Comparison::Matches => "=",
        Comparison::Below => "<",
        Comparison::AtMost => "<=",
        Comparison::Above => ">",
        Comparison::AtLeast => ">=",
    }
}
