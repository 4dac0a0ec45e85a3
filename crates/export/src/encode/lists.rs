//! The statistics of packets in IPFIX records, behind all other fields: sums of squares, and lists.
//!
//! ```text
//! record  | fields of the template | facts … | squares | reverse squares | packets … | bursts … | reverse bursts … |
//! packets | octets | times | TCP flags | directions
//! bursts  | packets | octets | beginnings | ends
//! list    | 255, length (2) | semantic | element | octets | value | value | …     RFC 6313, section 4.5.1
//! ```
//!
//! The elements of lists are those of CESNET that ipfixprobe's plugins *pstats* and *bstats* export, with their types: times are
//! milliseconds since 1970, a direction is 1 from the initiator and -1 to it. ipfixprobe counts octets of payload, and we
//! those of layer 3.
//!
//! Invariant: a record has a bounded size. If there is no room for all values, the last packets and then the last bursts
//! are left out, in all lists of them alike.

use ringtap_flow::{Burst, FlowRecord, FlowStatistics};

use super::facts::{BASIC_LIST, ORDERED, put_variable_long};
use crate::fields::{Element, REVERSE, milliseconds};

/// CESNET's enterprise number.
const CESNET: u32 = 8_057;

/// Octets of a list without values: its length, its semantic and its element.
const EMPTY: usize = 3 + 1 + 8;

/// Lists of a record.
const COUNT: usize = 4 + 2 * 4;

/// octetDeltaSumOfSquares.
const SQUARES: Element = Element::iana(198, 8);

/// Octets of a record without values in lists.
pub(super) const LEAST: usize = 2 * SQUARES.len as usize + COUNT * EMPTY;

/// Octets of a packet, and of a burst, in all lists.
const PACKET: usize = 2 + 8 + 1 + 1;
const BURST: usize = 4 + 4 + 8 + 8;

/// The elements of the fields.
pub(super) fn elements() -> impl Iterator<Item = Element> {
    let squares = [SQUARES, Element { enterprise: REVERSE, ..SQUARES }];
    squares.into_iter().chain(std::iter::repeat_n(BASIC_LIST, COUNT))
}

/// Appends the fields, at most `room` octets, which must be enough for empty lists.
pub(super) fn put(record: &FlowRecord, room: usize, out: &mut Vec<u8>) {
    let mut spare = room.saturating_sub(LEAST);
    let own = record.statistics.as_deref();
    for direction in [0, 1] {
        let squares = own.map_or(0, |own| own.lengths(direction).squares());
        out.extend_from_slice(&squares.to_be_bytes());
    }
    let packets = own.map_or(&[][..], FlowStatistics::first_packets);
    let packets = &packets[..packets.len().min(spare / PACKET)];
    spare -= packets.len() * PACKET;
    list(1_013, packets, |packet| packet.octets.to_be_bytes(), out);
    list(1_014, packets, |packet| milliseconds(packet.ts_ns()).to_be_bytes(), out);
    list(1_015, packets, |packet| [packet.tcp_flags], out);
    list(1_016, packets, |packet| if packet.side == 0 { [1] } else { (-1_i8).to_be_bytes() }, out);
    for direction in [0, 1] {
        let bursts = own.into_iter().flat_map(|own| own.bursts(direction));
        let bursts: Vec<Burst> = bursts.take(spare / BURST).copied().collect();
        spare -= bursts.len() * BURST;
        let first = 1_050 + 4 * direction as u16;
        list(first, &bursts, |burst| word(burst.packets), out);
        list(first + 1, &bursts, |burst| word(burst.octets), out);
        list(first + 2, &bursts, |burst| milliseconds(burst.start_ns).to_be_bytes(), out);
        list(first + 3, &bursts, |burst| milliseconds(burst.end_ns).to_be_bytes(), out);
    }
}

/// A number in 32 bits, at most the largest one.
fn word(number: u64) -> [u8; 4] {
    u32::try_from(number).unwrap_or(u32::MAX).to_be_bytes()
}

/// Appends a list of values of the element `id` of CESNET.
fn list<T, const OCTETS: usize>(
    id: u16,
    all: &[T],
    value: impl Fn(&T) -> [u8; OCTETS],
    out: &mut Vec<u8>,
) {
    put_variable_long(out, |out| {
        out.push(ORDERED);
        Element { enterprise: CESNET, ..Element::iana(id, OCTETS as u16) }.specify(out);
        all.iter().for_each(|one| out.extend_from_slice(&value(one)));
    });
}
