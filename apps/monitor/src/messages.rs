//! Joins the facts attached to packets to events, one for each message.

use std::sync::Arc;

use ringtap_flow::{Event, FlowKey, Kind};
use ringtap_stage::Attachments;
use ringtap_wire::{Flags, PacketRecord, Paths};

/// Makes events; its memory is used again for each.
pub(crate) struct Messages {
    paths: Arc<Paths>,
    event: Event,
}

impl Messages {
    pub(crate) fn new(paths: &Arc<Paths>) -> Self {
        Self { paths: Arc::clone(paths), event: Event::default() }
    }

    /// Calls `found` for each message in the attachments of these packets, in order, and for values before the first
    /// message of a packet, which belong to an earlier one. `sides` are those of
    /// [`FlowTable::sides`](ringtap_flow::FlowTable::sides).
    pub(crate) fn each(
        &mut self,
        packets: &[PacketRecord],
        attachments: &Attachments,
        sides: &[(usize, bool)],
        mut found: impl FnMut(&mut Event),
    ) {
        let mut cursor = attachments.cursor();
        while let Some(packet) = packets.get(cursor.next_item()) {
            let item = cursor.next_item();
            // A packet with an unusable header belongs to no flow.
            if !packet.is_ip() || packet.flags.contains(Flags::BAD_HEADER) {
                cursor.skip_to(item + 1);
                continue;
            }
            let event = &mut self.event;
            event.key = FlowKey::of(packet);
            event.time_ns = packet.ts_ns;
            event.ingress = self.paths.get(packet.path).ingress;
            while let Some((kind, value)) = cursor.take(item) {
                let Some(mut kind) = Kind::from_number(kind) else { continue };
                if kind.of_side(true) != kind.of_side(false)
                    && let Some(&(_, client)) = sides.iter().find(|side| side.0 == item)
                {
                    kind = kind.of_side(client);
                }
                if kind == Kind::Protocol {
                    if !event.values.is_empty() {
                        found(event);
                    }
                    event.values.clear();
                }
                event.values.push(kind, value);
            }
            // An attachment may be a TCP segment alone.
            if !event.values.is_empty() {
                found(event);
            }
            event.values.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use ringtap_wire::Segment;

    use super::*;

    #[test]
    fn each_message_of_a_packet_is_an_event() {
        let packet = |port| PacketRecord {
            flags: Flags(Flags::IPV4.0 | Flags::PORTS.0),
            src_port: port,
            ..PacketRecord::EMPTY
        };
        let packets = [packet(1), packet(2), packet(3), PacketRecord::EMPTY];
        let mut attachments = Attachments::default();
        let facts: [(usize, Kind, &[u8]); 8] = [
            (0, Kind::Protocol, b"dns"),
            (0, Kind::DnsQueryName, b"a"),
            (0, Kind::Protocol, b"dns"),
            (0, Kind::DnsQueryName, b"b"),
            (2, Kind::Protocol, b"tls"),
            (2, Kind::Protocol, b"ssh"),
            (2, Kind::SshClient, b"SSH-2.0-x"),
            (3, Kind::Protocol, b"ssh"),
        ];
        for (item, kind, value) in facts {
            if item == 2 && value == b"tls" {
                // A packet with a segment only, and one with a segment and a message.
                assert!(attachments.push(1, Segment::KIND, &[0; 14]));
                assert!(attachments.push(2, Segment::KIND, &[0; 14]));
            }
            assert!(attachments.push(item, kind as u8, value));
        }
        let mut found = Vec::new();
        let mut messages = Messages::new(&Arc::new(Paths::new()));
        let sides = [(1, false), (2, false)];
        messages.each(&packets, &attachments, &sides, |event| {
            let name = event.values.first(Kind::DnsQueryName);
            let name = name.or(event.values.first(Kind::SshServer)).unwrap_or_default();
            found.push((event.key.src_port, event.protocol().to_vec(), name.to_vec()));
        });
        let event = |port, protocol: &[u8], name: &[u8]| (port, protocol.to_vec(), name.to_vec());
        let ssh = event(3, b"ssh", b"SSH-2.0-x");
        let events = [event(1, b"dns", b"a"), event(1, b"dns", b"b"), event(3, b"tls", b""), ssh];
        assert_eq!(found, events);
    }
}
