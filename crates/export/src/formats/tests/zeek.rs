//! Zeek's `conn.log`, read by its header, as in `zeek-cut`.

use std::collections::HashMap;

use proptest::prelude::*;
use ringtap_flow::{FlowRecord, History, Initiator};

use super::{any_record, echo, key, of_protocol, record, tcp, text, tunnelled};
use crate::formats::{CommunityId, Format};

/// The lines that begin with `#`, and each other line by the names of its fields.
struct Log {
    says: HashMap<String, String>,
    types: HashMap<String, String>,
    rows: Vec<HashMap<String, String>>,
}

fn log(records: &[FlowRecord]) -> Log {
    let text = text(Format::Zeek, records);
    assert!(text.starts_with("#separator \\x09\n") && text.ends_with('\n'));
    let (mut says, mut fields, mut kinds) = (HashMap::new(), Vec::new(), Vec::new());
    let mut rows = Vec::new();
    let split = |line: &str| line.split('\t').map(str::to_owned).collect::<Vec<_>>();
    for line in text.lines().skip(1) {
        assert!(!says.contains_key("close"), "nothing after the close: {line}");
        match line.strip_prefix('#').map(|line| line.split_once('\t').unwrap()) {
            Some(("fields", names)) => fields = split(names),
            Some(("types", names)) => kinds = split(names),
            Some((name, value)) => drop(says.insert(name.to_owned(), value.to_owned())),
            None => {
                let values = split(line);
                assert_eq!(values.len(), fields.len(), "{line}");
                rows.push(fields.iter().cloned().zip(values).collect());
            }
        }
    }
    assert_eq!(fields.len(), kinds.len());
    Log { says, types: fields.into_iter().zip(kinds).collect(), rows }
}

fn expect(record: FlowRecord, expected: &[(&str, &str)]) {
    let log = log(std::slice::from_ref(&record));
    for &(name, value) in expected {
        assert_eq!(log.rows[0][name], value, "{name}");
    }
}

#[test]
fn tcp_has_every_field() {
    let record = tcp();
    expect(
        record.clone(),
        &[
            ("ts", "1700000000.123999"),
            ("id.orig_h", "192.0.2.1"),
            ("id.orig_p", "49152"),
            ("id.resp_h", "198.51.100.2"),
            ("id.resp_p", "443"),
            ("proto", "tcp"),
            ("service", "-"),
            ("duration", "7.332000"),
            ("orig_bytes", "-"),
            ("resp_bytes", "-"),
            ("conn_state", "SF"),
            ("local_orig", "-"),
            ("local_resp", "-"),
            ("missed_bytes", "-"),
            ("history", "ShADadFf"),
            ("orig_pkts", "11"),
            ("orig_ip_bytes", "2101"),
            ("resp_pkts", "12"),
            ("resp_ip_bytes", "18446744073709551615"),
            ("tunnel_parents", "-"),
            ("ip_proto", "6"),
            ("community_id", "1:vXun9A9cW2Ry2J4BkTjoTIYpvAA="),
            ("vlan", "4094"),
            ("inner_vlan", "-"),
            ("orig_l2_addr", "02:00:00:00:00:a1"),
            ("resp_l2_addr", "02:00:00:00:00:b2"),
        ],
    );
    let uid = &log(std::slice::from_ref(&record)).rows[0]["uid"];
    assert!(uid.len() == 18 && uid.starts_with('C'), "{uid}");
    let later = FlowRecord { first_ns: record.first_ns + 1, ..record.clone() };
    assert_ne!(&log(&[later]).rows[0]["uid"], uid);
}

#[test]
fn the_service_has_the_name_of_zeek() {
    for (own, name) in [("tls", "ssl"), ("quic", "quic"), ("stun", "-")] {
        assert_eq!(log(&[of_protocol(own)]).rows[0]["service"], name);
    }
}

#[test]
fn the_header_describes_the_fields() {
    let log = log(&[tcp(), echo()]);
    for (name, value) in [
        ("set_separator", ","),
        ("empty_field", "(empty)"),
        ("unset_field", "-"),
        ("path", "conn"),
        ("open", "2023-11-14-22-13-20"),
        ("close", "2023-11-14-22-13-27"),
    ] {
        assert_eq!(log.says[name], value, "{name}");
    }
    for (name, kind) in [
        ("ts", "time"),
        ("id.orig_h", "addr"),
        ("id.resp_p", "port"),
        ("proto", "enum"),
        ("duration", "interval"),
        ("orig_ip_bytes", "count"),
        ("tunnel_parents", "set[string]"),
        ("inner_vlan", "int"),
    ] {
        assert_eq!(log.types[name], kind, "{name}");
    }
    assert_eq!(log.rows.len(), 2);
}

#[test]
fn without_records_the_log_is_complete() {
    let log = log(&[]);
    assert!(log.rows.is_empty() && log.types.len() == 27);
    let epoch = "1970-01-01-00-00-00";
    assert_eq!((&*log.says["open"], &*log.says["close"]), (epoch, epoch));
}

#[test]
fn ports_of_icmp_are_type_and_code() {
    let unreachable = FlowRecord { icmp_type_code: 3 << 8 | 13, ..echo() };
    expect(
        unreachable,
        &[
            ("id.orig_p", "3"),
            ("id.resp_p", "13"),
            ("proto", "icmp"),
            ("conn_state", "OTH"),
            ("history", "-"),
        ],
    );
    let gre = record(key(47, "10.0.0.1", "10.0.0.2", (0, 0)));
    expect(gre, &[("proto", "unknown_transport"), ("ip_proto", "47"), ("id.orig_p", "0")]);
    let at_once = FlowRecord { last_ns: echo().first_ns, ..echo() };
    expect(at_once, &[("duration", "-")]);
}

/// The host that answers a SYN that was not seen is the responder; `^` shows that the direction was reversed.
#[test]
fn a_reversed_flow_is_marked() {
    expect(
        tunnelled(),
        &[
            ("history", "^hAdD"),
            ("conn_state", "S1"),
            ("orig_l2_addr", "02:00:00:00:00:b2"),
            ("vlan", "100"),
            ("inner_vlan", "7"),
        ],
    );
    let alone = FlowRecord { history: History::of("h"), initiator: Initiator::SynAck, ..tcp() };
    expect(alone, &[("history", "^h"), ("conn_state", "OTH")]);
    let parent = |record| log(&[record]).rows[0]["tunnel_parents"].clone();
    assert_eq!(
        parent(tunnelled()),
        parent(FlowRecord { initiator: Initiator::Syn, ..tunnelled() })
    );
    assert_eq!(parent(tunnelled()).len(), 18);
}

#[test]
fn udp_has_octets_of_payload_if_it_has_a_duration() {
    let udp = |source, destination| FlowRecord {
        octets: [2101, 1000],
        ..record(key(17, source, destination, (49152, 53)))
    };
    let v4 = udp("192.0.2.1", "198.51.100.2");
    let v6 = udp("2001:db8::1", "2001:db8::2");
    for (record, [sent, received]) in [
        (v4.clone(), ["1793", "664"]),
        (v6, ["1573", "424"]),
        (FlowRecord { irregular: true, ..v4.clone() }, ["-", "-"]),
        (FlowRecord { last_ns: v4.first_ns, ..v4 }, ["-", "-"]),
    ] {
        expect(record, &[("orig_bytes", sent), ("resp_bytes", received), ("missed_bytes", "0")]);
    }
}

#[test]
fn udp_states_show_which_end_sent() {
    for (packets, state) in [([1, 1], "SF"), ([1, 0], "S0"), ([0, 1], "SHR")] {
        let record = record(key(17, "10.0.0.1", "10.0.0.2", (5353, 53)));
        expect(FlowRecord { packets, ..record }, &[("conn_state", state), ("proto", "udp")]);
    }
}

proptest! {
    /// Any record has all fields, none of them empty, and its numbers.
    #[test]
    fn any_record_is_a_line(record in any_record()) {
        let log = log(std::slice::from_ref(&record));
        let row = &log.rows[0];
        prop_assert!(row.values().all(|value| !value.is_empty()), "{row:?}");
        prop_assert_eq!(row["id.orig_h"].parse(), Ok(record.key.source()));
        prop_assert_eq!(row["id.resp_h"].parse(), Ok(record.key.destination()));
        prop_assert_eq!(&row["orig_ip_bytes"], &record.octets[0].to_string());
        prop_assert_eq!(&row["resp_pkts"], &record.packets[1].to_string());
        prop_assert_eq!(&row["community_id"], &CommunityId::of(&record).to_string());
    }
}
