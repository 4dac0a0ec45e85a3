//! The statistics of packets in IPFIX records, behind all other fields: sums of squares, and lists.
//!
//! ```text
//! record  | fields of the template | facts … | squares | entropy | first packets | bursts |
//! packets | octets | times | TCP flags | directions
//! bursts  | packets | octets | beginnings | ends
//! list    | 255, length (2) | semantic | element | octets | value | value | …     RFC 6313, section 4.5.1
//! ```
//!
//! Squares, entropies and bursts of an answered flow are there for both directions, one after the other. The entropy is there
//! if it is asked for, in an element of CERT that YAF exports, too; the reverse one has another number. The elements of lists
//! are those of CESNET that ipfixprobe's plugins *pstats* and *bstats* export, with their types: times are milliseconds since
//! 1970, a direction is 1 from the initiator and -1 to it. By default ipfixprobe lists packets with payload alone, and their
//! octets of payload; ours are all packets, and octets of layer 3.
//!
//! Invariant: a record has a bounded size. If there is no room for all values, packets get it first, then bursts from the
//! initiator; the last ones are left out, in all lists of them alike.

use ringtap_flow::{Burst, FlowRecord, FlowStatistics};

use super::facts::{BASIC_LIST, ORDERED, put_variable_long};
use crate::fields::{Element, REVERSE, milliseconds};

/// The enterprise numbers of CERT and CESNET.
const CERT: u32 = 6_871;
const CESNET: u32 = 8_057;

/// octetDeltaSumOfSquares, by direction.
const SQUARES: [Element; 2] = {
    let own = Element::iana(198, 8);
    [own, Element { enterprise: REVERSE, ..own }]
};

/// CERT's payloadEntropy, by direction.
const ENTROPY: [Element; 2] = {
    let own = Element { enterprise: CERT, ..Element::iana(35, 1) };
    [own, Element { id: own.id | 1 << 14, ..own }]
};

/// Octets of a list without values: its length, its semantic and its element.
const EMPTY: usize = 3 + 1 + 8;

/// Lists of packets, and of the bursts of a direction.
const LISTS: usize = 4;

/// Octets of a packet, and of a burst, in all lists.
const PACKET: usize = 2 + 8 + 1 + 1;
const BURST: usize = 4 + 4 + 8 + 8;

/// Which fields records have.
#[derive(Clone, Copy)]
pub(super) struct Statistics {
    /// Whether there are entropies.
    pub(super) entropy: bool,
    /// Whether the flow has packets in both directions.
    pub(super) answered: bool,
}

impl Statistics {
    const fn directions(self) -> usize {
        if self.answered { 2 } else { 1 }
    }

    /// The elements of the fields.
    pub(super) fn elements(self) -> impl Iterator<Item = Element> {
        let entropy = if self.entropy { &ENTROPY[..self.directions()] } else { &[] };
        let fixed = SQUARES[..self.directions()].iter().chain(entropy).copied();
        fixed.chain(std::iter::repeat_n(BASIC_LIST, LISTS * (1 + self.directions())))
    }

    /// Octets without values in lists.
    pub(super) const fn least(self) -> usize {
        let fixed = SQUARES[0].len as usize + self.entropy as usize * ENTROPY[0].len as usize;
        self.directions() * fixed + LISTS * (1 + self.directions()) * EMPTY
    }

    /// Appends the fields, at most `room` octets, which must be enough for empty lists.
    pub(super) fn put(self, record: &FlowRecord, room: usize, out: &mut Vec<u8>) {
        let mut spare = room.saturating_sub(self.least());
        let (own, directions) = (record.statistics.as_deref(), 0..self.directions());
        for direction in directions.clone() {
            let squares = own.map_or(0, |own| own.lengths(direction).squares());
            out.extend_from_slice(&squares.to_be_bytes());
        }
        if self.entropy {
            let of = |direction| own.and_then(|own| own.entropy(direction)).unwrap_or(0);
            out.extend(directions.clone().map(of));
        }
        let packets = own.map_or(&[][..], FlowStatistics::first_packets);
        let packets = &packets[..packets.len().min(spare / PACKET)];
        spare -= packets.len() * PACKET;
        let way = |side: u8| if side == 0 { 1_i8 } else { -1 };
        list(1_013, packets, |packet| packet.octets.to_be_bytes(), out);
        list(1_014, packets, |packet| milliseconds(packet.ts_ns()).to_be_bytes(), out);
        list(1_015, packets, |packet| [packet.tcp_flags], out);
        list(1_016, packets, |packet| way(packet.side).to_be_bytes(), out);
        for direction in directions {
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
