//! Compares the records of DNS answers in all captures with tshark's: owner, class, type, time to live and data.
//!
//! tshark's values are those of its fields. Its types without such fields are compared by the bytes of the data.
//! RINGTAP_DIFFERENCES=1 prints each difference.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use std::path::Path;
use std::process::Command;

use ringtap_extract::Kind;

use crate::reading::{captures, messages};

/// Most bytes of data in a value.
const LONGEST: usize = 1_024;

/// Records and how often each occurs.
type Records = BTreeMap<String, u32>;

/// The records in answers of a capture, found here.
fn found(path: &Path) -> Records {
    let (messages, _) = messages(path);
    let mut all = Records::new();
    for message in messages.iter().filter(|message| message.has(Kind::DnsKind, "answer")) {
        for (_, value) in message.facts.iter().filter(|(kind, _)| *kind == Kind::DnsRecords) {
            *all.entry(String::from_utf8_lossy(value).into_owned()).or_default() += 1;
        }
    }
    all
}

/// A field of PDML: its name and its values as text and as hexadecimal digits.
struct Field {
    name: String,
    show: String,
    value: String,
}

fn attribute(line: &str, name: &str) -> String {
    let Some((_, behind)) = line.split_once(&format!(" {name}=\"")) else { return String::new() };
    let text = behind.split('"').next().unwrap_or_default();
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
}

fn escaped(name: &str) -> String {
    let name = if name == "<Root>" { "." } else { name };
    let mut text = String::new();
    for letter in name.chars() {
        match letter {
            ' ' | '\\' | '\0'..='\x1f' | '\x7f' => text += &format!("\\{:03}", letter as u32),
            _ => text.push(letter),
        }
    }
    text
}

/// A record of tshark in the form of this library.
fn text(fields: &[Field], whole: &str) -> Option<String> {
    let all = |name: &str| -> Vec<&str> {
        fields.iter().filter(|own| own.name == name).map(|own| own.show.as_str()).collect()
    };
    let first = |name: &str| all(name).first().map_or(String::new(), |own| (*own).to_owned());
    let name = |field: &str| escaped(&first(field));
    let plain = |field: &str| match first(field) {
        root if root == "<Root>" => ".".to_owned(),
        other => other,
    };
    let number = |field: &str| {
        let text = first(field);
        match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).unwrap_or(0).to_string(),
            None => text,
        }
    };
    let octets = |field: &str| {
        let own = fields.iter().find(|own| own.name == field);
        own.map_or(String::new(), |own| own.value.clone())
    };
    let kind: u16 = first("dns.resp.type").parse().ok()?;
    let len: usize = first("dns.resp.len").parse().ok()?;
    let data = &whole[whole.len().checked_sub(2 * len)?..];
    let generic = |kind: &str| {
        let digits = &data[..data.len().min(128)];
        (kind.to_owned(), format!("\\# {len} {digits}").trim_end().to_owned())
    };
    let quoted =
        |field: &str| format!("\"{}\"", first(field).replace('\\', "\\\\").replace('"', "\\\""));
    let (kind, data) = match kind {
        1 => ("A".into(), first("dns.a")),
        2 => ("NS".into(), plain("dns.ns")),
        5 => ("CNAME".into(), plain("dns.cname")),
        6 => {
            let parts = [
                name("dns.soa.mname"),
                name("dns.soa.rname"),
                number("dns.soa.serial_number"),
                number("dns.soa.refresh_interval"),
                number("dns.soa.retry_interval"),
                number("dns.soa.expire_limit"),
                number("dns.soa.minimum_ttl") + &number("dns.soa.mininum_ttl"),
            ];
            ("SOA".into(), parts.join(" "))
        }
        12 => ("PTR".into(), plain("dns.ptr.domain_name")),
        15 => {
            let exchange = name("dns.mx.mail_exchange");
            ("MX".into(), format!("{} {exchange}", number("dns.mx.preference")))
        }
        16 => ("TXT".into(), all("dns.txt").concat()),
        28 => (
            "AAAA".into(),
            first("dns.aaaa").parse::<Ipv6Addr>().map_or(String::new(), |own| own.to_string()),
        ),
        33 => {
            let [priority, weight, port] =
                ["dns.srv.priority", "dns.srv.weight", "dns.srv.port"].map(number);
            let target = name("dns.srv.target");
            ("SRV".into(), format!("{priority} {weight} {port} {target}"))
        }
        35 => {
            let [order, preference] = ["dns.naptr.order", "dns.naptr.preference"].map(number);
            let [flags, service, regex] =
                ["dns.naptr.flags", "dns.naptr.service", "dns.naptr.regex"].map(quoted);
            let replacement = name("dns.naptr.replacement");
            let data = format!("{order} {preference} {flags} {service} {regex} {replacement}");
            ("NAPTR".into(), data)
        }
        39 => ("DNAME".into(), plain("dns.dname")),
        43 => {
            let [tag, algorithm, digest] =
                ["dns.ds.key_id", "dns.ds.algorithm", "dns.ds.digest_type"].map(number);
            ("DS".into(), format!("{tag} {algorithm} {digest} {}", octets("dns.ds.digest")))
        }
        52 => {
            let parts = ["certificate_usage", "selector", "matching_type"];
            let parts = parts.map(|part| number(&format!("dns.tlsa.{part}"))).join(" ");
            let digest = octets("dns.tlsa.certificate_association_data");
            ("TLSA".into(), format!("{parts} {digest}"))
        }
        64 | 65 => {
            // tshark 4.0 has the parameters as fields of their own.
            let mut data =
                format!("{} {}", number("dns.svcb.svcpriority"), name("dns.svcb.targetname"));
            for own in fields {
                let (key, values) = match &own.name[..] {
                    "dns.svcb.svcparam.alpn.length" => continue,
                    "dns.svcb.svcparam.alpn" => ("alpn", all("dns.svcb.svcparam.alpn")),
                    "dns.svcb.svcparam.port" => ("port", all("dns.svcb.svcparam.port")),
                    "dns.svcb.svcparam.ipv4hint.ip" => {
                        ("ipv4hint", all("dns.svcb.svcparam.ipv4hint.ip"))
                    }
                    "dns.svcb.svcparam.ipv6hint.ip" => {
                        ("ipv6hint", all("dns.svcb.svcparam.ipv6hint.ip"))
                    }
                    _ => continue,
                };
                if !data.contains(&format!(" {key}=")) {
                    data += &format!(" {key}={}", values.join(","));
                }
            }
            (if kind == 64 { "SVCB".into() } else { "HTTPS".into() }, data)
        }
        257 => {
            let [tag, value] = ["dns.caa.tag", "dns.caa.value"].map(first);
            ("CAA".into(), format!("{} {tag} \"{value}\"", number("dns.caa.flags")))
        }
        10 => generic("NULL"),
        13 => generic("HINFO"),
        38 => generic("A6"),
        46 => generic("RRSIG"),
        48 => generic("DNSKEY"),
        99 => generic("SPF"),
        other => generic(&format!("TYPE{other}")),
    };
    // Longer data are cut here.
    let data = if data.len() > LONGEST { data[..LONGEST].to_owned() + "..." } else { data };
    let class = u32::from_str_radix(first("dns.resp.class").strip_prefix("0x")?, 16).ok()?;
    let class = match class {
        1 => String::new(),
        3 => "CH/".into(),
        254 => "NONE/".into(),
        255 => "ANY/".into(),
        other => format!("CLASS{other}/"),
    };
    // Of SRV the owner is in parts.
    let owner = ["dns.resp.name", "dns.srv.service", "dns.srv.proto", "dns.srv.name"].map(name);
    let owner: Vec<_> = owner.into_iter().filter(|part| !part.is_empty()).collect();
    Some(format!("{} {class}{kind} {} {data}", owner.join("."), first("dns.resp.ttl")))
}

/// The records in answers of a capture, by tshark. `None` without tshark.
fn expected(path: &Path) -> Option<Records> {
    let output = Command::new("tshark")
        .args(["-n", "-o", "ip.defragment:TRUE", "-o", "ipv6.defragment:TRUE"])
        .args(["-Y", "dns.flags.response == 1 && dns.flags.opcode == 0 && dns.count.answers > 0"])
        .args(["-T", "pdml", "-J", "dns mdns llmnr", "-r"])
        .arg(path)
        .output()
        .ok()?;
    let (mut all, mut fields, mut whole) = (Records::new(), Vec::new(), String::new());
    // The level of the list of answers, and of a record in it; 0 if outside.
    let (mut level, mut list, mut record) = (0_usize, 0, 0);
    let mut end = |fields: &mut Vec<Field>, whole: &str| {
        if let Some(text) = text(fields, whole) {
            *all.entry(text).or_default() += 1;
        }
        fields.clear();
    };
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let line = line.trim();
        if line.starts_with("</field") {
            level -= 1;
            if record > 0 && level < record {
                end(&mut fields, &whole);
                record = 0;
            }
            if level < list {
                list = 0;
            }
            continue;
        }
        if line.starts_with("<packet") {
            (level, list, record) = (0, 0, 0);
        }
        if !line.starts_with("<field") {
            continue;
        }
        let [name, show, value] = ["name", "show", "value"].map(|key| attribute(line, key));
        let opens = !line.ends_with("/>");
        level += usize::from(opens);
        if list == 0 && opens && name.is_empty() && show == "Answers" {
            list = level;
        } else if list > 0 && record == 0 && opens {
            (record, whole) = (level, value);
        } else if record > 0 {
            fields.push(Field { name, show, value });
        }
    }
    Some(all)
}

/// Differences that are no faults: of which file, in which records, and why.
const KNOWN: &[(&str, &str, &str)] = &[
    (
        "dns-tunnel-iodine.pcap: ",
        " NULL 0 ",
        "names with invalid UTF-8, which tshark prints with fewer replacement characters",
    ),
    (
        "malformed_dns.pcap: only tshark ",
        "www.xt.com ",
        "an alias longer than a name may be; what follows it in the message is not read",
    ),
    (
        "o055-fuzz-2006-06-26-2594.pcap: only tshark ",
        "1.0.0.127.in-addr.arpa PTR 10000 ",
        "changed bytes: the name does not end where the data ends, or is none",
    ),
];

#[test]
fn records_of_answers_are_those_of_tshark() {
    let files = captures();
    if files.is_empty() {
        println!("SKIPPED: the captures are not on this machine");
        return;
    }
    let verbose = std::env::var_os("RINGTAP_DIFFERENCES").is_some();
    let (mut common, mut differences) = (0, Vec::new());
    for path in &files {
        let Some(theirs) = expected(path) else {
            println!("SKIPPED: tshark is not installed");
            return;
        };
        let own = found(path);
        let file = path.file_name().unwrap().to_string_lossy();
        common += own
            .iter()
            .map(|(text, &count)| count.min(*theirs.get(text).unwrap_or(&0)))
            .sum::<u32>();
        let mut differ = |side: &str, one: &Records, other: &Records| {
            for (text, &count) in one {
                let more = count.saturating_sub(*other.get(text).unwrap_or(&0));
                if more > 0 {
                    differences.push(format!("{file}: {side} {more} {text}"));
                }
            }
        };
        differ("only here", &own, &theirs);
        differ("only tshark", &theirs, &own);
    }
    let is_known = |difference: &&String| {
        KNOWN
            .iter()
            .any(|(file, part, _)| difference.starts_with(file) && difference.contains(part))
    };
    if verbose {
        differences.iter().for_each(|difference| println!("{difference}"));
    }
    let unknown: Vec<_> = differences.iter().filter(|one| !is_known(one)).collect();
    println!(
        "{common} records agree, {} differ for a known reason",
        differences.len() - unknown.len()
    );
    assert!(unknown.is_empty(), "{unknown:#?}");
    assert!(common > 800, "{common}");
}
