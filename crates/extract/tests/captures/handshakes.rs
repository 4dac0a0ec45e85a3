//! Compares handshakes of TLS and headers of proxies in all real captures with tshark: versions, certificates, alerts, resumed
//! sessions. Each difference has a reason here.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::Path;
use std::process::Command;

use ringtap_extract::Kind;
use sha2::{Digest, Sha256};

use crate::reading::{Message, captures, has, messages};

const FIELDS: [&str; 20] = [
    "tcp.srcport",
    "tcp.dstport",
    "tls.handshake.type",
    "tls.handshake.version",
    "tls.handshake.extensions.supported_version",
    "tls.alert_message.desc",
    "tls.resumed",
    "tls.handshake.certificate",
    "x509af.serialNumber",
    "x509af.utcTime",
    "x509af.generalizedTime",
    "x509ce.dNSName",
    "x509sat.uTF8String",
    "x509sat.printableString",
    "x509sat.teletexString",
    "x509sat.bmpString",
    "proxy.src.ipv4",
    "proxy.dst.ipv4",
    "proxy.srcport",
    "proxy.dstport",
];

/// A column and a value.
type Found = BTreeSet<(&'static str, String)>;

/// The ports of both sides, in any order.
fn pair([one, other]: [u16; 2]) -> String {
    format!("{}-{}", one.min(other), one.max(other))
}

fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).into_owned()
}

/// What the extractors find; also the certificates by their digests.
fn own(all: &[Message]) -> (Found, BTreeMap<String, &Message>) {
    let (mut found, mut certificates) = (Found::new(), BTreeMap::new());
    for message in all {
        let first = |kind: Kind| {
            let value = message.facts.iter().find(|(own, _)| *own == kind);
            value.map_or(String::new(), |(_, value)| text(value))
        };
        let ends = pair(message.ports);
        match (message.protocol.as_slice(), first(Kind::TlsKind).as_str()) {
            (b"tls", "client") => {
                found.insert(("client", format!("{ends} {}", first(Kind::TlsClientVersion))));
            }
            (b"tls", "server") => {
                found.insert(("server", format!("{ends} {}", first(Kind::TlsVersion))));
            }
            (b"tls", "alert") => {
                let alert = first(Kind::TlsClientAlerts) + &first(Kind::TlsServerAlerts);
                found.insert(("alert", format!("{ends} {alert}")));
            }
            (b"tls", "certificate") => {
                let facts = [
                    Kind::TlsCertificateSha256,
                    Kind::TlsCertificateChain,
                    Kind::TlsCertificateSerial,
                    Kind::TlsCertificateNotBefore,
                    Kind::TlsCertificateNotAfter,
                ];
                found.insert(("certificate", format!("{ends} {}", facts.map(first).join(" "))));
                certificates.insert(first(Kind::TlsCertificateSha256), message);
            }
            (b"proxy", _) => {
                let facts = [
                    Kind::ProxySourceAddress,
                    Kind::ProxyDestinationAddress,
                    Kind::ProxySourcePort,
                    Kind::ProxyDestinationPort,
                ];
                found.insert(("proxy", facts.map(first).join(" ")));
            }
            _ => {}
        }
        if ["session", "ticket"].contains(&first(Kind::TlsResumption).as_str()) {
            found.insert(("resumed", ends));
        }
    }
    (found, certificates)
}

/// Names of the alerts that occur.
fn alert(description: &str) -> String {
    let name = match description {
        "0" => "close_notify",
        "40" => "handshake_failure",
        "42" => "bad_certificate",
        "46" => "certificate_unknown",
        "48" => "unknown_ca",
        "70" => "protocol_version",
        "112" => "unrecognized_name",
        other => return format!("alert {other}"),
    };
    name.to_owned()
}

fn version(number: &str) -> String {
    let name = match number {
        "0x0002" => "SSL 2.0",
        "0x0300" => "SSL 3.0",
        "0x0301" => "TLS 1.0",
        "0x0302" => "TLS 1.1",
        "0x0303" => "TLS 1.2",
        "0x0304" => "TLS 1.3",
        draft if draft.starts_with("0x7f") => {
            let draft = u16::from_str_radix(&draft[4..], 16).unwrap();
            return format!("TLS 1.3 draft-{draft}");
        }
        other => return other.to_owned(),
    };
    name.to_owned()
}

/// A time of tshark, `2013-03-13 00:00:37 (UTC)`, as ISO 8601.
fn time(text: &str) -> String {
    text.trim_end_matches(" (UTC)").replacen(' ', "T", 1) + "Z"
}

fn is_grease(number: &str) -> bool {
    number.len() == 6 && number.ends_with('a') && number[2..4] == number[4..]
}

/// Whether a handshake of TLS or SSL, or a header of a proxy, may begin with these bytes.
fn may_begin(bytes: &[u8]) -> bool {
    matches!(
        bytes,
        [0x16, 3, 0..=4, ..] | [0x80..=0x8f, _, 1, 0, 2] | [0x80..=0x8f, _, 1, 3, 0..=4]
    ) || bytes == b"PROXY"
        || bytes == b"\r\n\r\n\0"
}

/// Runs tshark.
fn tshark(path: &Path) -> Vec<Vec<Vec<String>>> {
    let mut command = Command::new("tshark");
    let filter = "tcp and (tls.handshake.type in {1,2,11} or tls.alert_message.desc or tls.resumed or proxy)";
    command.args(["-o", "tcp.reassemble_out_of_order:TRUE"]);
    command.args(["-n", "-Y", filter, "-T", "fields", "-E", "aggregator=\u{1}", "-r"]).arg(path);
    FIELDS.iter().for_each(|field| _ = command.args(["-e", field]));
    let output = command.output().expect("tshark, which scripts/setup-test.sh installs");
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    let values = |field: &str| {
        let values = field.split('\u{1}').filter(|value| !value.is_empty());
        values.map(str::to_owned).collect()
    };
    lines
        .lines()
        .map(|line| line.split('\t').map(values).collect::<Vec<Vec<String>>>())
        .filter(|line| line.len() == FIELDS.len())
        .collect()
}

fn digest(hexadecimal: &str) -> String {
    let pairs = hexadecimal.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
    let bytes: Vec<u8> = pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect();
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What tshark finds; compares names in certificates.
fn theirs(path: &Path, certificates: &BTreeMap<String, &Message>) -> Found {
    let mut found = Found::new();
    for packet in tshark(path) {
        let of = |field: &str| &packet[FIELDS.iter().position(|own| *own == field).unwrap()];
        let port = |field: &str| of(field).last().map_or(0, |port| port.parse().unwrap());
        let ports: [u16; 2] = [port("tcp.srcport"), port("tcp.dstport")];
        let ends = pair(ports);
        let types: Vec<&str> = of("tls.handshake.type").iter().map(String::as_str).collect();
        let offered: Vec<&String> = of("tls.handshake.extensions.supported_version")
            .iter()
            // Facebook's own version is no newer one.
            .filter(|number| !is_grease(number) && *number != "0xfb1a")
            .collect();
        let legacy = of("tls.handshake.version");
        // Packets with several hellos are not compared.
        let is = |kind: &str| types.iter().filter(|own| **own == kind).count() == 1;
        if legacy.len() == 1 {
            let newest = offered.iter().max().map_or(&legacy[0], |newest| newest);
            for (kind, column) in [("1", "client"), ("2", "server")] {
                if is(kind) {
                    found.insert((column, format!("{ends} {}", version(newest))));
                }
            }
        }
        for description in of("tls.alert_message.desc") {
            found.insert(("alert", format!("{ends} {}", alert(description))));
        }
        // tshark also takes any change of cipher spec of a server for a resumed session if it saw no ServerHelloDone: in
        // TLS 1.3, and where packets are missing.
        if !of("tls.resumed").is_empty() && is("2") {
            found.insert(("resumed", ends.clone()));
        }
        if let Some(source) = of("proxy.src.ipv4").first() {
            let rest = ["proxy.dst.ipv4", "proxy.srcport", "proxy.dstport"];
            let rest = rest.map(|field| of(field)[0].clone()).join(" ");
            found.insert(("proxy", format!("{source} {rest}")));
        }
        let chain = of("tls.handshake.certificate");
        if is("11") && !chain.is_empty() {
            let sha256 = digest(&chain[0]);
            let times = of("x509af.utcTime");
            let [from, to] = [0, 1].map(|at| times.get(at).map_or(String::new(), |own| time(own)));
            let serial = of("x509af.serialNumber").first().cloned().unwrap_or_default();
            let serial = serial.trim_start_matches("00");
            found.insert((
                "certificate",
                format!("{ends} {sha256} {} {serial} {from} {to}", chain.len()),
            ));
            if let Some(message) = certificates.get(&sha256) {
                compare_names(message, of("x509ce.dNSName"), |name| {
                    let strings = ["uTF8String", "printableString", "teletexString", "bmpString"];
                    strings
                        .iter()
                        .any(|kind| of(&format!("x509sat.{kind}")).contains(&name.to_owned()))
                });
            }
        }
    }
    found
}

/// The names of hosts are the first ones that tshark shows, in order; the common names are among its strings.
fn compare_names(message: &Message, hosts: &[String], is_string: impl Fn(&str) -> bool) {
    let of = |kind: Kind| {
        let facts = message.facts.iter().filter(move |(own, _)| *own == kind);
        facts.map(|(_, value)| text(value)).collect::<Vec<_>>()
    };
    let is_host = |name: &String| name.parse::<IpAddr>().is_err() && !name.contains(['@', '/']);
    let own: Vec<_> = of(Kind::TlsCertificateNames).into_iter().filter(is_host).collect();
    assert!(hosts.starts_with(&own), "{own:?} {hosts:?}");
    let names = [of(Kind::TlsCertificateSubject), of(Kind::TlsCertificateIssuer)].concat();
    names.iter().for_each(|name| assert!(is_string(name), "{name}"));
}

/// Differences: the beginning of the file's name, of the column and of the value, and the reason.
const DIFFERENCES: &[(&str, &str, &str, &str)] = &[
    (
        "443-opvn",
        "",
        "1194-52973",
        "hellos within OpenVPN over TCP, which are in no record of the stream",
    ),
    (
        "heuristic_tcp_ack_payload",
        "",
        "443-",
        "acknowledgements carry stray bytes, so tshark takes the segments for out of order",
    ),
    ("ookla", "", "8080-", "tshark takes the port for HTTP"),
    ("rdp_over_tls", "", "3389-", "tshark looks for no TLS within RDP"),
    ("o004-gnutella", "", "6888-", "tshark knows no protocol of the port"),
    ("ipv6-l", "client", "443-40000", "tshark reads no payload of a packet with length 0"),
    ("tls_2_reasms_b", "server", "443-37658", "a version of Facebook's own"),
    ("o005-teams", "certificate", "443-", "segments of servers' flights are out of order"),
    ("proxy-v2-same-segment", "", "", "tshark recognises no header of version 2 on this port"),
];

#[test]
fn handshakes_are_those_of_tshark() {
    let files = captures();
    if files.is_empty() {
        println!("SKIPPED: the captures are not on this machine");
        return;
    }
    let (mut table, mut unknown) = (BTreeMap::<_, [usize; 3]>::new(), Vec::new());
    for path in &files {
        let (all, _) = messages(path);
        let (own, certificates) = own(&all);
        if own.is_empty() && !has(path, may_begin) {
            continue;
        }
        let theirs = theirs(path, &certificates);
        let name = path.file_name().unwrap().to_str().unwrap();
        let mut differ = |who: &str, (column, value): &(&str, String)| {
            let known = DIFFERENCES.iter().any(|(file, of, start, _)| {
                name.starts_with(file) && column.starts_with(of) && value.starts_with(start)
            });
            if !known {
                unknown.push(format!("{name}: {column} {who} {value}"));
            }
        };
        own.difference(&theirs).for_each(|value| differ("more", value));
        theirs.difference(&own).for_each(|value| differ("missing", value));
        for (column, value) in own.union(&theirs) {
            let [common, more, missing] = table.entry(*column).or_default();
            match (
                own.contains(&(*column, value.clone())),
                theirs.contains(&(*column, value.clone())),
            ) {
                (true, true) => *common += 1,
                (true, false) => *more += 1,
                _ => *missing += 1,
            }
        }
    }
    for (column, [common, more, missing]) in &table {
        println!("{column:12} {common:5} common, {more:3} more, {missing:3} missing");
    }
    assert!(unknown.is_empty(), "{}", unknown.join("\n"));
}
