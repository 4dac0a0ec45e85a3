//! EVE, field by field. Suricata's schema validates the files in the tests of the command.

use proptest::prelude::*;
use ringtap_flow::{EndReason, FlowRecord, History, Initiator, Path};
use serde_json::{Value, json};

use super::{any_record, echo, key, object, of_protocol, record, tcp, tunnelled};
use crate::formats::Format;

fn event(record: FlowRecord) -> Value {
    object(Format::Eve, record)
}

#[test]
fn the_protocol_has_the_name_of_suricata() {
    for (own, name) in [("tls", Some("tls")), ("dhcp", Some("dhcp")), ("wireguard", None)] {
        assert_eq!(event(of_protocol(own))["app_proto"].as_str(), name);
    }
    assert_eq!(event(tcp()).get("app_proto"), None);
}

#[test]
fn tcp_has_every_field() {
    let mut event = event(tcp());
    let id = event["flow_id"].take().as_u64().unwrap();
    assert!(0 < id && id < 1 << 51);
    assert_eq!(
        event,
        json!({
            "timestamp": "2023-11-14T22:13:27.456000+0000",
            "flow_id": null,
            "event_type": "flow",
            "vlan": [4094],
            "src_ip": "192.0.2.1",
            "src_port": 49152,
            "dest_ip": "198.51.100.2",
            "dest_port": 443,
            "ip_v": 4,
            "proto": "TCP",
            "flow": {
                "pkts_toserver": 11,
                "pkts_toclient": 12,
                "bytes_toserver": 2101,
                "bytes_toclient": u64::MAX,
                "start": "2023-11-14T22:13:20.123999+0000",
                "end": "2023-11-14T22:13:27.456000+0000",
                "age": 7,
                "state": "closed",
                "reason": "timeout",
                "alerted": false,
            },
            "tcp": {
                "tcp_flags": "df",
                "tcp_flags_ts": "1b",
                "tcp_flags_tc": "df",
                "fin": true,
                "syn": true,
                "rst": true,
                "psh": true,
                "ack": true,
                "ecn": true,
                "cwr": true,
                "state": "closed",
            },
            "ether": { "src_macs": ["02:00:00:00:00:a1"], "dest_macs": ["02:00:00:00:00:b2"] },
            "community_id": "1:vXun9A9cW2Ry2J4BkTjoTIYpvAA=",
        })
    );
}

#[test]
fn icmp_has_type_and_code_and_no_ports() {
    let event = event(FlowRecord { packets: [1, 0], ..echo() });
    assert_eq!((&event["icmp_type"], &event["icmp_code"]), (&json!(8), &json!(0)));
    assert_eq!((&event["proto"], &event["flow"]["state"]), (&json!("ICMP"), &json!("new")));
    assert_eq!((event.get("src_port"), event.get("tcp")), (None, None));
    assert_eq!(event.get("response_icmp_type"), None);
    let answered = object(Format::Eve, FlowRecord { reverse_icmp_type_code: Some(3), ..echo() });
    assert_eq!(answered["response_icmp_type"], 0);
    assert_eq!(answered["response_icmp_code"], 3);
    for (protocol, name) in [(58, "IPv6-ICMP"), (132, "SCTP"), (17, "UDP"), (200, "200")] {
        let record = record(key(protocol, "2001:db8::1", "2001:db8::2", (1, 2)));
        assert_eq!(object(Format::Eve, record)["proto"], name);
    }
}

#[test]
fn a_tunnel_has_its_outer_header() {
    let event = event(tunnelled());
    assert_eq!(event["vlan"], json!([100, 7]));
    let outer =
        json!({ "src_ip": "2001:db8::bb", "dest_ip": "2001:db8::aa", "proto": "UDP", "depth": 1 });
    assert_eq!(event["tunnel"], outer);
}

#[test]
fn connections_have_their_states() {
    for (history, tcp, flow) in [
        ("S", json!("syn_sent"), "new"),
        ("Sh", json!("syn_recv"), "new"),
        ("ShA", json!("established"), "established"),
        ("ShADadF", json!("fin_wait1"), "established"),
        ("ShADadf", json!("close_wait"), "established"),
        ("ShADadFf", json!("closed"), "closed"),
        ("Sr", json!("closed"), "closed"),
        ("DadA", Value::Null, "established"),
    ] {
        let event = event(FlowRecord { history: History::of(history), ..super::tcp() });
        assert_eq!((&event["tcp"]["state"], &event["flow"]["state"]), (&tcp, &json!(flow)));
    }
    for (end_reason, reason) in [
        (EndReason::Idle, "timeout"),
        (EndReason::Active, "timeout"),
        (EndReason::Forced, "shutdown"),
        (EndReason::LackOfResources, "forced"),
    ] {
        assert_eq!(event(FlowRecord { end_reason, ..tcp() })["flow"]["reason"], reason);
    }
}

/// As Suricata does: the addresses of an end in both directions, each once.
#[test]
fn link_addresses_are_those_of_both_directions() {
    let [a, b, c] = [0xa1, 0xb2, 0xc3].map(|last| [2, 0, 0, 0, 0, last]);
    let path = Path { macs: [a, b], ..Path::default() };
    let ether = |initiator, back: [[u8; 6]; 2]| {
        let reverse_path = Some(Box::new(Path { macs: back, vlan_tags: 1, ..Path::default() }));
        event(FlowRecord { initiator, path, reverse_path, ..tcp() })["ether"].clone()
    };
    let [first, second, third] = [a, b, c].map(|mac| format!("02:00:00:00:00:{:02x}", mac[5]));
    let syn = Initiator::Syn;
    let expected = json!({ "src_macs": [&first], "dest_macs": [&second, &third] });
    assert_eq!(ether(syn, [c, a]), expected);
    let expected = json!({ "src_macs": [&first, &third], "dest_macs": [&second] });
    assert_eq!(ether(syn, [b, c]), expected);
    assert_eq!(ether(syn, [[0; 6]; 2]), json!({ "src_macs": [&first], "dest_macs": [&second] }));
    // The path of the record is that of the answer.
    let expected = json!({ "src_macs": [&third, &second], "dest_macs": [&first] });
    assert_eq!(ether(Initiator::SynAck, [c, a]), expected);
}

proptest! {
    /// Any record is an object with names and types of the schema, and without empty lists.
    #[test]
    fn any_record_is_an_event(record in any_record()) {
        const TOP: [&str; 19] = [
            "timestamp", "flow_id", "event_type", "vlan", "src_ip", "src_port", "dest_ip",
            "dest_port", "ip_v", "proto", "icmp_type", "icmp_code", "flow", "tcp", "ether",
            "tunnel", "community_id", "response_icmp_type", "response_icmp_code",
        ];
        let event = event(record.clone());
        let fields = event.as_object().unwrap();
        prop_assert!(fields.keys().all(|name| TOP.contains(&name.as_str())), "{event}");
        prop_assert_eq!(event["src_ip"].as_str().unwrap().parse(), Ok(record.key.source()));
        let [own, _] = record.paths();
        let tags = usize::from(own.unwrap_or(&record.path).vlan_tags).min(2);
        let vlans = event.get("vlan").map_or(0, |vlans| vlans.as_array().unwrap().len());
        prop_assert_eq!(vlans, tags);
        prop_assert_eq!(event["flow"]["bytes_toclient"].as_u64(), Some(record.octets[1]));
    }
}
