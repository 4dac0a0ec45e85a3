//! Questions without an answer, for response times.
//!
//! Two tables of equal size: new questions enter the newer one. When that has been in use for [`LIFETIME_NS`] of packet
//! time, it becomes the older one, and the questions of the former older one are dropped. So a question is kept for
//! its lifetime and at most twice as long; one beyond its lifetime is not matched.
//!
//! A question that is repeated before its answer keeps its first time: the response time includes retransmissions. An
//! answer that is repeated has no response time. Multicast questions are not kept, because their answers come from
//! other addresses.
//!
//! Invariant: after construction nothing is allocated.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::mem;

use ringtap_wire::{Flags, PacketRecord};

use crate::hashing::Hashing;

/// Longest time between a question and its answer, in packet time, nanoseconds.
const LIFETIME_NS: u64 = 10_000_000_000;
/// Most places in a table.
const PLACES_MAX: usize = 1 << 16;

/// A question, in the direction in which it was asked.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Key {
    /// The addresses and ports of client and server.
    addresses: [[u8; 16]; 2],
    ports: [u16; 2],
    flags: u16,
    protocol: u8,
    id: u16,
    asked: Asked,
}

/// The first question of a message.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Asked {
    /// The hash of the name.
    pub(super) name: u64,
    /// The type.
    pub(super) kind: u16,
}

/// A table of questions and the times when they were asked.
type Table = HashMap<Key, u64, Hashing>;

/// Questions without an answer.
pub(super) struct Pending {
    newer: Table,
    older: Table,
    /// When the newer table came into use.
    start_ns: u64,
    /// Most questions in a table.
    most: usize,
    /// Questions that were left out for lack of room.
    no_room: u64,
}

impl Pending {
    /// No questions; both tables take at most about `memory` bytes.
    pub(super) fn new(memory: usize) -> Self {
        // A hash table has a power of two of places with a byte of administration each. A table that is at most half
        // full never grows: deleted entries are removed in place.
        let places = memory / 2 / (size_of::<(Key, u64)>() + 1);
        let places = places.checked_ilog2().map_or(0, |bits| 1 << bits).min(PLACES_MAX);
        let most = places * 7 / 16;
        let table = || Table::with_capacity_and_hasher(2 * most, Hashing::default());
        Self { newer: table(), older: table(), start_ns: 0, most, no_room: 0 }
    }

    /// Adds the question of a packet.
    pub(super) fn ask(&mut self, record: &PacketRecord, id: u16, asked: Asked) {
        self.turn(record.ts_ns);
        let key = Key::of(record, id, asked, false);
        if let Some(first) = self.newer.get_mut(&key).or(self.older.get_mut(&key)) {
            if record.ts_ns.saturating_sub(*first) <= LIFETIME_NS {
                return;
            }
            self.older.remove(&key);
        }
        if self.newer.len() < self.most || self.newer.contains_key(&key) {
            self.newer.insert(key, record.ts_ns);
        } else {
            self.no_room += 1;
        }
    }

    /// Removes the question that a packet answers; returns the time since it was asked, nanoseconds.
    pub(super) fn answer(&mut self, record: &PacketRecord, id: u16, asked: Asked) -> Option<u64> {
        let key = Key::of(record, id, asked, true);
        let asked_ns = self.newer.remove(&key).or_else(|| self.older.remove(&key))?;
        record.ts_ns.checked_sub(asked_ns).filter(|&time_ns| time_ns <= LIFETIME_NS)
    }

    /// The number of questions that were left out for lack of room, since the last call.
    pub(super) fn take_no_room(&mut self) -> u64 {
        mem::take(&mut self.no_room)
    }

    /// Drops questions beyond their lifetime.
    fn turn(&mut self, now_ns: u64) {
        // A step backwards by more than the lifetime counts as well: times may be wrong in captures.
        let used_ns = now_ns.abs_diff(self.start_ns);
        if used_ns > LIFETIME_NS {
            mem::swap(&mut self.newer, &mut self.older);
            self.newer.clear();
            self.start_ns = now_ns;
            if used_ns > 2 * LIFETIME_NS {
                self.older.clear();
            }
        }
    }
}

impl Key {
    fn of(record: &PacketRecord, id: u16, asked: Asked, answers: bool) -> Self {
        let (mut addresses, mut ports) =
            ([record.src, record.dst], [record.src_port, record.dst_port]);
        if answers {
            addresses.reverse();
            ports.reverse();
        }
        let flags = record.flags.0 & (Flags::INNER.0 | Flags::IPV6.0);
        Self { addresses, ports, flags, protocol: record.protocol, id, asked }
    }
}

impl Hash for Key {
    #[inline]
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let Self { addresses: [client, server], ports: [from, to], .. } = self;
        let (ports, id) = (u64::from(*from) << 16 | u64::from(*to), u64::from(self.id));
        hasher.write(client);
        hasher.write(server);
        hasher.write_u64(ports | id << 32 | u64::from(self.asked.kind) << 48);
        hasher.write_u64(self.asked.name ^ u64::from(self.flags) ^ u64::from(self.protocol) << 16);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;
    const QUESTION: Asked = Asked { name: 7, kind: 1 };

    fn packet(port: u16, ts_ns: u64) -> PacketRecord {
        let (src, dst) = ([1; 16], [2; 16]);
        PacketRecord { src, dst, src_port: port, dst_port: 53, ts_ns, ..PacketRecord::EMPTY }
    }

    fn reply(port: u16, ts_ns: u64) -> PacketRecord {
        let (src, dst) = ([2; 16], [1; 16]);
        PacketRecord { src, dst, src_port: 53, dst_port: port, ts_ns, ..PacketRecord::EMPTY }
    }

    #[test]
    fn an_answer_is_matched_once_to_the_first_question() {
        let mut pending = Pending::new(1 << 20);
        pending.ask(&packet(9, 100), 5, QUESTION);
        pending.ask(&packet(9, 300), 5, QUESTION);
        assert_eq!(pending.answer(&reply(9, 700), 6, QUESTION), None);
        assert_eq!(pending.answer(&reply(8, 700), 5, QUESTION), None);
        assert_eq!(pending.answer(&packet(9, 700), 5, QUESTION), None);
        assert_eq!(pending.answer(&reply(9, 700), 5, Asked { kind: 2, ..QUESTION }), None);
        assert_eq!(pending.answer(&reply(9, 700), 5, Asked { name: 8, ..QUESTION }), None);
        assert_eq!(pending.answer(&reply(9, 700), 5, QUESTION), Some(600));
        assert_eq!(pending.answer(&reply(9, 800), 5, QUESTION), None);
        assert_eq!(pending.take_no_room(), 0);
    }

    #[test]
    fn a_question_lives_for_its_lifetime_of_packet_time() {
        for start in (1..30).map(|second| second * SECOND / 2) {
            let mut pending = Pending::new(1 << 20);
            for other in 0..100 {
                let now = other * SECOND / 2;
                pending.ask(&packet(other as u16, now), 1, QUESTION);
                if now == start {
                    pending.ask(&packet(1_000, start), 2, QUESTION);
                    pending.ask(&packet(1_001, start), 2, QUESTION);
                }
                if now == start + LIFETIME_NS {
                    let time = pending.answer(&reply(1_000, now), 2, QUESTION);
                    assert_eq!(time, Some(LIFETIME_NS));
                }
            }
            let late = reply(1_001, start + LIFETIME_NS + 1);
            assert_eq!(pending.answer(&late, 2, QUESTION), None);
        }
    }

    #[test]
    fn a_question_beyond_its_lifetime_is_asked_anew() {
        let mut pending = Pending::new(1 << 20);
        pending.ask(&packet(1, 0), 1, QUESTION);
        pending.ask(&packet(1, LIFETIME_NS + 1), 1, QUESTION);
        assert_eq!(pending.answer(&reply(1, LIFETIME_NS + 5), 1, QUESTION), Some(4));
        // A packet time before that of the question.
        pending.ask(&packet(1, 30 * SECOND), 1, QUESTION);
        assert_eq!(pending.answer(&reply(1, 29 * SECOND), 1, QUESTION), None);
    }

    #[test]
    fn room_is_bounded_and_nothing_grows() {
        let mut pending = Pending::new(100_000);
        let capacity = pending.newer.capacity();
        assert!(capacity * 2 * size_of::<(Key, u64)>() <= 100_000);
        for port in 0..1_000 {
            pending.ask(&packet(port, 1), 1, QUESTION);
        }
        let most = pending.most as u64;
        assert_eq!(pending.take_no_room(), 1_000 - most);
        assert_eq!(pending.take_no_room(), 0);
        assert_eq!(pending.answer(&reply(0, 2), 1, QUESTION), Some(1));
        for port in 0..60_000 {
            let now = u64::from(port) * SECOND / 100;
            pending.ask(&packet(port, now), 1, QUESTION);
            if port % 3 > 0 {
                pending.answer(&reply(port, now + 1), 1, QUESTION);
            }
        }
        // The capacity that is reported is less by deleted entries.
        assert!(pending.newer.capacity().max(pending.older.capacity()) <= capacity);
        let mut none = Pending::new(0);
        none.ask(&packet(1, 1), 1, QUESTION);
        assert_eq!((none.take_no_room(), none.newer.capacity()), (1, 0));
    }
}
