//! Facts from payloads at collectors: what ipfixDump and tshark decode must be in the JSON lines of the same run.

use std::collections::BTreeMap;
use std::fs;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ringtap_extract::Kind;
use rustix::net::sockopt::set_socket_recv_buffer_size_force;
use serde_json::Value;

use crate::common::{have, office, output_of, ringtap};

/// The elements of facts: the field of JSON lines, the number, and the type in the registry.
const ELEMENTS: [(&str, &str, &str); 29] = [
    ("application", "96", "string"),
    ("tlsVersion", "6871/288", "unsigned16"),
    ("tlsCipher", "6871/187", "unsigned32"),
    ("ja3", "6871/463", "octetArray"),
    ("ja3s", "6871/465", "octetArray"),
    ("tlsServerName", "6871/294", "string"),
    ("sshClient", "6871/171", "string"),
    ("sshServer", "6871/472", "string"),
    ("dnsResponseCode", "6871/177", "unsigned8"),
    ("dnsQueryType", "6871/175", "unsigned16"),
    ("dnsQueryName", "6871/179", "string"),
    ("dnsAnswers", "6871/302", "ipv4Address"),
    ("dnsAnswers", "6871/303", "ipv6Address"),
    ("httpMethod", "459", "string"),
    ("httpStatus", "457", "unsigned16"),
    ("httpHost", "460", "string"),
    ("httpTarget", "461", "string"),
    ("httpUserAgent", "468", "string"),
    ("httpContentType", "469", "string"),
    ("httpReferer", "6871/115", "string"),
    ("httpLocation", "6871/116", "string"),
    ("dnsId", "6871/226", "unsigned16"),
    ("tlsCertificateSubject", "6871/205", "string"),
    ("tlsCertificateIssuer", "6871/196", "string"),
    ("tlsCertificateNotBefore", "6871/247", "string"),
    ("tlsCertificateNotAfter", "6871/248", "string"),
    ("tlsCertificateKeyBits", "6871/250", "unsigned16"),
    ("tlsCertificateSerial", "6871/244", "octetArray"),
    ("tlsCertificateSha256", "6871/295", "octetArray"),
];

/// Elements that records with facts of several protocols lack.
const OF_ONE_PROTOCOL: [&str; 11] = [
    "469", "6871/115", "6871/116", "6871/226", "6871/205", "6871/196", "6871/247", "6871/248",
    "6871/250", "6871/244", "6871/295",
];

/// The longest text, in octets.
const VALUE_MAX: usize = 512;

/// Values of elements, in order.
type Values = BTreeMap<&'static str, Vec<String>>;

/// The bundled capture, and captures with application data if there are some.
fn captures() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/traces/applications");
    let mut all = vec![office()];
    let Ok(entries) = fs::read_dir(folder) else {
        eprintln!("SKIPPED: no folder of captures with application data next to the project");
        return all;
    };
    let paths = entries.map(|entry| entry.unwrap().path());
    all.extend(paths.filter(|path| path.to_string_lossy().contains(".pcap")));
    all[1..].sort();
    all
}

/// JSON lines, and octets of each protocol.
struct Run {
    records: Vec<Value>,
    file: Vec<u8>,
    udp: Vec<Vec<u8>>,
    netflow9: Vec<Vec<u8>>,
}

fn run(folder: &Path) -> Run {
    let (json, file) = (folder.join("flows.json"), folder.join("flows.ipfix"));
    let sockets = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
    let [udp, netflow9] = sockets.each_ref().map(|one| one.local_addr().unwrap());
    let ended = AtomicBool::new(false);
    let receive = |socket: UdpSocket| {
        // Room for all datagrams, if the reader does not get a core for a time. Needs root.
        let _ = set_socket_recv_buffer_size_force(&socket, 64 << 20);
        socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        let (mut all, mut datagram) = (Vec::new(), [0; 65_536]);
        loop {
            let last = ended.load(Ordering::SeqCst);
            match socket.recv(&mut datagram) {
                Ok(octets) => all.push(datagram[..octets].to_vec()),
                Err(_) if last => return all,
                Err(_) => {}
            }
        }
    };
    std::thread::scope(|scope| {
        let [udp_reader, v9_reader] = sockets.map(|socket| scope.spawn(|| receive(socket)));
        let mut command = ringtap();
        command.args(["monitor", "-q", "--sequential"]);
        for capture in captures() {
            command.arg("-r").arg(capture);
        }
        command.args(["--write", &format!("json:{}", json.display())]);
        for url in [
            format!("ipfix-file:{}", file.display()),
            format!("ipfix://{udp}"),
            format!("netflow9://{netflow9}"),
        ] {
            command.args(["--export", &url]);
        }
        let (_, errors, code) = output_of(&mut command);
        ended.store(true, Ordering::SeqCst);
        let [udp, netflow9] = [udp_reader, v9_reader].map(|reader| reader.join().unwrap());
        assert_eq!(code, 0, "{errors}");
        let lines = fs::read_to_string(&json).unwrap();
        let records = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        Run { records, file: fs::read(&file).unwrap(), udp, netflow9 }
    })
}

/// The text as far as it is exported.
fn cut(text: &str) -> String {
    text[..text.floor_char_boundary(VALUE_MAX)].to_owned()
}

/// The number of a name, as ipfixDump prints it.
fn number(kind: Kind, name: &str) -> String {
    kind.number(name.as_bytes()).unwrap_or(0).to_string()
}

/// The values of a record that its IPFIX record should have.
fn expected(record: &Value) -> Values {
    let mut all = Values::new();
    for (name, element, _) in ELEMENTS {
        let values: Vec<_> = match &record[name] {
            Value::Array(values) => values.clone(),
            Value::Null => Vec::new(),
            one => vec![one.clone()],
        };
        let texts = values.iter().map(|one| match one {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        });
        let values: Vec<_> = texts
            .filter_map(|text| match (name, element) {
                ("tlsVersion", _) => Some(number(Kind::TlsVersion, &text)),
                ("tlsCipher", _) => Some(number(Kind::TlsCipher, &text)),
                ("dnsQueryType", _) => Some(number(Kind::DnsQueryType, &text)),
                ("dnsResponseCode", _) => Some(number(Kind::DnsResponseCode, &text)),
                ("ja3" | "ja3s" | "tlsCertificateSerial" | "tlsCertificateSha256", _) => {
                    Some(format!("0x{text}"))
                }
                (_, "6871/302") => text.parse::<std::net::Ipv4Addr>().ok().map(|ip| ip.to_string()),
                (_, "6871/303") => text.parse::<std::net::Ipv6Addr>().ok().map(|ip| ip.to_string()),
                _ => Some(cut(&text)),
            })
            .collect();
        if !values.is_empty() {
            all.insert(element, values);
        }
    }
    all
}

/// A file of elements for ipfixDump, whose own one lacks newer elements.
fn element_file() -> String {
    let record = |(number, (_, element, kind)): (usize, (&str, &str, &str))| {
        let (enterprise, id) = element.split_once('/').unwrap_or(("0", element));
        format!(
            "<record><name>fact{number}</name><dataType>{kind}</dataType><cert:enterpriseId>{enterprise}\
             </cert:enterpriseId><elementId>{id}</elementId><status>current</status></record>\n"
        )
    };
    let certs = ELEMENTS.into_iter().enumerate().filter(|(_, one)| one.1.contains('/'));
    let records: String = certs.map(record).collect();
    format!(
        "<?xml version=\"1.0\"?>\n<registry xmlns=\"http://www.iana.org/assignments\" \
         xmlns:cert=\"http://www.cert.org/ipfix\" id=\"facts\">\n<registry id=\"elements\">\n{records}</registry>\n</registry>\n"
    )
}

/// The facts of the flow records in IPFIX messages, as ipfixDump prints them.
fn ipfix_dump(messages: &[u8], folder: &Path) -> Vec<Values> {
    let (file, elements) = (folder.join("dumped.ipfix"), folder.join("elements.xml"));
    fs::write(&file, messages).unwrap();
    fs::write(&elements, element_file()).unwrap();
    let mut command = Command::new("ipfixDump");
    command.args(["--data", "--hexdump=32", "-e"]).arg(&elements).arg("--in").arg(&file);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut all = Vec::new();
    let mut list = None;
    for line in text.lines().map(str::trim) {
        if line.starts_with("count:") && line.contains("tid:") {
            let template: u16 = line.split_whitespace().nth(3).unwrap().parse().unwrap();
            // The numbers of options have bit 6.
            let is_flow = template & 1 << 6 == 0;
            all.push(is_flow.then(Values::new));
            list = None;
            continue;
        }
        let Some(Some(values)) = all.last_mut() else { continue };
        if let Some((_, element)) = line.split_once("ie: (") {
            list = element.split_once(')').map(|(element, _)| element);
            continue;
        }
        let Some((head, value)) = line.split_once(" : ").or(line.split_once("  : ")) else {
            continue;
        };
        let element = match head.strip_prefix('(') {
            Some(rest) => rest.split_once(')').map(|(element, _)| element),
            None => list,
        };
        let known = ELEMENTS.iter().find(|(_, own, _)| Some(*own) == element);
        let Some((_, element, kind)) = known else { continue };
        let value = match value.strip_prefix("(len: ").and_then(|rest| rest.split_once(')')) {
            Some((_, value)) => value.trim(),
            None => value.trim(),
        };
        let address = value.parse().map(|ip: std::net::Ipv6Addr| ip.to_string());
        let value = address.as_deref().unwrap_or(value);
        // Without a value a field is empty or 0.
        let is_zero = value == "0" && kind.starts_with("unsigned");
        if !(is_zero || value.is_empty() || value.starts_with("len: 0")) {
            values.entry(element).or_default().push(value.to_owned());
        }
    }
    all.into_iter().flatten().collect()
}

/// A text as ipfixDump prints it.
fn is_printed(text: &str) -> bool {
    text.chars().all(|letter| letter.is_ascii_graphic() || letter == ' ') && text.trim() == text
}

#[test]
fn ipfix_dump_decodes_the_facts_of_json_lines() {
    if !have("ipfixDump") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut compared = BTreeMap::<_, usize>::new();
    let run = run(folder.path());
    for (messages, room) in [(run.file, 3_500), (run.udp.concat(), 800)] {
        let decoded = ipfix_dump(&messages, folder.path());
        assert_eq!(decoded.len(), run.records.len());
        for (record, decoded) in run.records.iter().zip(decoded) {
            let mut expected = expected(record);
            // A response code of 0 is as none.
            expected.retain(|element, values| *element != "6871/177" || *values != ["0"]);
            if protocols(record) > 1 {
                expected.retain(|element, _| !OF_ONE_PROTOCOL.contains(element));
            }
            let octets: usize = expected.values().flatten().map(|value| value.len() + 16).sum();
            let is_whole = octets < room;
            for (_, element, _) in ELEMENTS {
                let none = Vec::new();
                let full = expected.get(element).unwrap_or(&none);
                let got = decoded.get(element).unwrap_or(&none);
                for (got, full) in got.iter().zip(full).filter(|(_, full)| is_printed(full)) {
                    let same = got == full || !is_whole && full.starts_with(got.as_str());
                    assert!(same, "{element}: {got:?} of {record}");
                    *compared.entry(element).or_default() += 1;
                }
                if is_whole && full.iter().all(|text| is_printed(text)) {
                    assert_eq!(got.len(), full.len(), "{element}: {got:?} of {record}");
                }
            }
        }
    }
    println!("values by element: {compared:?}");
    assert!(compared["96"] > 0 && compared["6871/179"] > 0);
}

/// The values of fields that tshark prints for all messages; checks that it has no complaints.
fn tshark<const N: usize>(file: &Path, fields: [&str; N]) -> [Vec<String>; N] {
    let complaints = ["_ws.malformed", "_ws.expert", "cflow.no_template_found"];
    let mut command = Command::new("tshark");
    command.arg("-r").arg(file).args(["-T", "fields", "-E", "occurrence=a"]);
    command.args(["-E", "separator=\x02", "-E", "aggregator=\x01"]);
    command.args(complaints.iter().chain(&fields).flat_map(|field| ["-e", field]));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut all = [(); N].map(|()| Vec::new());
    for line in text.lines() {
        let columns: Vec<_> = line.split('\x02').collect();
        assert_eq!(columns[..3], ["", "", ""]);
        for (values, column) in all.iter_mut().zip(&columns[3..]) {
            // Without a value a field is empty or 0.
            let some = column.split('\x01').filter(|value| !["", "0"].contains(value));
            values.extend(some.map(str::to_owned));
        }
    }
    all
}

/// The protocols with facts of a record: the flow's template has lists alone if there are several.
fn protocols(record: &Value) -> usize {
    let has = |prefixes: &[&str]| {
        let mut names = ELEMENTS.iter().map(|(name, ..)| name);
        names.any(|name| {
            prefixes.iter().any(|own| name.starts_with(own)) && !record[*name].is_null()
        })
    };
    [&["tls", "ja3"][..], &["ssh"], &["dns"], &["http"]].into_iter().filter(|one| has(one)).count()
}

#[test]
fn tshark_decodes_the_first_values_of_json_lines() {
    if !have("tshark") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let elements = ["96", "459", "457", "460", "461", "468"];
    let fields = [
        "cflow.appl_name",
        "cflow.http_request_method",
        "cflow.http_statuscode",
        "cflow.http_request_host",
        "cflow.http_request_target",
        "cflow.http_user_agent",
    ];
    let run = run(folder.path());
    let mut compared = 0;
    // Messages over UDP, one after another, are a file.
    for (messages, room) in [(&run.file, 3_500), (&run.udp.concat(), 800)] {
        let file = folder.path().join("a.ipfix");
        fs::write(&file, messages).unwrap();
        for (element, got) in elements.into_iter().zip(tshark(&file, fields)) {
            let mut got = got.into_iter();
            for record in &run.records {
                let expected = expected(record);
                let octets: usize = expected.values().flatten().map(|value| value.len() + 16).sum();
                let first = expected.get(element).map(|values| values[0].as_str());
                let Some(first) = first.filter(|first| !first.is_empty()) else { continue };
                if element != "96" && protocols(record) > 1 {
                    continue;
                }
                let got = got.next().unwrap_or_else(|| panic!("no {element} of {record}"));
                if is_printed(first) {
                    let same = got == first || octets >= room && first.starts_with(&got);
                    assert!(same, "{element}: {got:?} of {record}");
                    compared += 1;
                }
            }
            assert_eq!(got.next(), None, "{element}");
        }
    }
    println!("{compared} values of IPFIX, {} of NetFlow v9", check_netflow9(&run, folder.path()));
    assert!(compared > 0);
}

/// Compares the labels in NetFlow v9; returns their number.
fn check_netflow9(run: &Run, folder: &Path) -> usize {
    let file = folder.join("v9.pcap");
    fs::write(&file, pcap(&run.netflow9)).unwrap();
    let mut expected = Vec::new();
    for record in &run.records {
        let label = record["application"].as_str().map(str::to_owned);
        let counts = ["packetDeltaCount", "reversePacketDeltaCount"];
        let directions = counts.iter().filter(|name| record[**name].as_u64().unwrap() > 0).count();
        expected.extend(label.into_iter().flat_map(|one| std::iter::repeat_n(one, directions)));
    }
    let ([mut got], count) = (tshark(&file, ["cflow.appl_name"]), expected.len());
    // Records of one message are in several sets.
    got.sort_unstable();
    expected.sort_unstable();
    assert_eq!(got, expected);
    count
}

/// Datagrams to the port of NetFlow in a capture file of raw IP.
fn pcap(datagrams: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 101] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    for datagram in datagrams {
        let length = 28 + datagram.len() as u32;
        for word in [0, 0, length, length] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        out.extend_from_slice(&[0x45, 0]);
        out.extend_from_slice(&(length as u16).to_be_bytes());
        out.extend_from_slice(&[0, 0, 0, 0, 64, 17, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1]);
        for half in [2055, 2055, length as u16 - 20, 0] {
            out.extend_from_slice(&half.to_be_bytes());
        }
        out.extend_from_slice(datagram);
    }
    out
}
