//! Sums by pair and by host, of one IP version.
//!
//! A record is added to its pair only. A host's sums are those of its pairs, so they are computed
//! from these: at the end, or when there are too many recent pairs.

use ringtap_flow::{Aggregate, IpVersion, PARTS, Row};
use ringtap_state::Rows;
use ringtap_wire::HashKey;

use super::rank::Top;
use super::room::make_room;
use crate::analyses::address::Address;
use crate::volume::Volume;

/// Both addresses of a pair, the lower first.
pub(super) type Ends = (IpVersion, [u8; 16], [u8; 16]);

/// An address with its version.
pub(super) type HostKey = (IpVersion, [u8; 16]);

#[derive(Clone, Copy)]
struct Pair<A> {
    low: A,
    high: A,
    /// From the lower to the higher address.
    up: Volume,
    down: Volume,
}

impl<A: Address> Row for Pair<A> {
    #[inline(always)]
    fn place(&self, key: &HashKey) -> u32 {
        key.pair(&self.low.wide(), &self.high.wide())
    }

    #[inline(always)]
    fn has_key_of(&self, other: &Self) -> bool {
        self.low == other.low && self.high == other.high
    }

    #[inline(always)]
    fn add(&mut self, later: &Self) {
        self.up.add(later.up);
        self.down.add(later.down);
    }
}

impl<A: Address> Pair<A> {
    fn both(&self) -> Volume {
        let mut both = self.up;
        both.add(self.down);
        both
    }

    fn sums(&self) -> [u64; 2] {
        let both = self.both();
        [both.packets, both.octets]
    }
}

#[derive(Clone, Copy)]
struct Host<A> {
    address: A,
    sent: Volume,
    received: Volume,
}

impl<A: Address> Row for Host<A> {
    #[inline(always)]
    fn place(&self, key: &HashKey) -> u32 {
        (self.address.hash(key) >> 32) as u32
    }

    #[inline(always)]
    fn has_key_of(&self, other: &Self) -> bool {
        self.address == other.address
    }

    #[inline(always)]
    fn add(&mut self, later: &Self) {
        self.sent.add(later.sent);
        self.received.add(later.received);
    }
}

impl<A: Address> Host<A> {
    fn sums(&self) -> [u64; 4] {
        [self.sent.packets, self.sent.octets, self.received.packets, self.received.octets]
    }
}

/// Sums of one shard.
pub(super) struct Sums<A> {
    /// Pairs not yet added to their hosts.
    recent: Aggregate<Pair<A>>,
    /// Pairs added to their hosts.
    pairs: Bounded<Pair<A>, 2>,
    hosts: Hosts<A>,
}

impl<A: Address> Sums<A> {
    pub(super) fn new(key: HashKey, capacity: usize) -> Self {
        Self {
            recent: Aggregate::new(key),
            pairs: Bounded::new(key, capacity, Pair::sums),
            hosts: Hosts::new(key, capacity),
        }
    }

    /// Adds a record.
    #[inline(always)]
    pub(super) fn add(&mut self, src: &[u8; 16], dst: &[u8; 16], there: Volume, back: Volume) {
        let (src, dst) = (A::of(src), A::of(dst));
        self.recent.push(if src <= dst {
            Pair { low: src, high: dst, up: there, down: back }
        } else {
            Pair { low: dst, high: src, up: back, down: there }
        });
    }

    /// Adds a pair of which no further record will come.
    pub(super) fn add_complete(
        &mut self,
        low: &[u8; 16],
        high: &[u8; 16],
        up: Volume,
        down: Volume,
        largest: &mut [Top<Ends>; 2],
    ) {
        let pair = Pair { low: A::of(low), high: A::of(high), up, down };
        rank(&pair, largest);
        self.hosts.add_ends_of(&[pair]);
    }

    /// Adds all pairs to the rows of a state.
    pub(super) fn save(&mut self, run: u64, rows: &mut Rows) {
        self.recent.settle();
        for pair in self.recent.rows().chain(self.pairs.table.rows()) {
            let (low, high) = (pair.low.wide(), pair.high.wide());
            let Pair { up, down, .. } = pair;
            let numbers = [up.packets, up.octets, down.packets, down.octets, run, run, 0];
            rows.push(&[&[A::VERSION as u8], &low, &high], &numbers, &[]);
        }
    }

    /// Makes one row of each recent pair; returns their number.
    pub(super) fn settle(&mut self) -> usize {
        self.recent.settle();
        self.recent.len()
    }

    /// Number of pairs.
    pub(super) fn pairs(&self) -> usize {
        self.recent.len() + self.pairs.table.len()
    }

    /// Adds recent pairs to their hosts. From now on there is room for `capacity` hosts and as many
    /// pairs.
    pub(super) fn unload(&mut self, capacity: usize) {
        self.pairs.set_capacity(capacity);
        self.hosts.all.set_capacity(capacity);
        for part in 0..PARTS {
            let pairs = self.recent.take_part(part);
            self.hosts.add_ends_of(&pairs);
            pairs.into_iter().for_each(|pair| self.pairs.push(pair));
        }
    }

    /// The hosts, and the largest of the pairs by both orders.
    pub(super) fn finish(mut self, largest: &mut [Top<Ends>; 2]) -> Found<A> {
        if self.pairs.table.is_empty() {
            for part in 0..PARTS {
                let pairs = self.recent.take_part(part);
                pairs.iter().for_each(|pair| rank(pair, largest));
                self.hosts.add_ends_of(&pairs);
            }
        } else {
            self.unload(self.pairs.capacity);
            self.pairs.settle();
            self.pairs.table.rows().for_each(|pair| rank(pair, largest));
        }
        Found { hosts: self.hosts.finish(), pairs_lost: self.pairs.lost }
    }
}

/// Adds a pair to the largest ones.
fn rank<A: Address>(pair: &Pair<A>, largest: &mut [Top<Ends>; 2]) {
    let (low, high, both) = (pair.low.wide(), pair.high.wide(), pair.both());
    largest.iter_mut().for_each(|top| top.add((A::VERSION, low, high), both));
}

/// A table that drops rows when it is full.
struct Bounded<R, const N: usize> {
    table: Aggregate<R>,
    capacity: usize,
    /// Least room for rows, a quarter beyond the capacity.
    room: usize,
    sums: fn(&R) -> [u64; N],
    /// Largest loss of a row, for each sum.
    lost: [u64; N],
}

impl<R: Row, const N: usize> Bounded<R, N> {
    fn new(key: HashKey, capacity: usize, sums: fn(&R) -> [u64; N]) -> Self {
        let room = capacity + capacity / 4 + 1;
        Self { table: Aggregate::new(key), capacity, room, sums, lost: [0; N] }
    }

    /// Sets the number of rows that stay when it is full.
    fn set_capacity(&mut self, capacity: usize) {
        self.capacity = capacity;
        self.settle();
    }

    #[inline(always)]
    fn push(&mut self, row: R) {
        self.table.push(row);
        self.room -= 1;
        if self.room == 0 {
            self.settle();
        }
    }

    /// Makes one row of each key, within the capacity.
    #[cold]
    fn settle(&mut self) {
        self.table.settle();
        while self.table.len() > self.capacity {
            make_room(&mut self.table, &mut self.lost, self.sums);
        }
        self.room = self.capacity + self.capacity / 4 + 1 - self.table.len();
    }
}

/// Hosts; the busiest are summed in a small table before the large one.
struct Hosts<A> {
    key: HashKey,
    busy: Vec<Busy<A>>,
    all: Bounded<Host<A>, 4>,
}

/// A slot of the small table: a host, and the number of other hosts until it is replaced.
#[derive(Clone, Copy)]
struct Busy<A> {
    host: Option<Host<A>>,
    credit: u32,
}

impl<A: Address> Hosts<A> {
    /// Slots of the small table.
    const BUSY: usize = 1 << 13;
    const MOST_CREDIT: u32 = 64;

    fn new(key: HashKey, capacity: usize) -> Self {
        Self { key, busy: Vec::new(), all: Bounded::new(key, capacity, Host::sums) }
    }

    /// Adds pairs to their hosts.
    fn add_ends_of(&mut self, pairs: &[Pair<A>]) {
        self.busy.resize(Self::BUSY, Busy { host: None, credit: 0 });
        for &Pair { low, high, up, down } in pairs {
            self.add(Host { address: low, sent: up, received: down });
            self.add(Host { address: high, sent: down, received: up });
        }
    }

    #[inline(always)]
    fn add(&mut self, host: Host<A>) {
        let Busy { host: held, credit } =
            &mut self.busy[host.place(&self.key) as usize % Self::BUSY];
        match held {
            Some(held) if held.has_key_of(&host) => {
                held.add(&host);
                *credit = (*credit + 2).min(Self::MOST_CREDIT);
            }
            Some(_) if *credit > 0 => {
                *credit -= 1;
                self.all.push(host);
            }
            _ => {
                *credit = 1;
                if let Some(left) = held.replace(host) {
                    self.all.push(left);
                }
            }
        }
    }

    /// All hosts in one table.
    fn finish(mut self) -> Bounded<Host<A>, 4> {
        for host in self.busy.drain(..).filter_map(|busy| busy.host) {
            self.all.push(host);
        }
        self.all.settle();
        self.all
    }
}

/// The remaining sums of a shard, or of several.
pub(super) struct Found<A> {
    hosts: Bounded<Host<A>, 4>,
    pairs_lost: [u64; 2],
}

impl<A: Address> Found<A> {
    /// Adds another shard's sums.
    pub(super) fn merge(&mut self, mut other: Self) {
        if other.hosts.table.len() > self.hosts.table.len() {
            std::mem::swap(&mut self.hosts, &mut other.hosts);
        }
        // Each shard had its part of the room; together they have all of it.
        self.hosts.capacity += other.hosts.capacity;
        self.hosts.room += other.hosts.capacity;
        for part in 0..PARTS {
            other.hosts.table.take_part(part).into_iter().for_each(|host| self.hosts.push(host));
        }
        self.hosts.settle();
        // A host may have lost something in each shard, a pair only in its own.
        for (own, more) in self.hosts.lost.iter_mut().zip(other.hosts.lost) {
            *own += more;
        }
        for (own, more) in self.pairs_lost.iter_mut().zip(other.pairs_lost) {
            *own = (*own).max(more);
        }
    }

    /// Adds hosts to the largest senders and receivers, by both orders.
    pub(super) fn rank(&self, largest: &mut [[Top<HostKey>; 2]; 2]) {
        for host in self.hosts.table.rows() {
            let address = (A::VERSION, host.address.wide());
            for [senders, receivers] in &mut *largest {
                senders.add(address, host.sent);
                receivers.add(address, host.received);
            }
        }
    }

    /// The largest loss of any sum: packets and octets.
    pub(super) fn lost(&self) -> [u64; 2] {
        let [sent, sent_octets, received, received_octets] = self.hosts.lost;
        let [packets, octets] = self.pairs_lost;
        [sent.max(received).max(packets), sent_octets.max(received_octets).max(octets)]
    }
}
