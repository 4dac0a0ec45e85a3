//! The application protocol of a flow in the spelling of Suricata and Zeek: the first one recognised in its payloads
//! for which they have a name.

use ringtap_flow::{FlowRecord, Kind};

/// Names of extractors, of Suricata's `app_proto` and of Zeek's `service`; empty if the program has no name for it.
const NAMES: [Names; 19] = [
    ("tls", "tls", "ssl"),
    ("dtls", "tls", "ssl"),
    ("quic", "quic", "quic"),
    ("dns", "dns", "dns"),
    ("mdns", "mdns", "dns"),
    ("llmnr", "dns", "dns"),
    ("http", "http", "http"),
    ("ssh", "ssh", "ssh"),
    ("dhcp", "dhcp", "dhcp"),
    ("dhcpv6", "dhcp", "dhcp"),
    ("ntp", "ntp", "ntp"),
    ("sip", "sip", "sip"),
    ("smtp", "smtp", "smtp"),
    ("ftp", "ftp", "ftp"),
    ("pop3", "pop3", "pop3"),
    ("imap", "imap", "imap"),
    ("bittorrent", "", "bittorrent"),
    ("rdp", "rdp", "rdp"),
    ("snmp", "snmp", "snmp"),
];

/// The value of `app_proto` in EVE.
pub(crate) fn app_proto(record: &FlowRecord) -> Option<&'static str> {
    first(record, |names| names.1)
}

/// The value of `service` in Zeek's `conn.log`.
pub(crate) fn service(record: &FlowRecord) -> Option<&'static str> {
    first(record, |names| names.2)
}

type Names = (&'static str, &'static str, &'static str);

fn first(record: &FlowRecord, name: fn(&Names) -> &'static str) -> Option<&'static str> {
    record.facts.values(Kind::Protocol).find_map(|protocol| {
        let names = NAMES.iter().find(|names| names.0.as_bytes() == protocol)?;
        Some(name(names)).filter(|name| !name.is_empty())
    })
}
