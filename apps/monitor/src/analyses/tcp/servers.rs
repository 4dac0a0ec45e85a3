//! Sums of round-trip times by server.
//!
//! A record adds a row without a look-up, and rows of a server are joined later ([`Aggregate`]): most servers of a large network
//! have few records, so each look-up would miss the caches.
//!
//! Sums are exact while there is room. Without room, which servers stay depends on when rows are joined; records of the others
//! are counted.

use std::cmp::Reverse;

use ringtap_flow::{Aggregate, IpVersion, MOST_ROWS, Row};
use ringtap_state::{Op, Row as RowOfState, Rows as StateRows, Schema};
use ringtap_wire::HashKey;

use super::table::{Host, first};
use crate::analyses::address::Address;

/// Most servers, so that rows have room beyond.
const MOST: usize = MOST_ROWS * 3 / 4;

/// Version, address and port; the sums of a [`Delay`].
pub(super) static SERVERS: Schema = Schema::new("tcp_servers", 19, &[Op::Add; 5]);

/// Address and port of a responder.
pub(super) type Server = (Host, u16);

#[derive(Clone, Copy, Default)]
pub(super) struct Delay {
    pub(super) rtt_ns: u64,
    pub(super) samples: u64,
    pub(super) handshake_us: u64,
    pub(super) handshakes: u64,
    pub(super) records: u64,
}

impl Delay {
    pub(super) fn mean_us(&self) -> u64 {
        self.rtt_ns / 1000 / self.samples.max(1)
    }
}

#[derive(Clone, Copy)]
struct Served<A> {
    address: A,
    port: u16,
    delay: Delay,
}

impl<A: Address> Row for Served<A> {
    #[inline(always)]
    fn place(&self, key: &HashKey) -> u32 {
        (key.word(self.address.hash(key) ^ u64::from(self.port)) >> 32) as u32
    }

    #[inline(always)]
    fn has_key_of(&self, other: &Self) -> bool {
        (self.address, self.port) == (other.address, other.port)
    }

    #[inline(always)]
    fn add(&mut self, later: &Self) {
        let (own, more) = (&mut self.delay, &later.delay);
        own.rtt_ns = own.rtt_ns.saturating_add(more.rtt_ns);
        own.samples += more.samples;
        own.handshake_us += more.handshake_us;
        own.handshakes += more.handshakes;
        own.records += more.records;
    }
}

impl<A: Address> Served<A> {
    fn server(&self) -> (Server, Delay) {
        (((A::VERSION, self.address.wide()), self.port), self.delay)
    }
}

/// The servers of one shard, or of all.
pub(super) struct Servers {
    v4: Aggregate<Served<[u8; 4]>>,
    v6: Aggregate<Served<[u8; 16]>>,
    /// Most servers of both IP versions.
    capacity: usize,
    /// Rows that may come before those of each server are joined.
    room: usize,
    /// Records of servers without room.
    ignored: u64,
}

impl Servers {
    pub(super) fn with_room(key: HashKey, capacity: usize) -> Self {
        let (v4, v6, capacity) =
            (Aggregate::new(key), Aggregate::new(key), capacity.clamp(1, MOST));
        Self { v4, v6, capacity, room: capacity + capacity / 8 + 1, ignored: 0 }
    }

    #[inline]
    pub(super) fn add(&mut self, (version, address): &Host, port: u16, delay: Delay) {
        match version {
            IpVersion::V4 => self.v4.push(Served { address: Address::of(address), port, delay }),
            IpVersion::V6 => self.v6.push(Served { address: Address::of(address), port, delay }),
        }
        self.room -= 1;
        if self.room == 0 {
            self.make_room();
        }
    }

    /// Joins the rows of each server, and drops the latest servers if there are too many.
    #[cold]
    fn make_room(&mut self) {
        let Self { v4, v6, capacity, ignored, .. } = self;
        v4.settle();
        v6.settle();
        let excess = (v4.len() + v6.len()).saturating_sub(*capacity);
        let gone = v4.drop_latest(excess, |row| *ignored += row.delay.records);
        v6.drop_latest(excess - gone, |row| *ignored += row.delay.records);
        self.room = self.capacity + self.capacity / 8 + 1 - self.v4.len() - self.v6.len();
    }

    /// All servers. Rows of a server must be joined.
    fn rows(&self) -> impl Iterator<Item = (Server, Delay)> {
        self.v4.rows().map(Served::server).chain(self.v6.rows().map(Served::server))
    }

    pub(super) fn merge(&mut self, mut other: Self) {
        other.make_room();
        other.rows().for_each(|((host, port), delay)| self.add(&host, port, delay));
        self.ignored += other.ignored;
    }

    pub(super) fn save(&mut self, rows: &mut StateRows) {
        self.make_room();
        for (((version, address), port), delay) in self.rows() {
            let Delay { rtt_ns, samples, handshake_us, handshakes, records } = delay;
            let key: [&[u8]; 3] = [&[version as u8], &address, &port.to_be_bytes()];
            rows.push(&key, &[rtt_ns, samples, handshake_us, handshakes, records], &[]);
        }
    }

    pub(super) fn load(&mut self, row: &RowOfState<'_>) -> Option<()> {
        let (&[version], rest) = row.key().split_first_chunk()?;
        let (&address, rest) = rest.split_first_chunk()?;
        let port = u16::from_be_bytes(*rest.first_chunk()?);
        let [rtt_ns, samples, handshake_us, handshakes, records] = row.numbers();
        let delay = Delay { rtt_ns, samples, handshake_us, handshakes, records };
        self.add(&(IpVersion::from_number(version)?, address), port, delay);
        Some(())
    }

    /// The slowest servers by the mean of their round-trip times, and the number of records of servers without room.
    pub(super) fn slowest(mut self, most: usize) -> (Vec<(Server, Delay)>, u64) {
        /// Rows that are ranked at once.
        const AT_ONCE: usize = 4096;
        self.make_room();
        let rank = |(server, delay): &(Server, Delay)| (Reverse(delay.mean_us()), *server);
        let mut slowest = Vec::new();
        for row in self.rows() {
            slowest.push(row);
            if slowest.len() >= 2 * most.max(AT_ONCE) {
                slowest = first(slowest, most, rank);
            }
        }
        (first(slowest, most, rank), self.ignored)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn host(version: IpVersion, number: u32) -> Host {
        let mut address = [0; 16];
        address[..4].copy_from_slice(&number.to_be_bytes());
        (version, address)
    }

    /// Adds this many records of 20,000 servers of both versions, the record's number as its round-trip time.
    fn add(servers: &mut Servers, records: u32) -> BTreeMap<Server, [u64; 2]> {
        let mut expected = BTreeMap::new();
        for record in 0..records {
            let number = record.wrapping_mul(2_654_435_761) % 20_000;
            let version = if number % 3 == 0 { IpVersion::V6 } else { IpVersion::V4 };
            let (host, port, rtt_ns) =
                (host(version, number / 2), (number % 2) as u16, u64::from(record) * 1000);
            let delay = Delay { rtt_ns, samples: 1, records: 1, ..Delay::default() };
            servers.add(&host, port, delay);
            let [sum, records] = expected.entry((host, port)).or_insert([0; 2]);
            (*sum, *records) = (*sum + rtt_ns, *records + 1);
        }
        expected
    }

    #[test]
    fn sums_are_those_of_a_map_and_the_slowest_come_first() {
        let [mut servers, mut other] =
            [1, 2].map(|_| Servers::with_room(HashKey::from_seed(3), 20_000));
        let mut expected = add(&mut servers, 70_000);
        for (server, more) in add(&mut other, 5_000) {
            let own = expected.entry(server).or_insert([0; 2]);
            *own = [own[0] + more[0], own[1] + more[1]];
        }
        servers.merge(other);
        let mut expected: Vec<_> = expected.into_iter().collect();
        expected.sort_by_key(|(server, [sum, records])| (Reverse(sum / 1000 / records), *server));
        let (slowest, ignored) = servers.slowest(10);
        let found = slowest.iter().map(|(server, delay)| (*server, [delay.rtt_ns, delay.records]));
        assert!(found.eq(expected[..10].iter().copied()));
        assert_eq!(ignored, 0);
    }

    #[test]
    fn records_without_room_are_counted() {
        for capacity in [0, 1, 100, 5_000] {
            let mut servers = Servers::with_room(HashKey::from_seed(3), capacity);
            add(&mut servers, 50_000);
            let (all, ignored) = servers.slowest(20_000);
            assert_eq!(all.len(), capacity.max(1));
            let kept: u64 = all.iter().map(|(_, delay)| delay.records).sum();
            assert_eq!(kept + ignored, 50_000, "{capacity}");
        }
    }
}
