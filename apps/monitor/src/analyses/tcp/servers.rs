//! Sums of round-trip times by server.
//!
//! A record adds a row without a look-up, and rows of a server are joined later ([`Aggregate`]): most servers of a large network
//! have few records, so each look-up would miss the caches.

use std::cmp::Reverse;

use ringtap_flow::{Aggregate, IpVersion, Row};
use ringtap_state::{Op, Row as RowOfState, Rows as StateRows, Schema};
use ringtap_wire::HashKey;

use super::table::{Host, first};
use crate::analyses::address::Address;

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
    /// Least room for rows, an eighth beyond the capacity.
    room: usize,
    /// Records of servers without room.
    ignored: u64,
}

impl Servers {
    pub(super) fn with_room(key: HashKey, capacity: usize) -> Self {
        let (v4, v6) = (Aggregate::new(key), Aggregate::new(key));
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
