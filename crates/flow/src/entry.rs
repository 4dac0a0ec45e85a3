//! The mutable state of a live flow, and the rules by which it changes and ends.
//!
//! ```text
//!        0      8       12    13    14   16       24        32       40    42   44   48      56       62    64
//!  IPv4  | ends | ports |proto|state|path| last_ns | packets | octets |flags|tos |ttl | ip_len | notes |stamp|
//!          8      4       1     1     2    8         2 × 4     2 × 4   2 × 1 2×1  2×2  2 × 2×2   6       2      bytes
//!  IPv6  the same with 32 bytes of ends: 88
//!
//!  packets  bits 31…9       8         7…0
//!     of 0 | packets |   known   | lower byte of the back path |
//!     of 1 | packets | irregular | upper byte of the back path |
//! ```
//!
//! One cache line holds all that an IPv4 packet needs; the time of the first packet, which few
//! packets need, is stored elsewhere. Counters of octets have 32 bits, those of packets 23; the owner of the entry
//! carries them over before they overflow.
//!
//! *Back path* is the number of the path of the first packet in the other direction than that of the connection's first
//! packet.
//!
//! *Notes* are the flow's [`History`], or type and code of ICMP.

use ringtap_extract::Facts;
use ringtap_wire::{Flags, PacketRecord, Path};

use crate::ends::Ends;
use crate::flags::{ACK, FIN, RST, SYN};
use crate::key::{ICMP, ICMPV6};
use crate::timeouts::Class;
use crate::ways::Ways;
use crate::{EndReason, FlowKey, FlowRecord, History, Initiator, OpenFlow};

const TCP: u8 = 6;

/// Bits of the state: the [`Class`].
const CLASS: u8 = Class::MASK;
/// FIN seen from side 0; the next bit: from side 1.
const FIN_0: u8 = 1 << 3;
/// The active timeout may pass before the next sweep: check the first packet's time.
const AGEING: u8 = 1 << 5;
/// From this bit on: the [`Initiator`], or [`SYN_REPORTED`].
const INITIATOR: u32 = 6;
/// The initiator is [`Initiator::FirstPacket`], and an earlier part of the flow had its SYN.
const SYN_REPORTED: u8 = 3;

/// Position of type and code of the first answer in the tail of an ICMP flow, whose low bits are those of its first packet.
const ANSWER: u32 = 16;
/// There was an answer.
const ANSWERED: u64 = 1 << 32;

/// Position of the number in a word of the packets.
const PACKETS: u32 = 9;
/// One packet in such a word.
const PACKET: u32 = 1 << PACKETS;
/// The largest number.
const PACKETS_MOST: u32 = u32::MAX >> PACKETS;
/// In the first word: the back path is known.
const BACK_KNOWN: u32 = 1 << 8;
/// In the second word: a packet of UDP was irregular ([`Flags::IRREGULAR`]).
const IRREGULAR: u32 = 1 << 8;

/// Position of the stamp in the tail.
const STAMP: u32 = 48;

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry<E: Ends> {
    /// Zero size, for the alignment.
    align: [E::Align; 0],
    ends: E,
    /// Source port in the upper half.
    ports: u32,
    protocol: u8,
    state: u8,
    pub(crate) path: u16,
    pub(crate) last_ns: u64,
    /// With the back path and a bit each below.
    packets: [u32; 2],
    octets: [u32; 2],
    tcp_flags: [u8; 2],
    tos: [u8; 2],
    /// Smallest and largest of each side; smallest > largest without packets.
    ttl: [[u8; 2]; 2],
    ip_len: [[u16; 2]; 2],
    /// Notes below, the observer's stamp in the upper sixteen bits.
    tail: u64,
}

const _: () = assert!(size_of::<Entry<crate::ends::V4>>() == 64);
const _: () = assert!(size_of::<Entry<crate::ends::V6>>() == 88);

/// The look-up key of a packet. The source port is in the upper half of the ports.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Key<E> {
    pub(crate) ends: E,
    pub(crate) ports: u32,
    pub(crate) protocol: u8,
}

impl<E: Ends> Key<E> {
    #[inline(always)]
    pub(crate) fn of(packet: &PacketRecord, ports: u32) -> Self {
        Self { ends: E::of(packet), ports, protocol: packet.protocol }
    }

    #[inline(always)]
    pub(crate) fn reversed(self) -> Self {
        Self { ends: self.ends.reversed(), ports: self.ports.rotate_left(16), ..self }
    }

    /// The key in the initiator's direction, the packet's direction on it, and how the initiator is
    /// known. The first sender is the initiator, unless the first packet answers a SYN.
    fn oriented(self, packet: &PacketRecord, uniflow: bool) -> (Self, usize, Initiator) {
        let syn = packet.protocol == TCP && packet.tcp_flags & SYN != 0;
        let answer = syn && packet.tcp_flags & ACK != 0;
        let reversed = self.reversed();
        match (syn, answer) {
            // A flow from an endpoint to itself has only one direction, like a uniflow.
            (_, true) if !uniflow && reversed != self => (reversed, 1, Initiator::SynAck),
            (true, false) => (self, 0, Initiator::Syn),
            _ => (self, 0, Initiator::FirstPacket),
        }
    }
}

impl<E: Ends> Entry<E> {
    /// An entry without a flow, which [`Entry::begin`] fills in place: an entry built elsewhere
    /// would be read back in wider pieces than it was written in, and stall on the stores.
    pub(crate) fn blank(key: &Key<E>) -> Self {
        Self {
            align: [],
            ends: key.ends,
            ports: 0,
            protocol: 0,
            state: 0,
            path: 0,
            last_ns: 0,
            packets: [0; 2],
            octets: [0; 2],
            tcp_flags: [0; 2],
            tos: [0; 2],
            ttl: [[u8::MAX, 0]; 2],
            ip_len: [[u16::MAX, 0]; 2],
            tail: 0,
        }
    }

    /// Starts the flow of `packet`, without counting it, in a blank entry. Returns the packet's
    /// direction.
    #[inline(always)]
    pub(crate) fn begin(&mut self, packet: &PacketRecord, key: Key<E>, uniflow: bool) -> usize {
        let (key, direction, initiator) = key.oriented(packet, uniflow);
        self.set(packet, key, initiator);
        direction
    }

    #[inline(always)]
    fn set(&mut self, packet: &PacketRecord, key: Key<E>, initiator: Initiator) {
        self.ends = key.ends;
        self.ports = key.ports;
        self.protocol = key.protocol;
        self.state = Class::of(key.protocol) as u8 | (initiator as u8) << INITIATOR;
        self.path = packet.path;
        self.last_ns = packet.ts_ns;
        if matches!(key.protocol, ICMP | ICMPV6) {
            self.tail = u64::from(packet.dst_port);
        }
    }

    /// The entry of a stored flow without its packets and octets. If flows are cut (`counts` is false), earlier parts have
    /// also the rest of what is counted.
    pub(crate) fn restored(
        flow: &OpenFlow,
        key: &Key<E>,
        (path, back): (u16, Option<u16>),
        counts: bool,
    ) -> Self {
        let record = &flow.record;
        let mut own = Self::blank(key);
        (own.ports, own.protocol) = (key.ports, key.protocol);
        (own.state, own.path, own.last_ns) = (flow.state | AGEING, path, record.last_ns);
        if let Some(back) = back {
            own.set_back(back);
        }
        let icmp = matches!(key.protocol, ICMP | ICMPV6);
        own.tail = if icmp { record.icmp_type_code.into() } else { 0 };
        if !counts {
            return own;
        }
        (own.tcp_flags, own.tos) = (record.tcp_flags, record.tos);
        for side in (0..2).filter(|side| record.packets[*side] > 0) {
            (own.ttl[side], own.ip_len[side]) = (record.ttl[side], record.ip_len[side]);
        }
        if icmp {
            own.set_answer(record.reverse_icmp_type_code);
        } else {
            own.tail = record.history.bits();
        }
        own.packets[1] |= u32::from(record.irregular) * IRREGULAR;
        own
    }

    /// State bits that records do not have.
    pub(crate) fn saved_state(&self) -> u8 {
        self.state & !AGEING
    }

    /// The next part of a flow that was cut while alive: initiator, paths and seen FINs are kept.
    pub(crate) fn continued(&self, packet: &PacketRecord) -> Self {
        let mut next = Self::blank(&self.key());
        next.set(packet, self.key(), Initiator::FirstPacket);
        next.state = self.state & !AGEING;
        if next.state >> INITIATOR == SYN_REPORTED {
            next.state &= !(SYN_REPORTED << INITIATOR);
        }
        next.path = self.path;
        next.packets = self.of_back_path();
        next.set_stamp(self.stamp());
        next
    }

    /// Clears what was counted so far, which a part of the flow reported.
    pub(crate) fn clear_packets(&mut self) {
        if self.state >> INITIATOR == 0 && self.tcp_flags[0] & SYN != 0 {
            self.state |= SYN_REPORTED << INITIATOR;
        }
        let Self { align, ends, ports, protocol, state, path, last_ns, tail, .. } = *self;
        // Type and code of the first ICMP packet stay, those of the answer and the history do not.
        let first = if matches!(protocol, ICMP | ICMPV6) { (1 << ANSWER) - 1 } else { 0 };
        let notes = !0 << STAMP | first;
        let (blank, packets) = (Self::blank(&self.key()), self.of_back_path());
        *self = Self {
            align,
            ends,
            ports,
            protocol,
            state,
            path,
            last_ns,
            packets,
            tail: tail & notes,
            ..blank
        };
    }

    #[inline(always)]
    pub(crate) fn key(&self) -> Key<E> {
        Key { ends: self.ends, ports: self.ports, protocol: self.protocol }
    }

    /// The packet's direction if it belongs to this flow: 0 from the initiator, 1 to it.
    #[inline(always)]
    pub(crate) fn direction(&self, key: &Key<E>, uniflow: bool) -> Option<usize> {
        // Directions alternate at random, so there is no branch between them.
        let differs =
            |key: &Key<E>| self.ends.differs(key.ends) | u64::from(self.ports ^ key.ports);
        let own = differs(key);
        let back = differs(&key.reversed()) | u64::from(uniflow);
        let is_other = own.min(back) | u64::from(self.protocol ^ key.protocol);
        (is_other == 0).then_some(usize::from(own != 0))
    }

    /// Whether the sender of a direction opened the TCP connection; `None`: no SYN was seen.
    pub(crate) fn is_client(&self, direction: usize, uniflow: bool) -> Option<bool> {
        const UNKNOWN: u8 = Initiator::FirstPacket as u8;
        match self.state >> INITIATOR {
            // Of a uniflow, the first packet is not the answer of a known initiator.
            UNKNOWN if uniflow && self.tcp_flags[0] & SYN != 0 => Some(false),
            SYN_REPORTED if uniflow => Some(false),
            UNKNOWN | SYN_REPORTED => None,
            _ => Some(direction == 0),
        }
    }

    /// Its class.
    pub(crate) fn class(&self) -> Class {
        let number = usize::from(self.state & CLASS);
        Class::ALL.get(number).copied().unwrap_or(Class::Other)
    }

    #[inline(always)]
    pub(crate) const fn is_closed(&self) -> bool {
        self.state & CLASS >= Class::TcpFin as u8
    }

    /// Why the flow has ended by `now_ns`, if it has, by silence alone.
    #[inline(always)]
    pub(crate) fn expired(&self, now_ns: u64, idle_ns: &[u64; 8]) -> Option<EndReason> {
        let silent_ns = now_ns.saturating_sub(self.last_ns);
        if silent_ns <= idle_ns[usize::from(self.state & CLASS)] {
            None
        } else if self.is_closed() {
            Some(EndReason::EndDetected)
        } else {
            Some(EndReason::Idle)
        }
    }

    /// Whether the first packet's time must be checked before `packet` is counted, because the
    /// active timeout may have passed. Before `calm_until_ns` only entries marked [`AGEING`] can
    /// have reached it.
    #[inline(always)]
    pub(crate) fn may_be_old(&self, packet: &PacketRecord, calm_until_ns: u64) -> bool {
        self.state & AGEING != 0 || packet.ts_ns >= calm_until_ns
    }

    /// Whether `packet` starts a new connection on the ports of a closed one.
    #[inline(always)]
    pub(crate) fn is_begun_anew(&self, packet: &PacketRecord) -> bool {
        self.is_closed() && packet.tcp_flags & (SYN | ACK) == SYN
    }

    /// Marks the entry, so that the first packet's time is checked.
    #[inline(always)]
    pub(crate) fn age(&mut self) {
        self.state |= AGEING;
    }

    /// Whether counting `packet` would overflow a counter.
    #[inline(always)]
    pub(crate) fn would_overflow(&self, packet: &PacketRecord, direction: usize) -> bool {
        let side = direction & 1;
        let (_, octets) = self.octets[side].overflowing_add(packet.ip_len);
        octets | (self.packets[side] >= PACKETS_MOST << PACKETS)
    }

    /// The counters: packets and octets.
    #[inline(always)]
    pub(crate) fn counters(&self) -> [[u64; 2]; 2] {
        [self.packets.map(|word| u64::from(word >> PACKETS)), self.octets.map(u64::from)]
    }

    /// Sets the counters, packets and octets; false, without any effect, if one does not fit.
    pub(crate) fn set_counters(&mut self, all: [[u64; 2]; 2]) -> bool {
        let narrow = |pair: [u64; 2], most: u32| match pair.map(u32::try_from) {
            [Ok(own), Ok(back)] if own.max(back) <= most => Some([own, back]),
            _ => None,
        };
        let (packets, octets) = (narrow(all[0], PACKETS_MOST), narrow(all[1], u32::MAX));
        let (Some(packets), Some(octets)) = (packets, octets) else { return false };
        let words = self.without_packets();
        let packets = packets.map(|number| number << PACKETS);
        (self.packets, self.octets) = ([words[0] | packets[0], words[1] | packets[1]], octets);
        true
    }

    /// Takes the counters: packets and octets.
    pub(crate) fn take_counters(&mut self) -> [[u64; 2]; 2] {
        let all = self.counters();
        (self.packets, self.octets) = (self.without_packets(), [0; 2]);
        all
    }

    /// The words of the packets without their numbers.
    fn without_packets(&self) -> [u32; 2] {
        self.packets.map(|word| word & (PACKET - 1))
    }

    /// The words of the packets with the back path alone.
    fn of_back_path(&self) -> [u32; 2] {
        let [known, high] = self.without_packets();
        [known, high & !IRREGULAR]
    }

    /// The number of the back path, once a packet had it.
    pub(crate) fn back(&self) -> Option<u16> {
        let [low, high] = self.packets.map(|word| word as u8);
        (self.packets[0] & BACK_KNOWN != 0).then_some(u16::from_le_bytes([low, high]))
    }

    /// Sets the back path, unless it is known.
    #[cold]
    #[inline(never)]
    fn set_back(&mut self, number: u16) {
        if self.packets[0] & BACK_KNOWN == 0 {
            let [low, high] = number.to_le_bytes().map(u32::from);
            self.packets[0] |= low | BACK_KNOWN;
            self.packets[1] |= high;
        }
    }

    /// The direction of the connection's first packet.
    const fn first_direction(&self) -> usize {
        (self.state >> INITIATOR == Initiator::SynAck as u8) as usize
    }

    /// The back path, if it is known and not the mirror of the path.
    #[inline(always)]
    fn back_path(&self, ways: &Ways) -> Option<Box<Path>> {
        ways.reverse(self.path, self.back()?)
    }

    /// The last word of the entry.
    #[inline(always)]
    pub(crate) const fn tail(&self) -> &u64 {
        &self.tail
    }

    #[inline(always)]
    pub(crate) const fn stamp(&self) -> u16 {
        (self.tail >> STAMP) as u16
    }

    #[inline(always)]
    pub(crate) fn set_stamp(&mut self, stamp: u16) {
        self.tail = self.tail & ((1 << STAMP) - 1) | u64::from(stamp) << STAMP;
    }

    /// Counts a packet, which must not overflow. Returns false if the packet is earlier than the
    /// latest.
    #[inline(always)]
    pub(crate) fn count(&mut self, packet: &PacketRecord, direction: usize) -> bool {
        let side = direction & 1;
        // Packets may be out of order: the maximum keeps durations positive.
        let latest = packet.ts_ns >= self.last_ns;
        self.last_ns = self.last_ns.max(packet.ts_ns);
        self.packets[side] = self.packets[side].wrapping_add(PACKET);
        self.octets[side] = self.octets[side].wrapping_add(packet.ip_len);
        self.tcp_flags[side] |= packet.tcp_flags;
        let len = packet.ip_len.min(u32::from(u16::MAX)) as u16;
        let ([low, high], [short, long]) = (self.ttl[side], self.ip_len[side]);
        let irregular = packet.flags.contains(Flags::IRREGULAR);
        // Also true for the first packet, where low > high.
        if (packet.ttl < low) | (packet.ttl > high) | (len < short) | (len > long) | irregular {
            self.stretch(packet, side, len);
        }
        if History::may_grow(self.tail, packet, side) {
            let mut history = History::from_bits(self.tail);
            let before = history;
            history.add(packet, side);
            self.tail ^= before.bits() ^ history.bits();
        }
        if packet.tcp_flags & (FIN | RST) != 0 {
            self.close(packet, side);
        }
        latest
    }

    /// Counts packets that differ from the latest one only in time and length; false if a counter
    /// would overflow.
    #[inline]
    pub(crate) fn count_run(&mut self, run: &[PacketRecord], direction: usize) -> bool {
        let side = direction & 1;
        let (mut octets, [mut short, mut long]) = (0_u64, self.ip_len[side]);
        for packet in run {
            octets += u64::from(packet.ip_len);
            let len = packet.ip_len.min(u32::from(u16::MAX)) as u16;
            (short, long) = (short.min(len), long.max(len));
        }
        let octets = u32::try_from(u64::from(self.octets[side]) + octets);
        let more = run.len() as u32;
        let (Ok(octets), Some(last)) = (octets, run.last()) else { return false };
        if more > PACKETS_MOST - (self.packets[side] >> PACKETS) {
            return false;
        }
        self.octets[side] = octets;
        self.packets[side] += more << PACKETS;
        self.ip_len[side] = [short, long];
        self.last_ns = last.ts_ns;
        true
    }

    /// Extends the ranges of TTL and length, and notes an irregular packet.
    #[inline(always)]
    fn stretch(&mut self, packet: &PacketRecord, side: usize, len: u16) {
        self.packets[1] |= u32::from(packet.flags.contains(Flags::IRREGULAR)) * IRREGULAR;
        if self.ttl[side][0] > self.ttl[side][1] {
            self.tos[side] = packet.tos;
            if side != self.first_direction() {
                self.set_back(packet.path);
            }
            if side == 1 && matches!(self.protocol, ICMP | ICMPV6) {
                self.set_answer(Some(packet.dst_port));
            }
        }
        let [low, high] = &mut self.ttl[side];
        (*low, *high) = ((*low).min(packet.ttl), (*high).max(packet.ttl));
        let [short, long] = &mut self.ip_len[side];
        (*short, *long) = ((*short).min(len), (*long).max(len));
    }

    /// Sets type and code of the first ICMP message to the initiator.
    fn set_answer(&mut self, answer: Option<u16>) {
        let notes = answer.map_or(0, |own| ANSWERED | u64::from(own) << ANSWER);
        self.tail = self.tail & !(ANSWERED | 0xffff << ANSWER) | notes;
    }

    /// Type and code of the first ICMP message to the initiator.
    const fn answer(&self) -> Option<u16> {
        if self.tail & ANSWERED == 0 { None } else { Some((self.tail >> ANSWER) as u16) }
    }

    #[cold]
    fn close(&mut self, packet: &PacketRecord, side: usize) {
        if packet.tcp_flags & FIN != 0 {
            self.state |= FIN_0 << side;
        }
        let both = FIN_0 | FIN_0 << 1;
        let class = if packet.tcp_flags & RST != 0 {
            Class::TcpRst
        } else if self.state & both == both {
            Class::TcpFin
        } else {
            return;
        };
        if !self.is_closed() {
            self.state = self.state & !CLASS | class as u8;
        }
    }

    /// The key in the initiator's direction.
    #[inline(always)]
    pub(crate) fn flow_key(&self) -> FlowKey {
        let (src, dst) = self.ends.addresses();
        FlowKey {
            version: E::VERSION,
            src,
            dst,
            src_port: (self.ports >> 16) as u16,
            dst_port: self.ports as u16,
            protocol: self.protocol,
        }
    }

    /// The record, with the time of the first packet and the carried-over packets and octets.
    #[inline(always)]
    pub(crate) fn record(
        &self,
        first_ns: u64,
        carried: [[u64; 2]; 2],
        ways: &Ways,
        end_reason: EndReason,
    ) -> FlowRecord {
        let sum = |more: [u64; 2], own: [u64; 2]| [more[0] + own[0], more[1].wrapping_add(own[1])];
        let [packets, octets] = self.counters();
        let icmp = matches!(self.protocol, ICMP | ICMPV6);
        let reverse_path = self.back_path(ways);
        FlowRecord {
            key: self.flow_key(),
            first_ns,
            last_ns: self.last_ns,
            packets: sum(carried[0], packets),
            octets: sum(carried[1], octets),
            tcp_flags: self.tcp_flags,
            ttl: self.ttl.map(|[least, most]| if least > most { [0; 2] } else { [least, most] }),
            ip_len: self
                .ip_len
                .map(|[least, most]| if least > most { [0; 2] } else { [least, most] }),
            tos: self.tos,
            icmp_type_code: if icmp { self.tail as u16 } else { 0 },
            reverse_icmp_type_code: if icmp { self.answer() } else { None },
            history: if icmp { History::EMPTY } else { History::from_bits(self.tail) },
            irregular: self.packets[1] & IRREGULAR != 0,
            initiator: match self.state >> INITIATOR {
                1 => Initiator::Syn,
                2 => Initiator::SynAck,
                _ => Initiator::FirstPacket,
            },
            end_reason,
            path: *ways.get(self.path),
            reverse_path,
            facts: Facts::default(),
            application: None,
            tcp: None,
            responses: None,
            statistics: None,
            origins: None,
            part: None,
        }
    }
}
