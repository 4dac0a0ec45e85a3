//! Packets of one interval, added to the sketches together.

use ringtap_wire::{Flags, PacketRecord};

use super::networks::Host;

/// An address, an IP protocol, and 1 for a TCP segment with SYN and without ACK.
pub(crate) type Target = [u8; 18];

/// Packets of one interval, not yet added.
#[derive(Default)]
pub(crate) struct Group {
    /// Earliest and latest time.
    pub(super) first_ns: u64,
    pub(super) last_ns: u64,
    pub(super) senders: Vec<(Host, u64)>,
    pub(super) receivers: Vec<(Host, u64)>,
    pub(super) hosts: Vec<Host>,
    pub(super) targets: Vec<Target>,
    pub(super) pairs: Vec<u64>,
    pub(super) strays: u64,
}

impl Group {
    #[inline(always)]
    pub(super) fn add(&mut self, packet: &PacketRecord, seed: u64) {
        let v6 = packet.flags.contains(Flags::IPV6);
        let (source, destination) = (host(v6, &packet.src), host(v6, &packet.dst));
        let octets = u64::from(packet.ip_len);
        self.first_ns = self.first_ns.min(packet.ts_ns);
        self.last_ns = self.last_ns.max(packet.ts_ns);
        self.senders.push((source, octets));
        self.receivers.push((destination, octets));
        let mut target = [0; 18];
        target[..16].copy_from_slice(&destination);
        target[16] = packet.protocol;
        target[17] = u8::from(opens_connection(packet));
        self.hosts.push(destination);
        self.targets.push(target);
        // The pair's hash is symmetric; the lower address determines the direction.
        let direction = u64::from(source < destination);
        self.pairs.push(mix(u64::from(packet.pair_hash) << 1 | direction, seed));
    }
}

/// Whether it is a TCP segment with SYN and without ACK.
#[inline(always)]
fn opens_connection(packet: &PacketRecord) -> bool {
    const TCP: u8 = 6;
    const SYN: u8 = 1 << 1;
    const ACK: u8 = 1 << 4;
    // Only a TCP packet with its own header has flags.
    packet.protocol == TCP
        && packet.flags.contains(Flags::PORTS)
        && packet.tcp_flags & (SYN | ACK) == SYN
}

/// A packet with a damaged header has none.
pub(super) fn has_addresses(packet: &PacketRecord) -> bool {
    packet.is_ip() && !packet.flags.contains(Flags::BAD_HEADER)
}

/// IPv4 addresses in IPv6 form (RFC 4291, section 2.5.5.2).
#[inline(always)]
fn host(v6: bool, address: &[u8; 16]) -> Host {
    if v6 {
        return *address;
    }
    let [a, b, c, d, ..] = *address;
    [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d]
}

/// Distributes 33 bits over 64.
#[inline(always)]
pub(super) fn mix(word: u64, seed: u64) -> u64 {
    let product = u128::from(word ^ seed) * u128::from(0x9e37_79b9_7f4a_7c15_u64);
    product as u64 ^ (product >> 64) as u64
}
