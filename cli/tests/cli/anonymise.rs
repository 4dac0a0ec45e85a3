//! Tests of `--anonymise`: no output has an address or a name of the capture, and all arrangements agree.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use assert_cmd::Command;
use parquet::file::reader::{FileReader, SerializedFileReader};
use serde_json::Value;

use crate::common::{captures, office, output_of, ringtap};

/// Fields with addresses, and fields with names or texts.
const ADDRESSES: [&str; 10] = [
    "sourceIPv4Address",
    "destinationIPv4Address",
    "sourceIPv6Address",
    "destinationIPv6Address",
    "tunnelSourceIPv4Address",
    "tunnelDestinationIPv4Address",
    "tunnelSourceIPv6Address",
    "tunnelDestinationIPv6Address",
    "sourceMacAddress",
    "destinationMacAddress",
];
const NAMES: [&str; 9] = [
    "tlsServerName",
    "dnsQueryName",
    "dnsAnswers",
    "httpHost",
    "httpTarget",
    "httpUserAgent",
    "sshClient",
    "sshServer",
    "dhcpHostname",
];
/// Shorter names may occur in other words.
const SHORTEST: usize = 8;

/// A folder with a key that only its owner can read.
fn with_key(byte: u8) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    write_key(&folder.path().join("key"), &[byte; 32], 0o600);
    folder
}

fn write_key(path: &Path, key: &[u8], mode: u32) {
    fs::write(path, key).unwrap();
    fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

fn monitor(folder: &Path, capture: &Path, flags: &[&str]) -> Command {
    let mut command = ringtap();
    command.current_dir(folder).args(["monitor", "-r"]).arg(capture).args(flags);
    command
}

fn succeed(command: &mut Command) -> (String, String) {
    let (out, err, code) = output_of(command);
    assert_eq!(code, 0, "{command:?}: {err}");
    (out, err)
}

fn objects(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The texts of a field that is a text or a list of texts.
fn texts(object: &Value, field: &str) -> Vec<String> {
    let value = &object[field];
    let one = value.as_str().into_iter();
    let several = value.as_array().into_iter().flatten().filter_map(Value::as_str);
    one.chain(several).map(str::to_owned).collect()
}

/// Whether `--watch` accepts it.
fn is_entry(entry: &str) -> bool {
    ringtap_enrich::WatchList::parse(entry.as_bytes()).is_ok()
}

/// The words of a text that may be addresses.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !(letter.is_ascii_alphanumeric() || ".:".contains(letter)))
        .flat_map(|word| [word, word.trim_end_matches([':', '.'])])
}

/// All values of a Parquet file as text.
fn parquet_text(file: &Path) -> String {
    let reader = SerializedFileReader::new(fs::File::open(file).unwrap()).unwrap();
    let rows = reader.get_row_iter(None).unwrap();
    rows.map(|row| row.unwrap().to_string() + "\n").collect()
}

#[test]
fn no_output_has_an_address_or_a_name_of_the_capture() {
    let mut seen = 0;
    for capture in captures().into_iter().take(40) {
        let folder = with_key(1);
        let at = |name: &str| folder.path().join(name);
        let plain = [
            "-q",
            "--write",
            "json:plain",
            "--events",
            "json:events",
            "--export=ipfix-file:plain.ipfix",
        ];
        succeed(&mut monitor(folder.path(), &capture, &plain));
        let (mut addresses, mut names) = (BTreeSet::new(), BTreeSet::new());
        let mut pairs = BTreeSet::new();
        for object in objects(&at("plain")).into_iter().chain(objects(&at("events"))) {
            addresses.extend(ADDRESSES.iter().flat_map(|field| texts(&object, field)));
            names.extend(NAMES.iter().flat_map(|field| texts(&object, field)));
            let ends =
                ["sourceIPv4Address", "destinationIPv4Address"].map(|end| texts(&object, end));
            pairs.insert(ends.concat());
        }
        names.retain(|name| name.len() >= SHORTEST && !addresses.contains(name));
        // They identify nothing.
        addresses.remove("ff:ff:ff:ff:ff:ff");
        addresses.remove("00:00:00:00:00:00");

        // Some of them are watched.
        let entries =
            addresses.iter().filter(|address| !address.contains("::") || address.len() < 17);
        let dotted =
            names.iter().filter(|name| name.contains('.') && !name.contains(['/', ' ', ':']));
        let list: Vec<&str> =
            entries.chain(dotted).map(String::as_str).filter(|entry| is_entry(entry)).collect();
        fs::write(at("list"), list.join("\n")).unwrap();
        fs::create_dir(at("zeek")).unwrap();
        let flags = [
            "--anonymise=key",
            "--watch=list",
            "--analyses=all,names,tcp,passive_dns,activity",
            "--interval=10s",
            "--digest",
            "--scan-threshold=3",
            "--alert=src-peers=1",
            "--alert=dst-pps=1",
            "--write=json:a.json",
            "--write=csv:a.csv",
            "--write=eve:a.eve",
            "--write=zeek:a.zeek",
            "--write=parquet:a.parquet",
            "--events=json:e.json",
            "--events=eve:e.eve",
            "--events=zeek:zeek",
            "--export=ipfix-file:a.ipfix",
            "--alert-to=json:a.alerts",
            "--alert-to=stderr",
        ];
        let (json, alerts) =
            succeed(monitor(folder.path(), &capture, &flags).args(["--report", "json"]));
        let flags = [
            "--anonymise=key",
            "--watch=list",
            "--analyses=all,names,tcp,passive_dns,activity",
            "-q",
        ];
        let (text, _) = succeed(&mut monitor(folder.path(), &capture, &flags));
        let read = |name: &str| fs::read_to_string(at(name)).unwrap();
        let texts = [
            ("report", json),
            ("alerts", alerts),
            ("text", text),
            ("parquet", parquet_text(&at("a.parquet"))),
        ];
        let files = [
            "a.json",
            "a.csv",
            "a.eve",
            "a.zeek",
            "a.alerts",
            "e.json",
            "e.eve",
            "zeek/dns.log",
            "zeek/http.log",
            "zeek/ssl.log",
        ];
        for (output, text) in texts.into_iter().chain(files.map(|file| (file, read(file)))) {
            let shown = capture.display();
            if let Some(address) = words(&text).find(|word| addresses.contains(*word)) {
                panic!("{shown}: {output} has the address {address}");
            }
            if let Some(name) = names.iter().find(|name| text.contains(name.as_str())) {
                panic!("{shown}: {output} has the name {name}");
            }
            seen += text.len();
        }
        // Both addresses of IPv4 are adjacent in an IPFIX record.
        let adjacent = |file: &str| {
            let bytes = fs::read(at(file)).unwrap();
            let found = bytes.windows(8).map(<[u8]>::to_vec).collect::<BTreeSet<_>>();
            let octets = |ends: &Vec<String>| {
                ends.iter()
                    .flat_map(|end| end.parse::<std::net::Ipv4Addr>().unwrap().octets())
                    .collect()
            };
            pairs.iter().filter(|ends| found.contains::<Vec<u8>>(&octets(ends))).count()
        };
        assert_eq!(adjacent("a.ipfix"), 0, "{}", capture.display());
        assert!(pairs.iter().all(|ends| ends.is_empty()) || adjacent("plain.ipfix") > 0);
    }
    assert!(seen > 1 << 20, "{seen} bytes");
}

/// Also the digest, which is of the replaced addresses and names.
#[test]
fn all_arrangements_agree_and_keys_differ() {
    for capture in captures().into_iter().take(6) {
        let (folder, other) = (with_key(1), with_key(2));
        let run = |folder: &Path, name: &str, flags: &[&str]| {
            let write = [format!("--write=json:{name}"), format!("--events=json:{name}.events")];
            let mut command =
                monitor(folder, &capture, &["-q", "--report=json", "--digest", "--anonymise=key"]);
            let (report, _) = succeed(command.args(write).args(flags));
            let report: Value = serde_json::from_str(&report).unwrap();
            assert_eq!(report["plan"]["anonymise"], true);
            let mut lines = [name.to_owned(), format!("{name}.events")].map(|file| {
                let text = fs::read_to_string(folder.join(file)).unwrap();
                text.lines().map(str::to_owned).collect::<Vec<_>>()
            });
            lines.iter_mut().for_each(|lines| lines.sort());
            (report["digest"].clone(), report["talkers"].clone(), lines)
        };
        let reference = run(folder.path(), "reference", &["--sequential"]);
        for (number, flags) in [
            &["--skeleton=multi-queue", "--queues=3"][..],
            &["--skeleton=farm", "--workers=3", "--seed=7"],
            &["--skeleton=pipeline", "--workers=2"],
        ]
        .into_iter()
        .enumerate()
        {
            let found = run(folder.path(), &format!("run{number}"), flags);
            assert!(found == reference, "{}, {flags:?}", capture.display());
        }
        let found = run(other.path(), "other", &[]);
        assert_ne!(found.0, reference.0, "{}", capture.display());
    }
}

#[test]
fn the_key_comes_from_a_file_that_others_cannot_read() {
    let folder = with_key(3);
    let at = |name: &str| folder.path().join(name);
    write_key(&at("open"), &[3; 32], 0o644);
    write_key(&at("short"), b"secret", 0o600);
    write_key(&at("digits"), ("03".repeat(32) + "\n").as_bytes(), 0o600);
    let run = |flags: &[&str]| output_of(&mut monitor(folder.path(), &office(), flags));
    for (key, reason) in [
        ("open", "every user can read it: chmod 600 open"),
        ("short", "not a key: use 32 bytes or 64 hexadecimal digits"),
        ("missing", "No such file"),
    ] {
        let (_, errors, code) = run(&["--anonymise", key]);
        assert_eq!(code, 2, "{key}");
        let shown = format!("error: reading the key in {key}: {reason}");
        assert!(errors.starts_with(&shown), "{errors}");
    }
    let digest = |key: &str| {
        let (report, ..) = run(&["-q", "--digest", "--anonymise", key]);
        report.lines().last().unwrap().to_owned()
    };
    assert_eq!(digest("digits"), digest("key"));
    fs::write(at("conf.toml"), "anonymise = \"key\"\n").unwrap();
    let (plan, ..) = run(&["--config", "conf.toml", "--dry-run"]);
    assert!(plan.contains("anonymised  addresses and names, in all outputs"), "{plan}");
}

/// Filters may contain addresses.
#[test]
fn the_filter_is_not_shown() {
    let folder = with_key(4);
    for form in ["text", "json"] {
        let flags = ["--anonymise=key", "-f", "net 10.77.0.0/16", "--report", form];
        let (report, errors, code) = output_of(&mut monitor(folder.path(), &office(), &flags));
        if errors.contains("libpcap, which cannot be loaded") {
            return eprintln!("SKIPPED: libpcap is not installed");
        }
        assert_eq!(code, 0, "{errors}");
        assert!(!report.contains("10.77") && report.contains("not shown"), "{report}");
    }
}
