//! Tests of the tables for ClickHouse and of their dashboard: in chdb, ClickHouse's engine, if `RINGTAP_FULL` is 1.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::common::{captures, json as report_of};
use crate::formats::{python, tool};

/// Files of the packages.
fn packaging() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging")
}

/// Flow records as messages of a topic and as Parquet make equal rows, whose sums are those of the report; a message with
/// statistics makes the row of a probe; the questions of the dashboard have answers.
#[test]
fn records_of_a_topic_and_of_parquet_are_the_same_rows_and_have_the_sums_of_the_report() {
    const SCRIPT: &str = include_str!("clickhouse.py");
    if std::env::var_os("RINGTAP_FULL").is_none() {
        eprintln!(
            "SKIPPED: the tables of ClickHouse are tested with RINGTAP_FULL=1 (make test-all)"
        );
        return;
    }
    if tool("venv/with-chdb").is_none() {
        return;
    }
    let statistics = json!({
        "probe": "a", "run": "00ff", "time": 0, "last": false, "records": 9, "sent": 7, "lost": {"no_room": 2},
        "version": "0.1.0", "settings": "5f0c", "packets": 20, "ignoredPackets": 3,
    });
    let mut all = captures();
    // IPv4 and IPv6, tunnels, many names.
    all.retain(|path| {
        let name = path.file_name().unwrap().to_string_lossy();
        ["office", "o002", "o004", "o022"].iter().any(|&begin| name.starts_with(begin))
    });
    for capture in all {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let (lines, parquet) = (path("flows.json"), path("flows.parquet"));
        let outputs =
            [&format!("json:{}", lines.display()), &format!("parquet:{}", parquet.display())];
        let flags = [
            "--write",
            outputs[0],
            "--write",
            outputs[1],
            "--top",
            "100000",
            "--analyses",
            "all,tcp",
        ];
        fs::write(path("report.json"), report_of(&capture, &flags).to_string()).unwrap();
        let sql = packaging().join("compose/clickhouse.sql");
        let dashboard = packaging().join("grafana/flows.json");
        let text = statistics.to_string();
        let arguments =
            [&sql, &dashboard, &lines, &parquet, &path("report.json"), Path::new(&text)];
        let found = python(SCRIPT, folder.path(), &arguments.map(AsRef::as_ref)).unwrap();
        let records = fs::read_to_string(&lines).unwrap().lines().count();
        assert_eq!(found["rows"], json!([records, records]), "{}: {found}", capture.display());
        assert_eq!(found["different"], json!([0, 0]), "{}: {found}", capture.display());
        let no_differences =
            json!({"applications": [], "sources": [], "destinations": [], "ports": []});
        assert_eq!(found["wrong"], no_differences, "{}", capture.display());
        let health = &found["health"][0];
        let expected =
            [("probe", json!("a")), ("health", json!("lossy")), ("settings", json!("5f0c"))];
        for (name, value) in expected {
            assert_eq!(health[name], value, "{health}");
        }
        let numbers = ["clockOffsetMilliseconds", "lostPackets", "lostRecords"]
            .map(|name| number(&health[name]));
        assert_eq!(numbers, [1_000, 3, 2], "{health}");
        assert_eq!(found["panels"][1], 5);
    }
}

/// A number, as text or not.
fn number(value: &Value) -> i64 {
    value.as_str().map_or_else(|| value.as_i64(), |text| text.parse().ok()).unwrap()
}
