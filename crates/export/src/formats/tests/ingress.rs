//! Records from interfaces contain the interface of the first packet; records from files are unchanged.

use ringtap_flow::{FlowRecord, Path};
use serde_json::Value;

use super::named::rows;
use super::{echo, tcp, written};
use crate::formats::{Format, Interface, Interfaces};

fn by(ingress: u32, record: FlowRecord) -> FlowRecord {
    FlowRecord { path: Path { ingress, ..record.path }, ..record }
}

fn interfaces() -> [Interface; 2] {
    let named =
        |index, name: &str| Interface { index, name: name.to_owned(), description: String::new() };
    [named(7, "eth0"), named(70_000, "a\"b\\\u{1}é")]
}

/// The records in this format, from interfaces.
fn live(format: Format, records: &[FlowRecord]) -> Vec<u8> {
    format.encode(records, &Interfaces::new(&interfaces())).unwrap()
}

fn lines(bytes: Vec<u8>) -> Vec<String> {
    String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn each_format_names_the_interface() {
    let records = [by(7, tcp()), by(70_000, echo()), by(0, tcp()), by(9, tcp())];
    let json: Vec<Value> = lines(live(Format::Json, &records))
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let numbers: Vec<_> = json.iter().map(|one| one["ingressInterface"].as_u64()).collect();
    assert_eq!(numbers, [Some(7), Some(70_000), None, Some(9)]);

    let csv = lines(live(Format::Csv, &records));
    let at = csv[0].split(',').position(|name| name == "ingressInterface").unwrap();
    let value = |line: &String| line.split(',').nth(at).unwrap().to_owned();
    let column: Vec<_> = csv.iter().map(value).collect();
    assert_eq!(column, ["ingressInterface", "7", "70000", "", "9"]);
    let columns = csv[0].split(',').count();
    assert!(csv.iter().all(|line| line.split(',').count() == columns), "{csv:?}");

    let eve: Vec<Value> = lines(live(Format::Eve, &records))
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let names: Vec<_> = eve.iter().map(|one| one["in_iface"].as_str()).collect();
    assert_eq!(names, [Some("eth0"), Some("a\"b\\\u{1}é"), None, None]);

    let table = rows(live(Format::Parquet, &records));
    let numbers: Vec<_> = table
        .iter()
        .map(|row| row.iter().find(|(name, _)| name == "ingressInterface").map(|(_, v)| v.as_str()))
        .collect();
    assert_eq!(numbers, [Some("7"), Some("70000"), None, Some("9")]);

    assert_eq!(live(Format::Zeek, &records), written(Format::Zeek, &records), "no field for it");
}

#[test]
fn records_of_files_have_no_interface() {
    let records = [tcp(), echo()];
    for format in Format::ALL {
        let out = written(format, &records);
        let text = String::from_utf8_lossy(&out).into_owned();
        assert!(!text.contains("ingressInterface") && !text.contains("in_iface"), "{format}");
    }
}
