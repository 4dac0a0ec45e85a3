//! The application protocol of a flow in the spelling of Suricata and Zeek: the first one recognised in its payloads.

use ringtap_flow::{FlowRecord, Kind};

/// Names of extractors, of Suricata's `app_proto` and of Zeek's `service`; empty if the program has no name for it.
const NAMES: [(&str, &str, &str); 15] = [
    ("tls", "tls", "ssl"),
    ("quic", "quic", "quic"),
    ("dns", "dns", "dns"),
    ("http", "http", "http"),
    ("ssh", "ssh", "ssh"),
    ("dhcp", "dhcp", "dhcp"),
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
    names(record).map(|names| names.1).filter(|name| !name.is_empty())
}

/// The value of `service` in Zeek's `conn.log`.
pub(crate) fn service(record: &FlowRecord) -> Option<&'static str> {
    names(record).map(|names| names.2)
}

fn names(record: &FlowRecord) -> Option<&'static (&'static str, &'static str, &'static str)> {
    let first = record.facts.values(Kind::Protocol).next()?;
    NAMES.iter().find(|names| names.0.as_bytes() == first)
}
