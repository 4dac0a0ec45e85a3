//! Packets in memory, offered repeatedly at a rate, as by a network card: a full queue drops.
//!
//! ```text
//!  packet i arrives at start + i / rate                 the card's ring of queue q
//!  ┌ sample ┐┌ sample ┐┌ sam…  ── by address pair ──▶ │ accepted, not yet taken │ ── burst ──▶ decoded packets
//!                                  is it full? ──▶ dropped, counted as ring_full
//! ```
//!
//! There is no sender thread: between two calls of a feed no packet is taken, so of the packets
//! that arrive meanwhile the first find room and the others do not. So the worker's core does only
//! its own work, and the rate is exact.
//!
//! Without a rate each packet is available immediately.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use ringtap_base::now_ns;
use ringtap_io::capture::{Files, Notice};
use ringtap_skeleton::ShardMap;
use ringtap_stage::{Burst, Fed, Feed, Mark};
use ringtap_wire::{Decoder, HashKey, LinkType, PacketRecord, Paths, Tunnels};

use ringtap_engine::{AppOptions, Closed, FeedCounts, PacketFeed, PacketSource, Plan, Watch};

/// Most packets of a sample: 128 MiB.
const MOST: usize = 1 << 21;
/// Slots of the card's ring.
const SLOTS: u64 = 4096;
/// A second.
const SECOND_NS: f64 = 1e9;

/// A sample of a capture.
#[derive(Debug)]
pub struct Sample {
    packets: Arc<[PacketRecord]>,
    /// Diagnostics of the source.
    pub notices: Vec<Notice>,
    /// Whether the source had more packets.
    pub cut: bool,
    /// Whether a stop ended the reading of the source.
    pub interrupted: bool,
}

/// Builds a sample from frames.
pub struct SampleBuilder {
    decoder: Decoder,
    packets: Vec<PacketRecord>,
    /// Whether a frame found no room.
    cut: bool,
}

impl SampleBuilder {
    /// An empty sample. `seed` must be the plan's, so that both hash alike.
    pub fn new(seed: u64) -> Self {
        let decoder = Decoder::new(HashKey::from_seed(seed), Arc::new(Paths::new()));
        Self { decoder: decoder.with_tunnels(Tunnels::Outer), packets: Vec::new(), cut: false }
    }

    /// Adds an Ethernet frame; false if there is no room for more.
    pub fn push(&mut self, ts_ns: u64, frame: &[u8], original_len: u32) -> bool {
        let room = self.packets.len() < MOST;
        if room {
            let mut packet = PacketRecord::EMPTY;
            self.decoder.decode(LinkType::ETHERNET, ts_ns, frame, original_len, &mut packet);
            self.packets.push(packet);
        }
        self.cut |= !room;
        room
    }

    /// The sample of all frames added.
    pub fn finish(self) -> Sample {
        let Self { packets, cut, .. } = self;
        Sample { packets: packets.into(), notices: Vec::new(), cut, interrupted: false }
    }
}

impl Sample {
    /// Reads the first packets of files. The plan must have a single queue and the same seed.
    pub fn read<A: AppOptions>(plan: &Plan<A>, files: Files, watch: &Watch) -> Self {
        let mut feeds = PacketFeed::all(plan, &Arc::default(), files, watch);
        let (mut packets, mut cut) = (Vec::new(), false);
        let mut burst = Burst::with_capacity(ringtap_skeleton::BURST);
        while let Some(feed) = feeds.first_mut() {
            match feed.next(&mut burst) {
                Fed::Mark(Mark::End { .. }) => break,
                _ if packets.len() + burst.len() > MOST => {
                    cut = true;
                    break;
                }
                _ => packets.append(&mut burst),
            }
        }
        let Closed { notices, interrupted, .. } = PacketSource::close(feeds);
        Self { packets: packets.into(), notices, cut, interrupted }
    }

    /// Number of packets.
    pub fn len(&self) -> u64 {
        self.packets.len() as u64
    }

    /// Whether the sample has no packets.
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }
}

/// Shared by all queues.
struct Offer {
    /// Packets a second.
    rate: Option<u64>,
    /// Number of packets that arrive.
    packets: u64,
    /// Arrival time of the first one.
    start_ns: OnceLock<u64>,
}

impl Offer {
    /// Number of packets that have arrived.
    fn arrived(&self, now_ns: u64) -> u64 {
        let start_ns = *self.start_ns.get_or_init(|| now_ns);
        let since = u128::from(now_ns.saturating_sub(start_ns));
        let arrived = self.rate.map_or(u128::MAX, |rate| since * u128::from(rate) / 1_000_000_000);
        u64::try_from(arrived).unwrap_or(u64::MAX).min(self.packets)
    }

    /// Arrival time of a packet.
    fn time_ns(&self, number: u64, rate: u64) -> u64 {
        let start_ns = self.start_ns.get().copied().unwrap_or(0);
        start_ns + (number as f64 * SECOND_NS / rate as f64) as u64
    }
}

/// A queue of a sample.
pub(super) struct SampleFeed<'a> {
    packets: Arc<[PacketRecord]>,
    /// The packets of this queue.
    own: Vec<u32>,
    offer: Arc<Offer>,
    queue: usize,
    watch: &'a Watch,
    /// Own packets that arrived, including dropped ones.
    seen: u64,
    /// Numbers of own packets in the card's ring.
    waiting: VecDeque<Range<u64>>,
    waits: u64,
    taken: u64,
    dropped: u64,
    octets: u64,
    /// Whether a stop came before all packets had arrived.
    interrupted: bool,
}

impl<'a> SampleFeed<'a> {
    /// Makes a feed for each queue. Together they offer `packets` packets, repeating the sample.
    pub(super) fn all(
        sample: &Sample,
        shards: &ShardMap,
        rate: Option<u64>,
        packets: u64,
        watch: &'a Watch,
    ) -> Vec<Self> {
        let packets = if sample.is_empty() { 0 } else { packets };
        let offer = Arc::new(Offer { rate, packets, start_ns: OnceLock::new() });
        let mut own = vec![Vec::new(); shards.queues()];
        for (at, packet) in (0..).zip(&*sample.packets) {
            own[shards.queue(packet.pair_hash)].push(at);
        }
        let feed = |(queue, own)| Self {
            packets: Arc::clone(&sample.packets),
            own,
            offer: Arc::clone(&offer),
            queue,
            watch,
            seen: 0,
            waiting: VecDeque::new(),
            waits: 0,
            taken: 0,
            dropped: 0,
            octets: 0,
            interrupted: false,
        };
        own.into_iter().enumerate().map(feed).collect()
    }

    /// Number of packets of this queue among the first `number`.
    fn own_of(&self, number: u64) -> u64 {
        let (len, own) = (self.packets.len() as u64, &self.own);
        if len == 0 {
            return 0;
        }
        let (rounds, rest) = (number / len, number % len);
        rounds * own.len() as u64 + own.partition_point(|&at| u64::from(at) < rest) as u64
    }

    /// Takes arrived packets while the card's ring has room.
    fn arrive(&mut self, now_ns: u64) {
        let seen = self.own_of(self.offer.arrived(now_ns));
        let new = seen - self.seen;
        let room = if self.offer.rate.is_some() { SLOTS - self.waits } else { u64::MAX };
        let accepted = new.min(room);
        if accepted > 0 {
            self.waiting.push_back(self.seen..self.seen + accepted);
            self.waits += accepted;
        }
        self.dropped += new - accepted;
        self.watch.dropped.set(self.queue, self.dropped);
        self.seen = seen;
    }

    /// Hands out own packets with these numbers.
    fn hand_out(&mut self, numbers: Range<u64>, now_ns: u64, burst: &mut Vec<PacketRecord>) {
        let (len, own) = (self.packets.len() as u64, self.own.len() as u64);
        let (mut round, mut at) = (numbers.start / own, numbers.start % own);
        for _ in numbers {
            let place = self.own[at as usize];
            let mut packet = self.packets[place as usize];
            let number = round * len + u64::from(place);
            packet.ts_ns = self.offer.rate.map_or(now_ns, |rate| self.offer.time_ns(number, rate));
            self.octets += u64::from(packet.wire_len);
            burst.push(packet);
            at += 1;
            if at == own {
                (round, at) = (round + 1, 0);
            }
        }
    }
}

impl Feed for SampleFeed<'_> {
    type Item = PacketRecord;

    fn next(&mut self, burst: &mut Burst<PacketRecord>) -> Fed {
        let now_ns = now_ns();
        if self.watch.stopped() {
            // Packets that have not arrived are not offered any more.
            let all = self.own_of(self.offer.packets);
            self.interrupted |= self.seen < all;
            self.seen = all;
        } else {
            self.arrive(now_ns);
        }
        let before = burst.len();
        while let Some(range) = self.waiting.front_mut() {
            let room = (burst.capacity() - burst.len()) as u64;
            let upto = range.end.min(range.start + room);
            let numbers = range.start..upto;
            range.start = upto;
            if range.is_empty() {
                self.waiting.pop_front();
            }
            if numbers.is_empty() {
                break;
            }
            self.waits -= numbers.end - numbers.start;
            self.hand_out(numbers, now_ns, burst);
        }
        let taken = (burst.len() - before) as u64;
        self.taken += taken;
        self.watch.packets.add(self.queue, taken);
        if taken > 0 {
            return Fed::Items;
        }
        if self.seen == self.own_of(self.offer.packets) {
            return Fed::Mark(Mark::End { time_ns: now_ns });
        }
        Fed::Idle
    }
}

impl PacketSource for SampleFeed<'_> {
    fn close(feeds: Vec<Self>) -> Closed {
        let sum = |of: fn(&Self) -> u64| feeds.iter().map(of).sum();
        let (packets, dropped) = (sum(|feed| feed.taken), sum(|feed| feed.dropped));
        let counts = FeedCounts {
            packets,
            captured_octets: sum(|feed| feed.octets),
            ..FeedCounts::default()
        };
        let mut lost = BTreeMap::from([("ring_full", dropped)]);
        lost.retain(|_, packets| *packets > 0);
        let interrupted = feeds.iter().any(|feed| feed.interrupted);
        Closed { counts, packets, lost: Some(lost), interrupted, ..Closed::default() }
    }
}
