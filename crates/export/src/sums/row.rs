//! The bytes of a row, and their hashes.

use std::ops::Range;

use ringtap_flow::{FlowRecord, Kind, Type};
use twox_hash::XxHash3_128;

use crate::fields::{
    COUNT, Columns, FIELDS, Row, Value, View, Visit, destinationIPAddress,
    destinationTransportPort, flowEndMilliseconds, flowStartMilliseconds, octetDeltaCount,
    packetDeltaCount, protocolIdentifier, reverseOctetDeltaCount, reversePacketDeltaCount,
    sourceIPAddress, sourceTransportPort, visit,
};
use crate::formats::lines::{number_of, push_valid};

/// The hashes of a row, and its counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowSum {
    /// The latest packet, milliseconds since 1970.
    pub end_ms: u64,
    /// The hash of all fields.
    pub all: u128,
    /// The sum of the hashes of its directions.
    pub core: u128,
    /// Directions in `core`: those with packets.
    pub directions: u64,
    /// Packets of both directions.
    pub packets: u64,
    /// Octets of both directions, modulo 2⁶⁴.
    pub octets: u64,
}

impl RowSum {
    /// The sum of a record in a file with these columns; `buffer` is overwritten.
    #[inline]
    pub fn of(record: &FlowRecord, columns: Columns, buffer: &mut Vec<u8>) -> Self {
        buffer.clear();
        let mut reversed = None;
        let view = View::of(record, &mut reversed);
        let mut row = RowBytes { bytes: buffer, spans: Default::default(), view, columns };
        visit(&mut row);
        let spans = row.spans;
        Self::of_bytes(buffer, &spans)
    }

    /// The sum of a row with these bytes, in which the values of a direction have these places.
    #[inline]
    pub(super) fn of_bytes(bytes: &mut Vec<u8>, spans: &Spans) -> Self {
        let number = |row: usize| match bytes[spans[row].clone()] {
            [_, _, _, _, ref number @ ..] => number.try_into().map_or(0, u64::from_le_bytes),
            _ => 0,
        };
        let packets = [packetDeltaCount::POSITION, reversePacketDeltaCount::POSITION].map(number);
        let octets = [octetDeltaCount::POSITION, reverseOctetDeltaCount::POSITION].map(number);
        let mut sum = Self {
            end_ms: number(flowEndMilliseconds::POSITION),
            all: XxHash3_128::oneshot(bytes),
            core: 0,
            directions: 0,
            packets: packets[0].wrapping_add(packets[1]),
            octets: octets[0].wrapping_add(octets[1]),
        };
        if packets[0] > 0 {
            let own = &bytes[..spans[packetDeltaCount::POSITION].end];
            sum.core = XxHash3_128::oneshot(own);
            sum.directions = 1;
        }
        if packets[1] > 0 {
            let start = bytes.len();
            for (row, other) in REVERSED {
                let Range { start, end } = spans[other];
                if start < end {
                    bytes.extend_from_slice(&TAGS[row].to_le_bytes());
                    bytes.extend_from_within(start + TAG_LEN..end);
                }
            }
            sum.core = sum.core.wrapping_add(XxHash3_128::oneshot(&bytes[start..]));
            sum.directions += 1;
        }
        sum
    }
}

/// The places of the first rows of the table in a row's bytes; empty where there is no value.
pub(super) type Spans = [Range<usize>; CORE_ROWS];

/// The first rows of the table, those of the core.
pub(super) const CORE_ROWS: usize = reversePacketDeltaCount::POSITION + 1;

/// The rows of a direction, and those with the values of the answering direction.
const REVERSED: [(usize, usize); 9] = [
    (flowStartMilliseconds::POSITION, flowStartMilliseconds::POSITION),
    (flowEndMilliseconds::POSITION, flowEndMilliseconds::POSITION),
    (sourceIPAddress::POSITION, destinationIPAddress::POSITION),
    (destinationIPAddress::POSITION, sourceIPAddress::POSITION),
    (sourceTransportPort::POSITION, destinationTransportPort::POSITION),
    (destinationTransportPort::POSITION, sourceTransportPort::POSITION),
    (protocolIdentifier::POSITION, protocolIdentifier::POSITION),
    (octetDeltaCount::POSITION, reverseOctetDeltaCount::POSITION),
    (packetDeltaCount::POSITION, reversePacketDeltaCount::POSITION),
];

/// The bytes of a direction are the first ones of the row.
const _: () = {
    let mut at = 0;
    while at + 1 < REVERSED.len() {
        assert!(REVERSED[at].0 < REVERSED[at + 1].0);
        at += 1;
    }
    assert!(packetDeltaCount::POSITION + 2 == reversePacketDeltaCount::POSITION);
};

/// Octets of a tag.
const TAG_LEN: usize = 4;

/// The tags of all rows.
pub(super) static TAGS: [u32; COUNT] = {
    let (mut tags, mut row) = ([0; COUNT], 0);
    while row < COUNT {
        tags[row] = tag(FIELDS[row].name);
        row += 1;
    }
    tags
};

/// FNV-1a with 32 bits (Fowler, Noll, Vo; RFC 9923).
const fn tag(name: &str) -> u32 {
    let (name, mut hash, mut at) = (name.as_bytes(), 0x811c_9dc5_u32, 0);
    while at < name.len() {
        hash = (hash ^ name[at] as u32).wrapping_mul(0x0100_0193);
        at += 1;
    }
    hash
}

/// Appends a number; nothing for 0.
#[inline(always)]
pub(super) fn push_number(bytes: &mut Vec<u8>, tag: u32, number: u64) {
    if number != 0 {
        push_item(bytes, tag, number);
    }
}

/// Appends a number, also 0.
#[inline(always)]
pub(super) fn push_item(bytes: &mut Vec<u8>, tag: u32, number: u64) {
    let mut item = [0; 12];
    item[..TAG_LEN].copy_from_slice(&tag.to_le_bytes());
    item[TAG_LEN..].copy_from_slice(&number.to_le_bytes());
    bytes.extend_from_slice(&item);
}

/// Appends what `push` appends as a text; nothing if it is empty.
#[inline(always)]
pub(super) fn push_text(bytes: &mut Vec<u8>, tag: u32, push: impl FnOnce(&mut Vec<u8>)) {
    let start = bytes.len();
    bytes.extend_from_slice(&u64::from(tag).to_le_bytes());
    let text = bytes.len();
    push(bytes);
    let len = (bytes.len() - text) as u32;
    if len == 0 {
        bytes.truncate(start);
    } else {
        bytes[start + TAG_LEN..text].copy_from_slice(&len.to_le_bytes());
    }
}

/// Collects the bytes of a record.
struct RowBytes<'a> {
    bytes: &'a mut Vec<u8>,
    spans: Spans,
    view: View<'a>,
    columns: Columns,
}

impl Visit for RowBytes<'_> {
    #[inline(always)]
    fn row<R: Row>(&mut self) {
        let start = self.bytes.len();
        if R::FIELD.is_summed()
            && self.columns.has(R::FIELD.presence)
            && let Some(value) = R::of(&self.view)
        {
            push(self.bytes, const { tag(R::FIELD.name) }, value);
        }
        if R::POSITION < CORE_ROWS {
            self.spans[R::POSITION] = start..self.bytes.len();
        }
    }
}

/// Appends the value of a field, or each value of a list.
#[inline(always)]
fn push(bytes: &mut Vec<u8>, tag: u32, value: Value<'_>) {
    match value {
        Value::Number(number) => push_number(bytes, tag, number),
        Value::TypeCode(_, code) => push_number(bytes, tag, code.into()),
        Value::Name(name) => push_text(bytes, tag, |bytes| push_valid(bytes, name)),
        Value::Fact(facts, kind) => push_facts(bytes, tag, kind, facts.values(kind)),
        Value::List(numbers) => numbers.each(|number| push_item(bytes, tag, number)),
        text => push_text(bytes, tag, |bytes| text.text(bytes)),
    }
}

fn push_facts<'a>(
    bytes: &mut Vec<u8>,
    tag: u32,
    kind: Kind,
    values: impl Iterator<Item = &'a [u8]>,
) {
    for value in values {
        match kind.value_type() {
            Type::Text => push_text(bytes, tag, |bytes| push_valid(bytes, value)),
            Type::Number => push_number(bytes, tag, number_of(value)),
        }
    }
}
