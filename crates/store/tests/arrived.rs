//! What a file has is read with the sums of its records, and any other bytes are counted or an error.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use proptest::prelude::*;
use ringtap_export::formats::{Format, Interfaces, Origins};
use ringtap_export::sums::{RowSum, Sum};
use ringtap_flow::{FlowKey, FlowRecord, IpVersion, Kind, Part};
use ringtap_store::arrived::{Counts, read};

/// Records of TCP, UDP and ICMP, with facts of which text formats must quote and escape some.
fn records(count: u64) -> Vec<FlowRecord> {
    let record = |number: u64| {
        let mut src = [0; 16];
        src[..8].copy_from_slice(&number.to_be_bytes());
        let version = if number.is_multiple_of(2) { IpVersion::V4 } else { IpVersion::V6 };
        let protocol = [6, 17, if version == IpVersion::V4 { 1 } else { 58 }][number as usize % 3];
        let key =
            FlowKey { version, src, dst: [9; 16], src_port: number as u16, dst_port: 53, protocol };
        let mut record = FlowRecord::new(key);
        record.first_ns = 1_700_000_000_000_000_000 + number * 1_000_000;
        record.last_ns = record.first_ns + 5_000_000_000;
        record.packets = [1, number % 4];
        record.octets = [number, number % 4 * 40];
        record.part = Some(Part { number: number as u32, flow_first_ns: record.first_ns });
        if number.is_multiple_of(5) {
            for name in ["example.org", "a;b,\"c\"\\x3b", "\u{202e}\n"] {
                record.facts.add(Kind::DnsQueryName, name.as_bytes(), usize::MAX).unwrap();
            }
            record.facts.add(Kind::HttpStatus, b"404", usize::MAX).unwrap();
        }
        record
    };
    (0..count).map(record).collect()
}

fn interfaces() -> Interfaces {
    Interfaces::default()
        .with(Origins { networks: true, geo: true, vendors: true, vlans: true })
        .with_parts(true)
}

fn expected(records: &[FlowRecord]) -> Sum {
    let mut sum = Sum::default();
    for record in records {
        sum += (&RowSum::of(record, interfaces().columns(), &mut Vec::new())).into();
    }
    sum
}

/// The sum of what is read; 0 in `all` if any row is not whole.
fn total(path: &Path) -> Result<(Sum, Counts), String> {
    let (mut sum, mut is_whole) = (Sum::default(), true);
    let counts = read(path, &mut |arrived| {
        sum += (&arrived.sum).into();
        is_whole &= arrived.is_whole;
    });
    let counts = counts.map_err(|error| error.to_string())?;
    assert_eq!(counts.rows, sum.rows);
    sum.all *= u128::from(is_whole);
    Ok((sum, counts))
}

const FORMATS: &[Format] = &[
    Format::Json,
    Format::Csv,
    #[cfg(feature = "parquet")]
    Format::Parquet,
];

#[test]
fn every_format_has_the_sums_of_its_records() {
    let folder = tempfile::tempdir().unwrap();
    for count in [0, 1, 1_000] {
        let records = records(count);
        for &format in FORMATS {
            // The name says nothing.
            let path = folder.path().join("records");
            fs::write(&path, format.encode(&records, &interfaces()).unwrap()).unwrap();
            let (sum, counts) = total(&path).unwrap();
            assert_eq!(sum, expected(&records), "{format}");
            assert_eq!(counts, Counts { files: 1, rows: count, ..Counts::default() }, "{format}");
        }
    }
}

#[cfg(feature = "parquet")]
#[test]
fn parquet_of_several_row_groups_is_read() {
    let records = records(70_000);
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(&file, Format::Parquet.encode(&records, &interfaces()).unwrap()).unwrap();
    assert_eq!(total(file.path()).unwrap().0, expected(&records));
}

#[test]
fn a_folder_is_read_in_order_without_hidden_and_unfinished_files() {
    let folder = tempfile::tempdir().unwrap();
    let (root, all) = (folder.path(), records(30));
    fs::create_dir_all(root.join("b/c")).unwrap();
    fs::create_dir(root.join(".hidden")).unwrap();
    let write = |name: &str, format: Format, records: &[FlowRecord]| {
        fs::write(root.join(name), format.encode(records, &interfaces()).unwrap()).unwrap();
    };
    write("b/c/1.json", Format::Json, &all[..10]);
    write("b/2.csv", Format::Csv, &all[10..20]);
    write("a", Format::Json, &all[20..]);
    for other in [".a.json", "c.json.part", ".hidden/1.json", "nfcapd.current.12"] {
        write(other, Format::Json, &all);
    }
    symlink(root.join("a"), root.join("link")).unwrap();
    symlink(root, root.join("b/loop")).unwrap();
    fs::write(root.join("README"), "text").unwrap();
    let (sum, counts) = total(root).unwrap();
    assert_eq!(sum, expected(&all));
    assert_eq!((counts.files, counts.skipped), (3, 1));
    assert_eq!(counts.first_skipped, Some(root.join("README")));
    let mut octets = Vec::new();
    read(root, &mut |arrived| octets.push(arrived.sum.end_ms)).unwrap();
    let sorted = [&all[20..], &all[10..20], &all[..10]].concat();
    let ends: Vec<_> = sorted.iter().map(|record| record.last_ns / 1_000_000).collect();
    assert_eq!(octets, ends);
}

#[test]
fn a_file_that_has_no_records_is_an_error_with_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let error = |path: &Path| {
        let error = total(path).unwrap_err();
        assert!(error.starts_with(path.to_str().unwrap()), "{error}");
        error
    };
    assert!(error(folder.path()).ends_with("no file of records is in the folder"));
    fs::create_dir(folder.path().join("empty")).unwrap();
    assert!(error(folder.path()).ends_with("no file of records is in the folder"));
    let path = folder.path().join("file");
    assert!(error(&path).contains("No such file"));
    for bytes in [&b"\x1f\x8b\x08\x00"[..], b"\xff\x00\xfe garbage", b"a,b,c\n1,2,3\n", b"\n"] {
        fs::write(&path, bytes).unwrap();
        assert!(error(&path).contains("neither JSON lines"), "{bytes:?}");
    }
    let path = folder.path().join("file.csv");
    fs::write(&path, "flowEndMilliseconds,sourceIPAddress\n1,10.0.0.1\n").unwrap();
    assert!(error(&path).ends_with("no flow records: there is no column destinationIPAddress"));
    fs::write(&path, [b'"']).unwrap();
    assert!(error(&path).contains("neither JSON lines"));
    assert!(error(folder.path()).contains("no file of records"), "its files are of other kinds");
}

#[test]
fn lines_that_are_no_records_are_counted() {
    let (good, file) = (records(2), tempfile::NamedTempFile::new().unwrap());
    let json = String::from_utf8(Format::Json.encode(&good, &interfaces()).unwrap()).unwrap();
    let lines: Vec<_> = json.lines().collect();
    let deep = format!("{{\"a\":{}", "[".repeat(10_000));
    for bad in [
        "{}",
        "[1]",
        "null",
        "text",
        "{\"flowEndMilliseconds\":1}",
        &lines[0][..lines[0].len() - 1],
        &format!("{} x", lines[0]),
        &lines[0].replace("\"packetDeltaCount\":1", "\"packetDeltaCount\":-1"),
        &lines[0].replace("\"packetDeltaCount\":1", "\"packetDeltaCount\":1.5"),
        &lines[0].replace("\"packetDeltaCount\":1", "\"packetDeltaCount\":{\"a\":1}"),
        &lines[0].replace("\"packetDeltaCount\":1", "\"packetDeltaCount\":\"one\""),
        &deep,
    ] {
        fs::write(&file, format!("{}\n\n{bad}\r\n{}\r\n", lines[0], lines[1])).unwrap();
        let (sum, counts) = total(file.path()).unwrap();
        assert_eq!(sum, expected(&good), "{bad}");
        assert_eq!(counts.invalid, 1, "{bad}");
        let first = counts.first_invalid.unwrap();
        assert_eq!((first.line, first.path.as_path()), (3, file.path()));
        let shown = first.to_string();
        assert!(shown.contains(", line 3: "), "{shown}");
    }
    let foreign = lines[0].replacen('{', "{\"@timestamp\":{\"a\":[1,null]},\"vlanId\":null,", 1);
    let texts = foreign.replace("\"packetDeltaCount\":1", "\"packetDeltaCount\":\"1\"");
    fs::write(&file, texts).unwrap();
    assert_eq!(total(file.path()).unwrap().0, expected(&good[..1]));
}

#[test]
fn csv_may_have_other_columns_and_lines_of_another_length_are_counted() {
    let (good, file) = (records(6), tempfile::NamedTempFile::new().unwrap());
    let csv = String::from_utf8(Format::Csv.encode(&good, &interfaces()).unwrap()).unwrap();
    let more: String = csv.lines().map(|line| format!("\"o,\"\"ther\",{line}\r\n")).collect();
    fs::write(&file, format!("\u{feff}{more}")).unwrap();
    assert_eq!(total(file.path()).unwrap().0, expected(&good));

    let (head, rest) = csv.split_once('\n').unwrap();
    let line = rest.lines().next().unwrap();
    for bad in [&line[..20], &format!("{line},"), &line.replacen(',', ",\"", 1), "\"a\"b"] {
        fs::write(&file, format!("{head}\n{bad}\n{rest}")).unwrap();
        let (sum, counts) = total(file.path()).unwrap();
        assert_eq!((sum, counts.invalid), (expected(&good), 1), "{bad}");
        assert_eq!(counts.first_invalid.unwrap().line, 2);
    }
}

/// The sum of all fields does not count then.
#[test]
fn csv_with_the_columns_of_the_core_alone_has_the_core() {
    let good = records(1);
    let text = "flowStartMilliseconds,flowEndMilliseconds,sourceIPAddress,destinationIPAddress,\
                destinationTransportPort,protocolIdentifier,packetDeltaCount\n\
                1700000000000,1700000005000,0.0.0.0,9.9.9.9,53,6,1\n";
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(&file, text).unwrap();
    let (sum, _) = total(file.path()).unwrap();
    assert_eq!(sum, Sum { all: 0, ..expected(&good) });
}

#[cfg(feature = "parquet")]
#[test]
fn a_truncated_parquet_file_is_an_error() {
    let file = tempfile::NamedTempFile::with_suffix(".parquet").unwrap();
    let whole = Format::Parquet.encode(&records(50), &interfaces()).unwrap();
    for len in (4..whole.len()).step_by(97) {
        fs::write(&file, &whole[..len]).unwrap();
        let error = total(file.path()).unwrap_err();
        assert!(error.contains("no whole Parquet file of records"), "{error}");
    }
}

proptest! {
    /// Nothing panics, and no record is invented without its addresses.
    #[test]
    fn damaged_files_are_errors_or_have_invalid_lines(
        format in prop::sample::select(FORMATS),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        end: prop::sample::Index,
    ) {
        let good = records(20);
        let mut bytes = format.encode(&good, &interfaces()).unwrap();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(bytes.len() - end.index(2) * end.index(bytes.len()));
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(&file, bytes).unwrap();
        if let Ok((sum, _)) = total(file.path()) {
            prop_assert!(sum.rows <= 21);
        }
    }
}
