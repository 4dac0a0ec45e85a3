//! Tests of record formats with other readers: DuckDB, Suricata's schema, zeek-cut. Their counts
//! must equal those of the report.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use parquet::file::reader::{FileReader, SerializedFileReader};
use serde_json::{Value, json};

use crate::common::{captures, have, office, output_of, ringtap};

/// The lines of a text format that are records.
fn lines(text: &str) -> Vec<&str> {
    let header = |line: &&str| line.starts_with('#') || line.starts_with("flowStart");
    text.lines().filter(|line| !header(line)).collect()
}

/// The number of records in a file of this format; panics if the file is incomplete.
pub(crate) fn records(format: &str, file: &Path) -> u64 {
    if format == "parquet" {
        let reader = SerializedFileReader::new(fs::File::open(file).unwrap()).unwrap();
        return reader.metadata().file_metadata().num_rows().try_into().unwrap();
    }
    let text = fs::read_to_string(file).unwrap();
    assert!(text.is_empty() || text.ends_with('\n'));
    if format == "zeek" {
        assert_eq!(text.matches("#fields\t").count(), 1);
        assert!(text.lines().last().unwrap().starts_with("#close\t"), "{}", file.display());
        assert_eq!(text.matches("#close\t").count(), 1);
    }
    lines(&text).len() as u64
}

/// Monitors each capture into a file of this format and a file of JSON lines. Returns the reports
/// by file name.
fn monitored(format: &str, folder: &Path, captures: &[PathBuf]) -> BTreeMap<String, Value> {
    let one = |(number, capture): (usize, &PathBuf)| {
        let name = format!("{number}.{format}");
        let mut command = ringtap();
        command.current_dir(folder).args(["monitor", "-q", "--report", "json", "-r"]).arg(capture);
        command.args(["--write", &format!("{format}:{name}")]);
        command.args(["--write", &format!("json:{name}.json")]);
        let (report, errors, code) = output_of(&mut command);
        assert_eq!(code, 0, "{}: {errors}", capture.display());
        (name, serde_json::from_str(&report).unwrap())
    };
    captures.iter().enumerate().map(one).collect()
}

/// The path of a tool that scripts/setup-test.sh installs; prints a `SKIPPED` line if it is
/// missing.
pub(crate) fn tool(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/test-tools").join(name);
    if !path.exists() {
        eprintln!("SKIPPED: no {name}; scripts/setup-test.sh fetches it");
        return None;
    }
    Some(path)
}

/// Runs a Python script in a folder and parses its output as JSON.
pub(crate) fn python(script: &str, folder: &Path, arguments: &[&Path]) -> Option<Value> {
    let mut command = Command::new(tool("venv/bin/python")?);
    let output = command.current_dir(folder).arg("-c").arg(script).args(arguments).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

#[test]
fn duckdb_counts_equal_those_of_the_report() {
    const SCRIPT: &str = "
import duckdb, glob, json
answer = {}
for name in glob.glob('*.parquet'):
    sums = '''select count(*), sum(packetDeltaCount + reversePacketDeltaCount)::bigint,
        sum(octetDeltaCount + reverseOctetDeltaCount)::bigint,
        count(*) filter (communityId like '1:%' and flowEndMilliseconds >= flowStartMilliseconds) from'''
    answer[name] = duckdb.sql(f\"{sums} '{name}'\").fetchall()[0]
types = duckdb.sql(\"describe select * from '0.parquet'\").fetchall()
print(json.dumps({'answer': answer, 'types': dict(row[:2] for row in types)}))
";
    let folder = tempfile::tempdir().unwrap();
    let reports = monitored("parquet", folder.path(), &captures());
    let Some(found) = python(SCRIPT, folder.path(), &[]) else { return };
    for (name, report) in &reports {
        let row = &found["answer"][name];
        let json = fs::read_to_string(folder.path().join(format!("{name}.json"))).unwrap();
        let json: Vec<Value> =
            json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let sum = |fields: [&str; 2]| -> u64 {
            let both = json.iter().flat_map(|record| fields.map(|field| &record[field]));
            both.map(|value| value.as_u64().unwrap()).sum()
        };
        let packets = sum(["packetDeltaCount", "reversePacketDeltaCount"]);
        let octets = sum(["octetDeltaCount", "reverseOctetDeltaCount"]);
        assert_eq!((&row[0], &row[3]), (&report["flows"]["records"], &row[0]), "{name}");
        if !json.is_empty() {
            assert_eq!(row.as_array().unwrap()[1..3], [packets, octets].map(Value::from), "{name}");
        }
        if name == "0.parquet" {
            let ip = |what: &str| report["packets"][what].as_u64().unwrap();
            assert_eq!(packets, ip("ipv4") + ip("ipv6"));
            assert_eq!(row[2], report["octets"]["ip"]);
        }
    }
    for (name, kind) in [
        ("flowStartMilliseconds", "TIMESTAMP WITH TIME ZONE"),
        ("sourceIPAddress", "VARCHAR"),
        ("sourceTransportPort", "USMALLINT"),
        ("protocolIdentifier", "UTINYINT"),
        ("octetDeltaCount", "UBIGINT"),
        ("mplsTopLabel", "UINTEGER"),
        ("history", "VARCHAR"),
        ("tlsServerName", "VARCHAR"),
        ("dnsQueryName", "VARCHAR[]"),
        ("httpStatus", "UBIGINT[]"),
        ("dnsResponseMicroseconds", "UBIGINT"),
    ] {
        assert_eq!(found["types"][name], kind, "{name}");
    }
    assert_eq!(found["types"].as_object().unwrap().len(), 132);
}

#[test]
fn eve_records_match_the_schema_of_suricata() {
    const SCRIPT: &str = "
import glob, json, jsonschema, sys
schema = json.load(open(sys.argv[1]))
validator = jsonschema.Draft202012Validator(schema)
accepts_anything = validator.is_valid({'timestamp': '2023-11-14T22:13:20.123456+0000', 'event_type': 'flow', 'no_such': 1})
events, errors, protocols = {}, [], set()
for name in glob.glob('*.eve'):
    lines = open(name).read().splitlines()
    events[name] = len(lines)
    for number, line in enumerate(lines):
        event = json.loads(line)
        # Validation is slow, so only the first TCP flows are validated.
        if number > 500 and event['proto'] == 'TCP':
            continue
        protocols.add(event['proto'])
        errors += [f'{name}: {error.message}' for error in validator.iter_errors(event)]
print(json.dumps({'events': events, 'errors': errors[:10], 'protocols': sorted(protocols),
    'accepts_anything': accepts_anything}))
";
    let folder = tempfile::tempdir().unwrap();
    let reports = monitored("eve", folder.path(), &captures());
    let Some(schema) = tool("eve-schema.json") else { return };
    let Some(found) = python(SCRIPT, folder.path(), &[&schema]) else { return };
    assert_eq!((&found["errors"], &found["accepts_anything"]), (&json!([]), &json!(false)));
    for (name, report) in &reports {
        assert_eq!(found["events"][name], report["flows"]["records"], "{name}");
    }
    let protocols = found["protocols"].as_array().unwrap();
    assert!(["TCP", "UDP", "ICMP"].iter().all(|&name| protocols.contains(&json!(name))));
}

#[test]
fn zeek_cut_reads_the_log() {
    let cutters = ["zeek-cut", "bro-cut"];
    let Some(cutter) = cutters.into_iter().find(|tool| have(tool)) else { return };
    let folder = tempfile::tempdir().unwrap();
    let reports = monitored("zeek", folder.path(), &[office()]);
    let log = folder.path().join("0.zeek");
    let mut command = Command::new(cutter);
    command.args(["id.resp_p", "proto", "conn_state", "orig_pkts", "resp_pkts", "uid"]);
    let output = command.stdin(fs::File::open(&log).unwrap()).output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
    let report = &reports["0.zeek"];
    assert_eq!(rows.len() as u64, report["flows"]["records"].as_u64().unwrap());
    let packets = rows.iter().flat_map(|row| [row[3], row[4]]).map(|n| n.parse::<u64>().unwrap());
    let ip = |what: &str| report["packets"][what].as_u64().unwrap();
    assert_eq!(packets.sum::<u64>(), ip("ipv4") + ip("ipv6"));
    assert!(rows.iter().all(|row| row[5].starts_with('C') && row[5].len() == 18));
    assert!(rows.iter().any(|row| row[1] == "udp" && row[2] == "SF" && row[0] == "53"));
}

#[test]
fn records_do_not_depend_on_the_arrangement() {
    let folder = tempfile::tempdir().unwrap();
    for format in ["json", "csv", "eve", "zeek"] {
        let [alone, three] = ["--sequential", "-w3"].map(|arrangement| {
            let mut command = ringtap();
            command.current_dir(&folder).args(["monitor", "-q", arrangement, "-r"]).arg(office());
            let (out, errors, code) = output_of(command.args(["--write", &format!("{format}:-")]));
            assert!(code == 0 && errors.contains("Flows"), "{errors}");
            let mut lines: Vec<_> = lines(&out).into_iter().map(str::to_owned).collect();
            lines.sort();
            lines
        });
        assert!(alone.len() > 1000);
        assert!(alone == three, "{format}");
    }
}

#[test]
fn a_full_disk_is_an_error_and_a_closed_pipe_is_not() {
    let full = Path::new("/dev/full").exists();
    if !full {
        eprintln!("SKIPPED: a full device needs /dev/full");
    }
    for format in ["json", "csv", "eve", "zeek", "parquet"] {
        let mut command = ringtap();
        command.args(["monitor", "-q", "-r"]).arg(office());
        if full {
            let (out, errors, code) =
                output_of(command.args(["--write", &format!("{format}:/dev/full")]));
            assert!(code == 1 && errors.contains("/dev/full"), "{format}: {errors}");
            assert!(out.contains("Flows"), "the report is still printed: {out}");
        }

        let mut command = Command::new(env!("CARGO_BIN_EXE_ringtap"));
        command.args(["monitor", "-q", "--write", &format!("{format}:-"), "-r"]).arg(office());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let report = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success() && report.contains("Flows"), "{format}: {report}");
    }
}
