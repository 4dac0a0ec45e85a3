//! Makes the keys of packets, and counts them.

use ringtap_wire::{Flags, PacketRecord};

use crate::common::Both;
use crate::counts::PacketCounts;
use crate::findings::Findings;
use crate::keys::{Keying, Keys, PacketKey};
use crate::settings::{Settings, Weight};
use crate::structure::Structure;

/// Settings, and keys of a burst with their weights.
pub(crate) struct Counter<V: Keys> {
    settings: Settings,
    keying: Keying,
    v4: Vec<(V::V4, u64)>,
    v6: Vec<(V::V6, u64)>,
}

impl<V: Keys> Counter<V> {
    pub(crate) fn new(settings: &Settings) -> Self {
        let (v4, v6) = (Vec::new(), Vec::new());
        Self { settings: *settings, keying: Keying::new(settings.by), v4, v6 }
    }

    /// Makes the keys of a burst.
    pub(crate) fn sort<'a>(
        &mut self,
        burst: impl IntoIterator<Item = &'a PacketRecord>,
        packets: &mut PacketCounts,
    ) {
        self.v4.clear();
        self.v6.clear();
        let (keying, octets) = (&self.keying, self.settings.weight == Weight::Octets);
        let countable = Structure::<V::V6>::can_count(self.settings.structure);
        for packet in burst {
            let weight = if octets { u64::from(packet.ip_len) } else { 1 };
            if packet.flags.contains(Flags::BAD_HEADER) {
                packets.no_address += 1;
            } else if packet.flags.contains(Flags::IPV4) {
                self.v4.push((V::V4::of(packet, keying), weight));
            } else if !packet.flags.contains(Flags::IPV6) {
                packets.no_address += 1;
            } else if countable {
                self.v6.push((V::V6::of(packet, keying), weight));
            } else {
                packets.no_such_keys += 1;
            }
        }
        packets.measured += (self.v4.len() + self.v6.len()) as u64;
    }

    /// Counts the keys, in the common structures if there are any.
    pub(crate) fn count(&self, found: &mut Findings<V>, common: Option<&Both<V>>) {
        found.v4.count(&self.v4, &self.settings, common.map(|both| &both.v4));
        found.v6.count(&self.v6, &self.settings, common.map(|both| &both.v6));
    }

    /// Counts them in the exact answer and the distinct keys, if requested.
    pub(crate) fn check(&self, found: &mut Findings<V>) {
        found.v4.check(&self.v4, &self.settings);
        found.v6.check(&self.v6, &self.settings);
    }

    /// Counts packets without timing.
    pub(crate) fn add<'a>(
        &mut self,
        packets: impl IntoIterator<Item = &'a PacketRecord>,
        found: &mut Findings<V>,
    ) {
        self.sort(packets, &mut found.packets);
        self.count(found, None);
        self.check(found);
    }
}
