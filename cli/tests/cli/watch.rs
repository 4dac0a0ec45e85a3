//! Tests of `--watch`: alerts and matches of names, fingerprints and networks, in any arrangement.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::common::{captures, office, output_of, ringtap};

/// Runs with a list; returns the JSON report and stderr.
fn watched(capture: &Path, list: &str, flags: &[&str]) -> (Value, String) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("list"), list).unwrap();
    let mut command = ringtap();
    command.current_dir(&folder).args(["monitor", "--report=json", "--watch=list", "-r"]);
    let (report, errors, code) = output_of(command.arg(capture).args(flags));
    assert_eq!(code, 0, "{}: {errors}", capture.display());
    (serde_json::from_str(&report).unwrap(), errors)
}

/// The changes of alerts.
fn alerts(errors: &str) -> Vec<&str> {
    errors.lines().filter(|line| line.contains(" seen by ")).collect()
}

/// Whether not all alerts are shown.
fn is_cut(errors: &str) -> bool {
    errors.contains(" more; the report has all")
}

#[test]
fn a_host_that_reaches_an_entry_is_reported() {
    let list = "WEB.office.example portal\n10.20.0.53 # resolver\n";
    let (report, errors) = watched(&office(), list, &[]);
    assert_eq!(report["plan"]["watch"], json!({"names": 1, "fingerprints": 0, "networks": 1}));
    let rows = report["watch"]["rows"].as_array().unwrap();
    let of = |entry: &str| rows.iter().filter(|row| row["entry"] == entry).collect::<Vec<_>>();
    // As `tshark -Y 'dns.qry.name == "web.office.example"'` counts them.
    let matches =
        |rows: &[&Value]| rows.iter().map(|row| row["matches"].as_u64().unwrap()).sum::<u64>();
    assert_eq!(matches(&of("web.office.example")), 12);
    let first = of("web.office.example")[0];
    assert_eq!((&first["label"], &first["field"]), (&json!("portal"), &json!("dnsQueryName")));
    assert_eq!(first["flow"]["destination_port"], 53);
    assert_eq!(of("10.20.0.53")[0]["field"], "destinationAddress");
    // One alert for each entry, with the number of its hosts.
    let changes = |state: &str| {
        alerts(&errors).into_iter().filter(|line| line.contains(state)).map(str::to_owned).collect()
    };
    let (begins, ends): (Vec<String>, Vec<String>) = (changes(" begins: "), changes(" ends: "));
    assert_eq!((begins.len(), ends.len()), (2, 2), "{errors}");
    for entry in ["10.20.0.53", "web.office.example (portal)"] {
        let hosts = of(entry.split(' ').next().unwrap()).len();
        let by = format!("{entry} seen by {hosts} hosts, first ");
        assert!(hosts > 1 && ends.iter().any(|line| line.contains(&by)), "{errors}");
    }
    // The hits: messages, as above, and packets, as `tshark -Y 'ip.addr == 10.20.0.53'` counts them.
    for (entry, hits) in [("web.office.example", 12), ("10.20.0.53", 99)] {
        let is_own = |line: &&String| line.contains(&format!(" {entry} "));
        let line = ends.iter().find(is_own).unwrap();
        assert!(line.contains(&format!(", {hits} hits: ")), "{line}");
    }
    assert!(errors.contains(
        " web.office.example (portal) seen by 10.20.0.101: dnsQueryName in UDP 10.20.0.101:"
    ));
    let (report, errors) = watched(&office(), list, &["-q", "--extract=tls"]);
    assert_eq!(report["watch"]["rows"].as_array().unwrap().len(), of("10.20.0.53").len());
    assert_eq!(errors, "");
}

/// Each capture with its own names, fingerprints and some of its addresses.
#[test]
fn all_arrangements_find_the_same() {
    let mut rows = 0;
    for capture in captures().into_iter().take(30) {
        let folder = tempfile::tempdir().unwrap();
        let mut command = ringtap();
        command.current_dir(&folder).args(["monitor", "-q", "--write=json:flows", "-r"]);
        assert_eq!(output_of(command.arg(&capture)).2, 0);
        let mut list = String::new();
        for line in fs::read_to_string(folder.path().join("flows")).unwrap().lines() {
            let flow: Value = serde_json::from_str(line).unwrap();
            let names = [
                "tlsServerName",
                "ja3",
                "ja3s",
                "ja4",
                "sourceIPv4Address",
                "destinationIPv6Address",
            ];
            for value in names
                .iter()
                .filter_map(|name| flow[name].as_str())
                .filter(|text| !text.contains('_') && *text != "0.0.0.0")
            {
                list += &format!("{value}\n");
            }
        }
        list += "10.0.0.0/8 private\n192.168.0.0/16 private\n0.0.0.0/0\n";
        let (reference, errors) = watched(&capture, &list, &["--sequential", "--digest"]);
        rows += reference["watch"]["rows"].as_array().unwrap().len();
        for flags in
            [&["--queues=3", "--digest"][..], &["--skeleton=farm", "-w=3", "--seed=5", "--digest"]]
        {
            let (report, others) = watched(&capture, &list, flags);
            assert_eq!(report["watch"], reference["watch"], "{}", capture.display());
            assert_eq!(report["digest"], reference["digest"], "{}", capture.display());
            assert_eq!(is_cut(&others), is_cut(&errors));
            if !is_cut(&errors) {
                assert_eq!(alerts(&others), alerts(&errors), "{}", capture.display());
            }
        }
    }
    assert!(rows > 1000, "{rows}");
}

#[test]
fn a_wrong_list_is_an_error_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("list"), "good.example\n10.0.0.1/8\n").unwrap();
    fs::write(folder.path().join("names"), "good.example\n").unwrap();
    let run = |flags: &[&str]| {
        let mut command = ringtap();
        command.current_dir(&folder).args(["monitor", "-r"]).arg(office());
        output_of(command.args(flags))
    };
    for (flags, error) in [
        (
            &["--watch=list"][..],
            "reading the watched entries in list: line 2: bits behind the network's are not 0: \"10.0.0.1/8\"",
        ),
        (&["--watch=missing"], "reading the watched entries in missing: No such file"),
        (&["--analyses=watch"], "the analysis watch needs a list: use --watch FILE"),
        (
            &["--watch=names", "--extract=none"],
            "--watch has names or fingerprints, which need payloads: omit --extract none",
        ),
    ] {
        let (_, errors, code) = run(flags);
        assert_eq!(code, 2, "{errors}");
        assert!(errors.starts_with(&format!("error: {error}")), "{errors}");
    }
    let (plan, ..) = run(&["--watch=names", "--dry-run"]);
    assert!(plan.contains("watched    1 names, 0 fingerprints, 0 networks"), "{plan}");
    fs::write(folder.path().join("conf.toml"), "watch = \"names\"\n").unwrap();
    let (plan, ..) = run(&["--config=conf.toml", "--dry-run"]);
    assert!(plan.contains("watched"), "{plan}");
}
