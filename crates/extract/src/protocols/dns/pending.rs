//! Questions without an answer, for response times.
//!
//! An answer is matched at most [`LIFETIME_NS`] after its question, by the times of both packets. A question without an
//! answer is dropped at the second [`Pending::turn`] after it, or if it is the oldest one and another one needs its place,
//! which is counted.
//!
//! A question that is repeated before its answer keeps its first time: the response time includes retransmissions. An
//! answer that is repeated has no response time. Multicast questions are not kept, because their answers come from
//! other addresses.

use std::hash::{Hash, Hasher};
use std::mem;

use ringtap_base::Aged;
use ringtap_wire::{Flags, PacketRecord};

use crate::LIFETIME_NS;
use crate::hashing::Hashing;

/// Most questions.
const QUESTIONS_MAX: usize = 1 << 16;

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

/// Questions and the times when they were asked.
type Table = Aged<Key, u64, Hashing>;

/// Questions without an answer.
pub(super) struct Pending {
    all: Table,
    /// Questions that were dropped for lack of room.
    no_room: u64,
}

impl Pending {
    /// No questions; they take at most `memory` bytes.
    pub(super) fn new(memory: usize) -> Self {
        let most = (memory / Table::ENTRY_BYTES).min(QUESTIONS_MAX);
        Self { all: Aged::new(most, Hashing::default()), no_room: 0 }
    }

    /// Adds the question of a packet.
    pub(super) fn ask(&mut self, record: &PacketRecord, id: u16, asked: Asked) {
        let key = Key::of(record, id, asked, false);
        let lives = |&first: &u64| record.ts_ns.saturating_sub(first) <= LIFETIME_NS;
        if !self.all.get(&key).is_some_and(lives) {
            let (_, evicted) = self.all.insert(key, record.ts_ns);
            self.no_room += u64::from(evicted.is_some());
        }
    }

    /// Removes the question that a packet answers; returns the time since it was asked, nanoseconds.
    pub(super) fn answer(&mut self, record: &PacketRecord, id: u16, asked: Asked) -> Option<u64> {
        let key = Key::of(record, id, asked, true);
        let asked_ns = self.all.remove(&key)?;
        record.ts_ns.checked_sub(asked_ns).filter(|&time_ns| time_ns <= LIFETIME_NS)
    }

    /// The number of questions that were dropped for lack of room, since the last call.
    pub(super) fn take_no_room(&mut self) -> u64 {
        mem::take(&mut self.no_room)
    }

    /// Bytes that the questions take.
    #[cfg(test)]
    pub(super) fn memory(&self) -> usize {
        self.all.len() * Table::ENTRY_BYTES
    }

    /// Drops questions that were asked before the last turn.
    pub(super) fn turn(&mut self) {
        self.all.turn();
        while self.all.pop_old().is_some() {}
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
    fn a_question_lives_for_its_lifetime_and_for_a_turn() {
        let mut pending = Pending::new(1 << 20);
        let times = [0, LIFETIME_NS, LIFETIME_NS + 1, 0, 0];
        (0..).zip(times).for_each(|(port, _)| pending.ask(&packet(port, 7), 2, QUESTION));
        // The times of others end nothing.
        pending.ask(&packet(100, 99 * LIFETIME_NS), 2, QUESTION);
        pending.turn();
        let answered = |(port, later_ns)| pending.answer(&reply(port, 7 + later_ns), 2, QUESTION);
        let found: Vec<_> = (0..).zip(times).take(4).map(answered).collect();
        assert_eq!(found, [Some(0), Some(LIFETIME_NS), None, Some(0)]);
        pending.turn();
        assert_eq!(pending.answer(&reply(4, 7), 2, QUESTION), None);
        assert_eq!((pending.all.len(), pending.take_no_room()), (0, 0));
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
    fn the_oldest_question_makes_room_and_is_counted() {
        let mut pending = Pending::new(100_000);
        (0..1_000).for_each(|port| pending.ask(&packet(port, 1), 1, QUESTION));
        let most = pending.all.most();
        assert!(most > 500 && most * Table::ENTRY_BYTES <= 100_000);
        assert_eq!(pending.take_no_room(), 1_000 - most as u64);
        assert_eq!(pending.take_no_room(), 0);
        assert_eq!(pending.answer(&reply(0, 2), 1, QUESTION), None);
        assert_eq!(pending.answer(&reply(999, 2), 1, QUESTION), Some(1));
        let mut none = Pending::new(0);
        none.ask(&packet(1, 1), 1, QUESTION);
        assert_eq!(none.take_no_room(), 1);
    }
}
