//! Writes small databases in the MMDB format. Source: MaxMind DB file format specification, version 2.0.
//!
//! ```text
//! nodes: two records of 24 bits each │ 16 zeros │ data │ marker │ metadata
//! ```
//!
//! A record is the number of a node; the number of nodes, if nothing is known; or that number + 16 + an offset in the
//! data. IPv4 is in ::/96.

use std::net::IpAddr;

/// A value in a database.
#[derive(Clone, Debug)]
pub enum Value {
    /// A text.
    Text(&'static str),
    /// A number of 32 bits.
    Number(u32),
    /// A number of another type: 5 has 16 bits, 8 has 32 with a sign, 9 has 64, 10 has 128. Its bytes, the highest first; zeros
    /// at the beginning may lack.
    Integer(u8, &'static [u8]),
    /// A map.
    Map(Vec<(&'static str, Value)>),
}

#[derive(Clone, Copy)]
enum Record {
    Empty,
    Node(usize),
    Data(usize),
}

/// A database of this type with a value for each network.
///
/// # Panics
/// If a network is invalid.
pub fn database(kind: &'static str, networks: &[(&str, Value)]) -> Vec<u8> {
    let (mut nodes, mut data) = (vec![[Record::Empty; 2]], Vec::new());
    let mut parsed: Vec<_> =
        networks.iter().map(|(network, value)| (bits(network), value)).collect();
    parsed.sort_by_key(|((_, length), _)| *length);
    for ((address, length), value) in parsed {
        let offset = data.len();
        push(&mut data, value);
        let mut node = 0;
        for bit in 0..length {
            let side = (address >> (127 - bit) & 1) as usize;
            if bit + 1 == length {
                nodes[node][side] = Record::Data(offset);
                break;
            }
            node = match nodes[node][side] {
                Record::Node(next) => next,
                // A longer network within this one.
                leaf => {
                    nodes.push([leaf; 2]);
                    nodes[node][side] = Record::Node(nodes.len() - 1);
                    nodes.len() - 1
                }
            };
        }
    }
    let mut out = Vec::new();
    for record in nodes.iter().flatten() {
        let number = match *record {
            Record::Empty => nodes.len(),
            Record::Node(number) => number,
            Record::Data(offset) => nodes.len() + 16 + offset,
        };
        out.extend(&(number as u32).to_be_bytes()[1..]);
    }
    out.extend([0; 16]);
    out.extend(data);
    out.extend(b"\xab\xcd\xefMaxMind.com");
    head(&mut out, 7, 9);
    let mut number = |name: &str, kind: u8, number: u32| {
        text(&mut out, name);
        head(&mut out, kind, 4);
        out.extend(number.to_be_bytes());
    };
    number("node_count", 6, nodes.len() as u32);
    number("build_epoch", 9, 1_700_000_000);
    for (name, short) in [
        ("record_size", 24_u16),
        ("ip_version", 6),
        ("binary_format_major_version", 2),
        ("binary_format_minor_version", 0),
    ] {
        text(&mut out, name);
        head(&mut out, 5, 2);
        out.extend(short.to_be_bytes());
    }
    text(&mut out, "database_type");
    text(&mut out, kind);
    text(&mut out, "description");
    push(&mut out, &Value::Map(vec![("en", Value::Text("of a test"))]));
    text(&mut out, "languages");
    head(&mut out, 11, 0);
    out
}

/// The address with 128 bits, and the length of the prefix.
fn bits(network: &str) -> (u128, u32) {
    let (address, length) = network.split_once('/').expect("a network");
    let length: u32 = length.parse().expect("a length");
    match address.parse().expect("an address") {
        IpAddr::V4(address) => (u128::from(address.to_bits()), length + 96),
        IpAddr::V6(address) => (address.to_bits(), length),
    }
}

fn push(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Text(own) => text(out, own),
        Value::Number(number) => {
            head(out, 6, 4);
            out.extend(number.to_be_bytes());
        }
        Value::Integer(kind, bytes) => {
            head(out, *kind, bytes.len());
            out.extend(*bytes);
        }
        Value::Map(entries) => {
            head(out, 7, entries.len());
            for (name, value) in entries {
                text(out, name);
                push(out, value);
            }
        }
    }
}

fn text(out: &mut Vec<u8>, text: &str) {
    head(out, 2, text.len());
    out.extend(text.as_bytes());
}

/// The control bytes of a type and a size below 285.
fn head(out: &mut Vec<u8>, kind: u8, size: usize) {
    let first = if kind > 7 { 0 } else { kind << 5 };
    out.push(first | size.min(29) as u8);
    if kind > 7 {
        out.push(kind - 7);
    }
    if size >= 29 {
        out.push((size - 29) as u8);
    }
}
