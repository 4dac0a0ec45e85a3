//! The flow table: one entry of two cache lines per live biflow, found through an [`Index`].
//!
//! ```text
//! index    | tag · position | tag · position | 0 | …          4 bytes a word, half full
//!                    └──────────┐
//! entries  | key, times, state ‖ counters | …                 128 bytes an entry, dense
//! ```
//!
//! Entries stand without gaps: a sweep reads memory in order, and a flow that ends is replaced
//! by the last entry. A burst is handled in groups in three passes (index words, entries,
//! updates), so that the cache misses of a group overlap instead of queueing up.
//!
//! Of an entry's two lines nearly every packet needs only the first: small counters there are
//! carried over to the full ones in the second before they can overflow, and the active timeout
//! is looked at there only once it can have passed.
//!
//! Not done: the entries are not stored in the index itself (one miss less for a lone packet),
//! because that keeps the sweep sequential and the memory per flow at 128 + 12…20 bytes.

use std::sync::Arc;

use ringtap_wire::{Flags, HashKey, PacketRecord, Paths};

use crate::index::Index;
use crate::key::IpVersion;
use crate::{EndReason, FlowKey, FlowRecord, Timeouts};

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;
const TCP: u8 = 6;

/// Packets whose cache misses are made to overlap.
const GROUP: usize = 32;

/// Who hears of what happens in the table.
pub trait Observer {
    /// A packet was counted on its flow. `stamp` is the observer's own word in the entry, 0 in a
    /// new one; it stays when a flow is cut. A packet earlier than the flow's latest gets a word
    /// that is 0 and forgotten, so what stands in the entry was always left by the latest one.
    fn counted(&mut self, packet: &PacketRecord, stamp: &mut u16);

    /// A flow ended.
    fn ended(&mut self, record: &FlowRecord);
}

/// The mutable state of a live biflow.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowEntry {
    // First line: what every packet and every sweep need.
    key: FlowKey,
    /// Bits [`FIN_0`] to [`AGEING`].
    state: u8,
    tcp_flags: [u8; 2],
    /// Packets not yet in `packets`.
    recent_packets: [u16; 2],
    stamp: u16,
    last_ns: u64,
    /// Octets not yet in `octets`.
    recent_octets: [u32; 2],
    // Second line.
    first_ns: u64,
    packets: [u64; 2],
    octets: [u64; 2],
    /// When the connection was seen to close; meaningful in state [`CLOSED`].
    closed_ns: u64,
    icmp_type_code: u16,
    path: u16,
}

const _: () = assert!(size_of::<FlowEntry>() == 128);
const _: () = assert!(std::mem::offset_of!(FlowEntry, first_ns) == 64);

/// FIN seen from side 0; the next bit: from side 1.
const FIN_0: u8 = 1;
/// FIN from both sides, or RST.
const CLOSED: u8 = 4;
/// The active timeout may pass before the next sweep: look at the second line.
const AGEING: u8 = 8;

impl FlowEntry {
    fn new(packet: &PacketRecord, key: FlowKey) -> Self {
        Self {
            key,
            state: 0,
            tcp_flags: [0; 2],
            recent_packets: [0; 2],
            stamp: 0,
            last_ns: packet.ts_ns,
            recent_octets: [0; 2],
            first_ns: packet.ts_ns,
            packets: [0; 2],
            octets: [0; 2],
            closed_ns: 0,
            icmp_type_code: match packet.protocol {
                1 | 58 => packet.dst_port,
                _ => 0,
            },
            path: packet.path,
        }
    }

    /// The packet's direction on this flow, if it belongs to it: 0 from the initiator, 1 to it.
    #[inline(always)]
    fn direction(&self, key: &FlowKey) -> Option<usize> {
        let own = &self.key;
        if own.protocol != key.protocol || own.version != key.version {
            return None;
        }
        let same = |a: &[u8; 16], b: &[u8; 16]| u128::from_ne_bytes(*a) == u128::from_ne_bytes(*b);
        if own.src_port == key.src_port
            && own.dst_port == key.dst_port
            && same(&own.src, &key.src)
            && same(&own.dst, &key.dst)
        {
            Some(0)
        } else if own.src_port == key.dst_port
            && own.dst_port == key.src_port
            && same(&own.src, &key.dst)
            && same(&own.dst, &key.src)
        {
            Some(1)
        } else {
            None
        }
    }

    /// Why the flow has ended by `now_ns`, if it has: silence alone, no packet needed.
    #[inline(always)]
    fn expired(&self, now_ns: u64, timeouts: &Timeouts) -> Option<EndReason> {
        if self.state & CLOSED != 0 && now_ns.saturating_sub(self.closed_ns) > timeouts.closing_ns {
            Some(EndReason::EndDetected)
        } else if now_ns.saturating_sub(self.last_ns) > timeouts.idle_ns {
            Some(EndReason::Idle)
        } else {
            None
        }
    }

    /// Why `packet` cannot be counted on this flow any more, if so. Asked before the update, so
    /// that no flow exceeds its active timeout (but one that a late packet makes longer at its
    /// beginning). Before `calm_until_ns` no entry that is not
    /// [`AGEING`] can have reached it.
    #[inline(always)]
    fn ends_before(
        &self,
        packet: &PacketRecord,
        timeouts: &Timeouts,
        calm_until_ns: u64,
    ) -> Option<EndReason> {
        if let Some(reason) = self.expired(packet.ts_ns, timeouts) {
            return Some(reason);
        }
        if (self.state & AGEING != 0 || packet.ts_ns >= calm_until_ns)
            && packet.ts_ns.saturating_sub(self.first_ns) >= timeouts.active_ns
        {
            return Some(EndReason::Active);
        }
        // A new connection on the ports of a closed one.
        if self.state & CLOSED != 0 && packet.tcp_flags & (SYN | ACK) == SYN {
            return Some(EndReason::EndDetected);
        }
        None
    }

    /// Marks the flow if it can reach its active timeout before `calm_until_ns`.
    #[inline(always)]
    fn age(&mut self, timeouts: &Timeouts, calm_until_ns: u64) {
        if self.first_ns.saturating_add(timeouts.active_ns) < calm_until_ns {
            self.state |= AGEING;
        }
    }

    /// True unless the packet is earlier than the latest.
    #[inline(always)]
    fn count(&mut self, packet: &PacketRecord, direction: usize) -> bool {
        // Packets may come out of order: minimum and maximum, so that no duration is negative.
        let latest = packet.ts_ns >= self.last_ns;
        if latest {
            self.last_ns = packet.ts_ns;
        } else {
            self.first_ns = self.first_ns.min(packet.ts_ns);
            self.state |= AGEING;
        }
        let (octets, overflow) = self.recent_octets[direction].overflowing_add(packet.ip_len);
        if overflow || self.recent_packets[direction] == u16::MAX {
            self.carry_over();
            self.recent_octets[direction] = packet.ip_len;
        } else {
            self.recent_octets[direction] = octets;
        }
        self.recent_packets[direction] += 1;
        self.tcp_flags[direction] |= packet.tcp_flags;
        if packet.tcp_flags & (FIN | RST) != 0 {
            self.close(packet, direction);
        }
        latest
    }

    /// Empties the small counters into the full ones.
    #[cold]
    fn carry_over(&mut self) {
        for side in 0..2 {
            self.packets[side] += u64::from(std::mem::take(&mut self.recent_packets[side]));
            self.octets[side] += u64::from(std::mem::take(&mut self.recent_octets[side]));
        }
    }

    fn close(&mut self, packet: &PacketRecord, direction: usize) {
        if packet.tcp_flags & FIN != 0 {
            self.state |= FIN_0 << direction;
        }
        let both = self.state & 3 == 3;
        if (both || packet.tcp_flags & RST != 0) && self.state & CLOSED == 0 {
            self.state |= CLOSED;
            self.closed_ns = packet.ts_ns;
        }
    }

    fn record(&self, paths: &Paths, end_reason: EndReason) -> FlowRecord {
        let both = |sum: fn(&Self, usize) -> u64| [sum(self, 0), sum(self, 1)];
        FlowRecord {
            first_ns: self.first_ns,
            last_ns: self.last_ns,
            packets: both(|e, side| e.packets[side] + u64::from(e.recent_packets[side])),
            octets: both(|e, side| e.octets[side] + u64::from(e.recent_octets[side])),
            tcp_flags: self.tcp_flags,
            icmp_type_code: self.icmp_type_code,
            end_reason,
            path: paths.get(self.path),
            ..FlowRecord::new(self.key)
        }
    }
}

/// All live flows of one shard.
pub struct FlowTable {
    index: Index,
    entries: Vec<FlowEntry>,
    capacity: usize,
    timeouts: Timeouts,
    paths: Arc<Paths>,
    /// The next sweep is expected to come before a packet of this time. What does come later is
    /// handled all the same, at the cost of a look at the second line.
    calm_until_ns: u64,
    hash_key: HashKey,
    /// Where a sweep goes on: entries below this position are still to be looked at.
    sweep_below: Option<usize>,
    /// Whether the sweep has ended any flow.
    swept: bool,
    /// Where the search for a flow to evict goes on.
    evict_at: usize,
}

impl FlowTable {
    /// Live flows at the most, whatever the capacity asked for.
    pub const MOST: usize = Index::MOST;

    /// A table for at most `capacity` live flows (at least 1). Address space for all of them is
    /// reserved now; memory is used as flows come.
    pub fn new(capacity: usize, timeouts: Timeouts, hash_key: HashKey, paths: Arc<Paths>) -> Self {
        let capacity = capacity.clamp(1, Self::MOST);
        let mut entries = Vec::new();
        // Where the system does not hand out so much address space the table grows as it must.
        let _ = entries.try_reserve_exact(capacity);
        Self {
            index: Index::new(),
            entries,
            capacity,
            timeouts,
            paths,
            calm_until_ns: 0,
            hash_key,
            sweep_below: None,
            swept: false,
            evict_at: 0,
        }
    }

    /// Live flows.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// True if no flow is live.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Counts packets on their flows, in order. Packets without addresses are passed over: those
    /// that are not IP, and those whose IP header is unusable.
    pub fn burst(&mut self, packets: &[PacketRecord], observer: &mut impl Observer) {
        if let (0, Some(first)) = (self.calm_until_ns, packets.first()) {
            self.calm_until_ns = first.ts_ns.saturating_add(self.timeouts.tick_ns());
        }
        for group in packets.chunks(GROUP) {
            let mut hashes = [0; GROUP];
            let mut words = [0; GROUP];
            for ((packet, hash), word) in group.iter().zip(&mut hashes).zip(&mut words) {
                let (src_port, dst_port) = FlowKey::ports_of(packet);
                *hash = self.hash_key.flow(packet.pair_hash, src_port, dst_port, packet.protocol);
                *word = self.index.home(*hash);
            }
            // Touch every entry: independent loads, so their misses overlap.
            let mut touched = 0;
            for (&hash, &word) in hashes.iter().zip(&words).take(group.len()) {
                if let Some(position) = Index::position(word, hash)
                    && let Some(entry) = self.entries.get(position)
                {
                    touched ^= entry.last_ns;
                }
            }
            std::hint::black_box(touched);
            for ((packet, &hash), &word) in group.iter().zip(&hashes).zip(&words) {
                if packet.is_ip() && !packet.flags.contains(Flags::BAD_HEADER) {
                    self.packet(packet, hash, word, observer);
                }
            }
        }
    }

    #[inline(always)]
    fn packet(
        &mut self,
        packet: &PacketRecord,
        hash: u32,
        word: u32,
        observer: &mut impl Observer,
    ) {
        let key = FlowKey::of(packet);
        // The word was read before earlier packets of the group changed the table: it is a hint.
        let hinted = Index::position(word, hash)
            .and_then(|at| Some((at, self.entries.get(at)?.direction(&key)?)));
        let found = hinted.or_else(|| {
            let mut direction = 0;
            let position = self.index.find(hash, |at| match self.entries[at].direction(&key) {
                Some(d) => {
                    direction = d;
                    true
                }
                None => false,
            })?;
            Some((position, direction))
        });
        let (position, direction) = match found {
            Some((position, direction)) => {
                let entry = &mut self.entries[position];
                match entry.ends_before(packet, &self.timeouts, self.calm_until_ns) {
                    None => (position, direction),
                    Some(reason) => {
                        observer.ended(&entry.record(&self.paths, reason));
                        let direction = Self::restart(entry, packet, key, direction, reason);
                        (position, direction)
                    }
                }
            }
            None => self.begin(packet, key, hash, observer),
        };
        let entry = &mut self.entries[position];
        if entry.recent_packets == [0; 2] {
            // New, or just carried over: rare enough to look at the second line.
            entry.age(&self.timeouts, self.calm_until_ns);
        }
        let latest = entry.count(packet, direction);
        let mut forgotten = 0;
        observer.counted(packet, if latest { &mut entry.stamp } else { &mut forgotten });
    }

    /// Begins the next flow of the same 5-tuple in the entry of the one that ended.
    #[cold]
    fn restart(
        entry: &mut FlowEntry,
        packet: &PacketRecord,
        key: FlowKey,
        direction: usize,
        reason: EndReason,
    ) -> usize {
        // Cut while alive, it is still the same connection: who began it and which FINs were
        // seen stay known.
        if reason == EndReason::Active {
            let mut next = FlowEntry::new(packet, entry.key);
            next.state = entry.state & !AGEING;
            next.closed_ns = entry.closed_ns;
            next.stamp = entry.stamp;
            *entry = next;
            return direction;
        }
        let (key, direction) = Self::oriented(packet, key);
        *entry = FlowEntry::new(packet, key);
        direction
    }

    fn begin(
        &mut self,
        packet: &PacketRecord,
        key: FlowKey,
        hash: u32,
        observer: &mut impl Observer,
    ) -> (usize, usize) {
        if self.entries.len() == self.capacity {
            self.evict(observer);
        }
        let (key, direction) = Self::oriented(packet, key);
        let position = self.entries.len();
        self.index.push(hash);
        self.entries.push(FlowEntry::new(packet, key));
        (position, direction)
    }

    /// The key in the initiator's direction, and the packet's direction on it. Whoever sends
    /// first is the initiator, unless the first packet seen is an answer to a SYN.
    fn oriented(packet: &PacketRecord, key: FlowKey) -> (FlowKey, usize) {
        let reversed = key.reversed();
        // A flow from an endpoint to itself has no other direction.
        let answer = packet.protocol == TCP && packet.tcp_flags & (SYN | ACK) == SYN | ACK;
        if answer && reversed != key { (reversed, 1) } else { (key, 0) }
    }

    /// Makes room: of the next eight entries the one that has been silent longest goes.
    #[cold]
    fn evict(&mut self, observer: &mut impl Observer) {
        let len = self.entries.len();
        let victim = (0..len.min(8))
            .map(|step| (self.evict_at + step) % len)
            .min_by_key(|&position| self.entries[position].last_ns)
            .unwrap_or(0);
        self.evict_at = (self.evict_at + 8) % len;
        observer.ended(&self.entries[victim].record(&self.paths, EndReason::LackOfResources));
        self.index.swap_remove(victim);
        self.entries.swap_remove(victim);
    }

    /// Ends every flow that has expired by `now_ns`, looking at up to `most` entries a call.
    /// Returns true when all have been looked at; until then call again with nothing between.
    pub fn sweep(&mut self, now_ns: u64, most: usize, observer: &mut impl Observer) -> bool {
        let below = self.sweep_below.take().unwrap_or(self.entries.len());
        self.calm_until_ns = now_ns.saturating_add(self.timeouts.tick_ns());
        let stop = below.saturating_sub(most);
        // Downwards: the entry that fills a gap comes from above and has been looked at.
        for position in (stop..below).rev() {
            if let Some(reason) = self.entries[position].expired(now_ns, &self.timeouts) {
                observer.ended(&self.entries[position].record(&self.paths, reason));
                self.index.swap_remove_later(position);
                self.entries.swap_remove(position);
                self.swept = true;
            } else {
                self.entries[position].age(&self.timeouts, self.calm_until_ns);
            }
        }
        if stop > 0 {
            self.sweep_below = Some(stop);
        } else if std::mem::take(&mut self.swept) {
            self.index.rebuild();
        }
        stop == 0
    }

    /// Ends all flows at the end of the run, up to `most` a call: those that had closed as such,
    /// all others as forced. Call [`FlowTable::sweep`] first. Returns true when the table is
    /// empty; until then call again with nothing between.
    pub fn drain(&mut self, most: usize, observer: &mut impl Observer) -> bool {
        self.index.clear();
        for _ in 0..most {
            let Some(entry) = self.entries.pop() else { return true };
            let closed = entry.state & CLOSED != 0;
            let reason = if closed { EndReason::EndDetected } else { EndReason::Forced };
            observer.ended(&entry.record(&self.paths, reason));
        }
        self.entries.is_empty()
    }
}

impl IpVersion {
    /// 4 or 6.
    pub const fn number(self) -> u8 {
        self as u8
    }
}

#[cfg(test)]
mod tests;
