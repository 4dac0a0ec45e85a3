//! Events as JSON lines; fields have the names of flow records.
//!
//! ```text
//! {"observationTimeMicroseconds":1,"event":"dns","sourceIPv4Address":"10.0.0.1",…,"dnsQueryName":["example.org"],…}
//! ```

use ringtap_flow::{Event, IpVersion, Kind};

use crate::formats::address::push_address;
use crate::formats::lines::{push_fact, push_json, push_number};
use crate::formats::{CommunityId, Interfaces, TextFormat};

pub(super) const FORMAT: TextFormat<Event> = TextFormat { head: None, line, tail: None };

fn line(line: &mut Vec<u8>, event: &Event, _interfaces: &Interfaces) {
    // Its messages are lines of their own.
    if event.is_exchange() {
        return;
    }
    let key = &event.key;
    let (source, destination) = match key.version {
        IpVersion::V4 => (",\"sourceIPv4Address\":\"", "\",\"destinationIPv4Address\":\""),
        IpVersion::V6 => (",\"sourceIPv6Address\":\"", "\",\"destinationIPv6Address\":\""),
    };
    line.extend_from_slice(b"{\"observationTimeMicroseconds\":");
    push_number(line, event.time_ns / 1_000);
    line.extend_from_slice(b",\"event\":");
    push_json(line, event.protocol());
    for (before, address) in [(source, &key.src), (destination, &key.dst)] {
        line.extend_from_slice(before.as_bytes());
        push_address(line, key.version, address);
    }
    line.push(b'"');
    for (before, number) in [
        (",\"sourceTransportPort\":", u64::from(key.src_port)),
        (",\"destinationTransportPort\":", u64::from(key.dst_port)),
        (",\"protocolIdentifier\":", u64::from(key.protocol)),
    ] {
        line.extend_from_slice(before.as_bytes());
        push_number(line, number);
    }
    if event.ingress > 0 {
        line.extend_from_slice(b",\"ingressInterface\":");
        push_number(line, event.ingress);
    }
    for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::Protocol) {
        if event.values.first(kind).is_some() {
            line.extend_from_slice(b",\"");
            line.extend_from_slice(kind.name().as_bytes());
            line.extend_from_slice(b"\":");
            push_fact(line, kind, event.values.of(kind));
        }
    }
    line.extend_from_slice(b",\"communityId\":\"");
    line.extend_from_slice(CommunityId::of_event(event).as_bytes());
    line.extend_from_slice(b"\"}\n");
}
