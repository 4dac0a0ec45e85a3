//! Tests of `ringtap query`: its answers, its errors, and what it must not read or write.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use assert_cmd::Command;
use serde_json::Value;

use crate::common::{have, office, output_of, real_folder, ringtap};
use crate::formats::{python, tool};
use crate::merge::real;

/// The command in a folder, with the engine of the test tools.
fn query(folder: &Path, flags: &[&str]) -> Option<Command> {
    let engine = tool("venv/bin/duckdb")?;
    let mut command = ringtap();
    command.current_dir(folder).env("RINGTAP_DUCKDB", fs::canonicalize(engine).unwrap());
    command.arg("query").args(flags);
    Some(command)
}

/// A store of a capture, its records and its events, in a folder.
fn store_of(capture: &Path, arrangement: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(
        folder.path().join("networks"),
        "10.0.0.0/8 inside\n192.168.0.0/16 home\n0.0.0.0/0 else\n",
    )
    .unwrap();
    let store = ["--store", "s", "--rotate", "20s", "--cut", "10s"];
    let files = ["--cut", "10s", "--write", "json:flows.json", "--events", "json:events.json"];
    for flags in [&store[..], &files] {
        let mut command = ringtap();
        command.current_dir(folder.path()).arg("monitor").arg("-r").arg(capture);
        command.args(["--analyses", "all,tcp", "--networks", "networks"]);
        let (_, errors, code) = output_of(command.args(flags).args(arrangement));
        assert_eq!(code, 0, "{errors}");
    }
    folder
}

/// Real captures that are quick to read.
fn short() -> Vec<PathBuf> {
    let is_short = |path: &PathBuf| fs::metadata(path).is_ok_and(|about| about.len() < 1 << 20);
    real().into_iter().filter(is_short).collect()
}

fn rows(out: &str) -> Vec<Value> {
    out.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}")))
        .collect()
}

/// The columns of a question that the script has, too.
fn columns(question: &str) -> &'static [&'static str] {
    match question.split_whitespace().next() {
        Some("who") => &["host", "name", "questions"],
        Some("timeline") => &["octets", "sent", "received", "packets", "flows", "peers"],
        Some("failed") => &["server", "port", "connections", "clients", "client"],
        Some("long") => &["seconds", "octets", "packets"],
        Some("names") => &["name", "by", "messages"],
        Some("servers") => &[
            "server",
            "port",
            "application",
            "responses",
            "mean_us",
            "slowest_record_us",
            "rtt_median_us",
            "rtt_longest_us",
        ],
        _ if question.contains("hosts") || question.contains("networks") => {
            &["host", "network", "octets", "sent", "received", "packets", "flows"]
        }
        _ => &[
            "host",
            "peer",
            "protocol",
            "port",
            "application",
            "name",
            "octets",
            "packets",
            "flows",
        ],
    }
}

/// The answers to questions, from one run of the engine: the SQL of each question is its answer.
fn answers(folder: &Path, questions: &[&str]) -> Option<Vec<Vec<Value>>> {
    let mut parts = Vec::new();
    for (number, question) in questions.iter().enumerate() {
        let (sql, errors, code) = output_of(&mut query(folder, &["s", question, "--explain"])?);
        assert_eq!(code, 0, "{question}: {errors}");
        parts.push(format!(
            "SELECT {number} AS n, (SELECT to_json(list(own)) FROM ({sql}) AS own)::VARCHAR AS rows"
        ));
    }
    let sql = format!("{} ORDER BY n", parts.join("\nUNION ALL "));
    let (out, errors, code) =
        output_of(&mut query(folder, &["s", "--sql", &sql, "--output", "json"])?);
    assert_eq!(code, 0, "{errors}");
    // No rows are no list.
    let of_one = |row: Value| {
        row["rows"].as_str().map_or_else(Vec::new, |text| serde_json::from_str(text).unwrap())
    };
    Some(rows(&out).into_iter().map(of_one).collect())
}

#[test]
fn answers_are_those_of_the_records() {
    let script = include_str!("query.py");
    let captures: Vec<PathBuf> =
        [office()].into_iter().chain(short().into_iter().step_by(9)).collect();
    let mut asked = BTreeMap::<String, usize>::new();
    for (number, capture) in captures.iter().enumerate() {
        let arrangement: &[&str] = if number % 2 == 0 { &["--sequential"] } else { &["-w", "2"] };
        let folder = store_of(capture, arrangement);
        let files = [Path::new("flows.json"), Path::new("events.json")];
        let Some(truth) = python(script, folder.path(), &files) else { return };
        let truth = truth.as_object().unwrap();
        let questions: Vec<_> = truth.keys().map(String::as_str).collect();
        let Some(answers) = answers(folder.path(), &questions) else { return };
        for ((question, wanted), answer) in truth.iter().zip(answers) {
            let found = answer.iter().map(|row| {
                let own = columns(question).iter().filter_map(|name| row.get(name).cloned());
                Value::Array(own.collect())
            });
            let mut both = [found.collect(), wanted.as_array().unwrap().clone()];
            if question.starts_with("servers") {
                let slow =
                    |row: &Value| ["mean_us", "rtt_median_us"].map(|name| row[name].as_u64());
                assert!(answer.is_sorted_by(|one, other| slow(one) >= slow(other)), "{answer:?}");
                // Those that are equally slow have no order.
                both.iter_mut().for_each(|rows| rows.sort_by_key(Value::to_string));
            }
            let [found, wanted] = both.map(|rows| normal(&Value::Array(rows)));
            assert_eq!(found, wanted, "{}: {question}", capture.display());
            let form = question.split_whitespace().filter(|word| word.parse::<f64>().is_err());
            let form: Vec<_> = form.take(2).collect();
            *asked.entry(form.join(" ")).or_default() += wanted.as_array().unwrap().len();
        }
    }
    // Each form of question had rows.
    let empty: Vec<_> = asked.iter().filter(|(_, rows)| **rows == 0).collect();
    let few = real_folder().is_none();
    assert!((few || empty.is_empty()) && asked.len() > 10, "{asked:?}");
}

/// The packets of the flows of a filter are those that tshark selects by the same terms.
#[test]
fn filters_select_the_packets_that_tshark_selects() {
    // An error of ICMP has the headers of another packet.
    const OWN: &str = "&& !icmp && !icmpv6";
    let same = [
        ("ip or ip6".to_owned(), "ip || ipv6".to_owned()),
        ("tcp".into(), format!("tcp {OWN}")),
        ("not tcp".into(), format!("(ip || ipv6) && !(tcp {OWN})")),
        ("icmp or icmp6".into(), "icmp || icmpv6".into()),
        ("port 53".into(), format!("(tcp.port == 53 || udp.port == 53) {OWN}")),
        ("tcp port 443".into(), format!("tcp.port == 443 {OWN}")),
        ("udp portrange 1-1023".into(), format!("udp.port in {{1..1023}} {OWN}")),
        ("net 10.0.0.0/8".into(), "ip.addr#1 == 10.0.0.0/8".into()),
        ("net 192.168.0.0/16 and udp".into(), format!("ip.addr#1 == 192.168.0.0/16 && udp {OWN}")),
        ("net fe80::/10".into(), "ipv6.addr#1 == fe80::/10".into()),
    ];
    if !have("tshark") {
        return;
    }
    if real_folder().is_none() {
        return eprintln!(
            "SKIPPED: no folder of real captures next to the project (shared/traces)"
        );
    }
    let mut compared = 0;
    for capture in short().into_iter().step_by(7) {
        let folder = store_of(&capture, &["--sequential"]);
        let questions: Vec<_> =
            same.iter().map(|(filter, _)| format!("timeline every 9999d where {filter}")).collect();
        let questions: Vec<_> = questions.iter().map(String::as_str).collect();
        let Some(answers) = answers(folder.path(), &questions) else { return };
        let sum = |rows: &Vec<Value>| rows.iter().map(|row| row["packets"].as_u64().unwrap()).sum();
        let found: Vec<u64> = answers.iter().map(sum).collect();
        let fragments = "ip.frag_offset > 0 || ip.flags.mf == 1 || ipv6.fraghdr";
        let tunnels = "(ip.addr#2 || ipv6.addr#2 || (ip && ipv6)) && !icmp && !icmpv6";
        let others = [fragments, tunnels];
        let filters = same.iter().map(|(_, filter)| filter.as_str()).chain(others);
        let stat = filters.fold("io,stat,0".to_owned(), |all, filter| all + "," + filter);
        let mut tshark = Command::new("tshark");
        let (out, errors, code) =
            output_of(tshark.arg("-r").arg(&capture).args(["-q", "-z", &stat]));
        assert_eq!(code, 0, "{errors}");
        let Some(line) = out.lines().find(|line| line.contains("<>")) else { continue };
        let numbers = line.split('|').filter_map(|cell| cell.trim().parse::<u64>().ok());
        let mut wanted: Vec<_> = numbers.step_by(2).collect();
        // A packet in a tunnel is another one; a later fragment has no ports for tshark.
        let has_others = wanted.split_off(same.len()) != [0, 0];
        if has_others {
            continue;
        }
        assert_eq!(found, wanted, "{}", capture.display());
        compared += 1;
    }
    assert!(compared > 4, "{compared}");
}

/// Numbers as floats, because one side writes 2.0 and the other 2.
fn normal(value: &Value) -> Value {
    match value {
        Value::Array(all) => all.iter().map(normal).collect(),
        Value::Number(number) => Value::from(number.as_f64()),
        other => other.clone(),
    }
}

#[test]
fn a_window_has_the_records_that_end_in_it_whatever_files_are_opened() {
    let folder = store_of(&office(), &["--sequential"]);
    let Some(mut all) = query(folder.path(), &["s", "flows", "--output", "json"]) else { return };
    let (out, errors, code) = output_of(&mut all);
    assert_eq!(code, 0, "{errors}");
    let all = rows(&out);
    let end = |row: &Value| row["flowEndMilliseconds"].as_str().unwrap()[..23].to_owned();
    let mut ends: Vec<_> = all.iter().map(end).collect();
    ends.sort();
    let mut steps: Vec<_> = ends.iter().step_by(ends.len().div_ceil(6)).cloned().collect();
    steps.push("2999-01-01T00:00:00.000".to_owned());
    let mut sum = 0;
    for window in steps.windows(2) {
        let [from, to] = [0, 1].map(|at| format!("{}Z", window[at]));
        let flags = ["s", "flows", "--output", "json", "--from", &from, "--to", &to];
        let (out, errors, code) = output_of(&mut query(folder.path(), &flags).unwrap());
        assert_eq!(code, 0, "{errors}");
        let wanted = ends.iter().filter(|end| *end >= &window[0] && *end < &window[1]).count();
        assert_eq!(rows(&out).len(), wanted, "{from} {to}");
        sum += wanted;
    }
    assert_eq!(sum, all.len());
    // A time without a file.
    let early = ["s", "top hosts", "--from", "2001-01-01", "--to", "2001-01-02"];
    let (out, errors, code) = output_of(&mut query(folder.path(), &early).unwrap());
    assert_eq!((out.as_str(), code), ("no rows\n", 0), "{errors}");
    let files = names(&folder.path().join("s/flows"));
    let files = files.iter().filter(|name| name.ends_with(".parquet"));
    let (first, last) = (files.clone().min().unwrap(), files.max().unwrap());
    let name = |path: &str| Path::new(path).file_name().unwrap().to_str().unwrap().to_owned();
    let [first, last] = [first, last].map(|path| name(path));
    assert!(errors.contains("no file of this time; the first is s/flows/"), "{errors}");
    assert!(errors.contains(&first) && errors.ends_with(&format!("{last}\n")), "{errors}");
    // Two periods side by side: their sums are those of two questions.
    let [from, to] = [&steps[3], &steps[4]].map(|time| format!("{time}Z"));
    let ask = |flags: &[&str]| {
        let (out, errors, code) = output_of(&mut query(folder.path(), flags).unwrap());
        assert_eq!(code, 0, "{errors}");
        let octets =
            |name: &str| rows(&out).iter().filter_map(|row| row[name].as_u64()).sum::<u64>();
        [octets("octets"), octets("octets_before")]
    };
    let compared = ask(&[
        "s", "compare", "9999", "hosts", "--with", "-1d", "--from", &from, "--to", &to, "--output",
        "json",
    ]);
    let alone =
        ask(&["s", "top", "9999", "hosts", "--from", &from, "--to", &to, "--output", "json"]);
    assert_eq!(compared, [alone[0], 0]);
}

#[test]
fn formats_have_the_same_rows_and_the_sql_of_a_question_is_its_answer() {
    let folder = store_of(&office(), &["--sequential"]);
    let Some(mut command) = query(folder.path(), &["s", "top 5 hosts", "--output", "csv"]) else {
        return;
    };
    let (csv, ..) = output_of(&mut command);
    assert!(
        csv.starts_with("host,octets,sent,received,packets,flows\n") && csv.lines().count() == 6,
        "{csv}"
    );
    let (sql, ..) =
        output_of(&mut query(folder.path(), &["s", "top 5 hosts", "--explain"]).unwrap());
    let (same, ..) =
        output_of(&mut query(folder.path(), &["s", "--sql", &sql, "--output", "csv"]).unwrap());
    assert_eq!(same, csv);
    let parquet =
        query(folder.path(), &["s", "flows", "--output", "parquet"]).unwrap().output().unwrap();
    fs::write(folder.path().join("all.parquet"), parquet.stdout).unwrap();
    // A file of an answer with flow records is one that can be asked.
    let (again, errors, _) = output_of(
        &mut query(folder.path(), &["all.parquet", "top 5 hosts", "--output", "csv"]).unwrap(),
    );
    assert_eq!(again, csv, "{errors}");
    let (table, ..) = output_of(&mut query(folder.path(), &["s", "top", "5", "hosts"]).unwrap());
    assert!(table.lines().count() == 6 && table.contains("  host"), "{table}");
    let (flows, ..) =
        output_of(&mut query(folder.path(), &["s", "flows", "--limit", "2"]).unwrap());
    assert_eq!(flows.lines().count(), 3, "{flows}");
}

#[test]
fn sql_reads_the_chosen_files_alone_and_writes_none() {
    let folder = store_of(&office(), &["--sequential"]);
    fs::write(folder.path().join("secret.csv"), "a\n1\n").unwrap();
    let before = names(folder.path());
    for sql in [
        "copy flows to 'x.csv'",
        "create table t as select 1",
        "select * from 'secret.csv'",
        "select * from read_text('secret.csv')",
        "select * from read_parquet('s/flows/*/*/*/*.parquet')",
        "select * from glob('*')",
        "select getenv('HOME')",
        "attach 'x.db'",
        "install httpfs",
        "set memory_limit='9GB'",
        "select 1; select 2",
        "select 1)); copy (select 1) to 'x.csv'; select ((1",
        "pragma database_list",
        "select '",
        "select error('while it runs')",
        "",
        ".shell touch x",
        "select 1\n.shell touch x",
    ] {
        let Some(mut command) = query(folder.path(), &["s", "--sql", sql]) else { return };
        let (out, errors, code) = output_of(&mut command);
        assert!(code == 1 || code == 2, "{sql}: {out}");
        assert!(errors.contains("error: ") && !errors.contains("json_execute"), "{sql}: {errors}");
    }
    assert_eq!(names(folder.path()), before);
    assert!(fs::symlink_metadata("/dev/stdout").unwrap().is_symlink());
    let (out, _, code) = output_of(
        &mut query(
            folder.path(),
            &["s", "--sql", "select 'it''s' as x, count(*) n from totals", "--output", "json"],
        )
        .unwrap(),
    );
    assert!(code == 0 && out.contains("it's"), "{out}");
}

/// All paths below a folder.
fn names(folder: &Path) -> Vec<String> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        all.push(entry.path().display().to_string());
        if entry.path().is_dir() {
            all.extend(names(&entry.path()));
        }
    }
    all.sort();
    all
}

#[test]
fn a_bad_file_an_absent_engine_and_a_wrong_question_are_clear_errors() {
    let folder = store_of(&office(), &["--sequential"]);
    let fails = |flags: &[&str], words: &str, status: i32| {
        let mut command = query(folder.path(), flags).unwrap_or_else(|| {
            let mut command = ringtap();
            command.current_dir(folder.path()).arg("query").args(flags);
            command
        });
        let (out, errors, code) = output_of(&mut command);
        assert_eq!((out.as_str(), code), ("", status), "{flags:?}: {errors}");
        assert!(errors.contains(words), "{flags:?}: {errors}");
    };
    for (flags, words) in [
        (&["s"][..], "no question"),
        (&["top", "hosts"], "no store or file before the question"),
        (&["s", "top", "hots"], "unknown hots"),
        (&["s", "top hosts where nam = 3"], "unknown field nam"),
        (&["s", "top hosts", "--from", "soon"], "invalid time"),
        (&["s", "top hosts", "--from", "10:05", "--to", "10:04"], "--from is not before --to"),
        (&["s", "compare hosts"], "compare needs --with"),
        (&["s", "compare hosts", "--with", "-1d"], "--with needs --from"),
        (&["s", "top hosts", "--sql", "select 1"], "a question and --sql"),
    ] {
        fails(flags, words, 2);
    }
    fs::write(folder.path().join("cut.parquet"), b"PAR1xxxxPAR1").unwrap();
    fs::write(folder.path().join("a.json"), b"{}").unwrap();
    fails(&["cut.parquet", "top hosts"], "cut.parquet", 1);
    fails(&["a.json", "top hosts"], "a.json", 1);
    fails(&["absent", "top hosts"], "opening absent", 1);
    fails(&[".", "top hosts"], "is no store", 1);
    let mut command = ringtap();
    command.current_dir(folder.path()).env("RINGTAP_DUCKDB", "no-engine");
    let (_, errors, code) = output_of(command.args(["query", "s", "top hosts"]));
    assert!(code == 1 && errors.contains("pip install duckdb-cli"), "{errors}");
    // A page is served without it.
    let mut command = ringtap();
    command.current_dir(folder.path()).env("RINGTAP_DUCKDB", "no-engine");
    command.args(["monitor", "-r", "-", "--web", "127.0.0.1:0", "--store", "t"]);
    let (_, errors, code) = output_of(command.write_stdin(fs::read(office()).unwrap()));
    assert!(code == 0 && errors.contains("the program no-engine is missing"), "{errors}");
    if query(folder.path(), &[]).is_none() {
        return;
    }
    // A file of the store whose middle is damaged.
    let flows = names(&folder.path().join("s/flows"));
    let file = flows.iter().find(|name| name.ends_with(".parquet")).unwrap();
    let mut bytes = fs::read(file).unwrap();
    let end = bytes.len() - 600;
    bytes[4..end].fill(0xff);
    fs::write(file, bytes).unwrap();
    fails(&["s", "top hosts"], Path::new(file).file_name().unwrap().to_str().unwrap(), 1);
}

#[test]
fn a_reader_that_closes_stdout_early_is_no_failure() {
    let folder = store_of(&office(), &["--sequential"]);
    let Some(engine) = tool("venv/bin/duckdb") else { return };
    // More than a pipe holds.
    let sql = "select repeat('x', 1000) from range(1000)";
    let mut query = std::process::Command::new(assert_cmd::cargo::cargo_bin!("ringtap"));
    query.current_dir(folder.path()).env("RINGTAP_DUCKDB", fs::canonicalize(engine).unwrap());
    query.args(["query", "s", "--sql", sql, "--output", "csv"]);
    let mut child = query.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let ended = child.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&ended.stderr);
    assert_eq!((ended.status.code(), &*errors), (Some(0), ""));
}

#[test]
fn an_answer_is_appended_to_a_file_that_has_lines() {
    let folder = store_of(&office(), &["--sequential"]);
    let Some(engine) = tool("venv/bin/duckdb") else { return };
    let path = folder.path().join("log");
    fs::write(&path, "before\n").unwrap();
    for format in ["csv", "json"] {
        let file = fs::File::options().append(true).open(&path).unwrap();
        let mut query = std::process::Command::new(assert_cmd::cargo::cargo_bin!("ringtap"));
        query.current_dir(folder.path()).env("RINGTAP_DUCKDB", fs::canonicalize(&engine).unwrap());
        query.args(["query", "s", "--sql", "select 7 as n", "--output", format]).stdout(file);
        assert!(query.status().unwrap().success());
    }
    assert_eq!(fs::read_to_string(path).unwrap(), "before\nn\n7\n{\"n\":7}\n");
}

/// A SYN just before a cut, and its answer just after.
#[test]
fn an_answer_behind_a_cut_is_an_answer() {
    let folder = tempfile::tempdir().unwrap();
    let frame = |flags: u8, back: bool| {
        let (mut ends, mut ports) = ([[10, 0, 0, 1], [10, 0, 0, 2]], [40_000_u16, 80]);
        if back {
            ends.reverse();
            ports.reverse();
        }
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
        frame.extend([0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0]);
        frame.extend(ends.as_flattened());
        frame.extend(ports.iter().flat_map(|port| port.to_be_bytes()));
        frame.extend([0, 0, 0, 1, 0, 0, 0, 0, 0x50, flags, 4, 0, 0, 0, 0, 0]);
        frame
    };
    for (answers, failed) in [(true, 0), (false, 1)] {
        let mut file: Vec<u8> = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0];
        file.extend([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0]);
        let mut add = |seconds: u32, micros: u32, frame: Vec<u8>| {
            let len = frame.len() as u32;
            file.extend([seconds, micros, len, len].iter().flat_map(|word| word.to_le_bytes()));
            file.extend(frame);
        };
        add(1_700_000_019, 999_000, frame(2, false));
        if answers {
            add(1_700_000_020, 1_000, frame(0x12, true));
        }
        let name = format!("{failed}");
        fs::write(folder.path().join("a.pcap"), &file).unwrap();
        let mut command = ringtap();
        command.current_dir(folder.path()).args(["monitor", "-r", "a.pcap", "--cut", "10s"]);
        let (_, errors, code) = output_of(command.args(["--store", &name]));
        assert_eq!(code, 0, "{errors}");
        let flags = [&name, "failed", "--output", "json"];
        let Some(mut command) = query(folder.path(), &flags) else { return };
        let (out, errors, code) = output_of(&mut command);
        assert_eq!((rows(&out).len(), code), (failed, 0), "{out}{errors}");
    }
}

/// The rows that the question of an alert shows, asked in a shell.
fn evidence(folder: &Path, alert: &Value) -> Option<Vec<Value>> {
    let engine = fs::canonicalize(tool("venv/bin/duckdb")?).unwrap();
    let line = format!("\"$0\" query s {} --output json", alert["query"].as_str().unwrap());
    let mut shell = Command::new("sh");
    shell.current_dir(folder).env("RINGTAP_DUCKDB", engine).arg("-c").arg(&line);
    let (out, errors, code) = output_of(shell.arg(assert_cmd::cargo::cargo_bin!("ringtap")));
    assert_eq!(code, 0, "{line}: {errors}");
    Some(rows(&out))
}

/// Distinct values of these columns.
fn distinct(rows: &[Value], columns: &[&str]) -> BTreeSet<String> {
    let of = |row: &Value| columns.iter().map(|name| row[*name].to_string()).collect::<Vec<_>>();
    rows.iter().map(|row| of(row).join(" ")).collect()
}

/// Checks the evidence of the last state of each alert of a run; returns the kinds, with their numbers of alerts.
fn evidence_of(capture: &Path, flags: &[&str]) -> Option<BTreeMap<String, u32>> {
    let folder = tempfile::tempdir().unwrap();
    let mut command = ringtap();
    command.current_dir(folder.path()).args(["monitor", "-q", "--store", "s", "-r"]).arg(capture);
    let (_, errors, code) = output_of(command.args(["--alert-to=json:alerts"]).args(flags));
    assert_eq!(code, 0, "{errors}");
    let text = fs::read_to_string(folder.path().join("alerts")).unwrap();
    let alerts: Vec<Value> = rows(&text);
    let mut kinds = BTreeMap::new();
    for alert in alerts.iter().filter(|alert| alert["state"] == "ends") {
        let rows = evidence(folder.path(), alert)?;
        let count = |columns: &[&str]| distinct(&rows, columns).len() as u64;
        let number = alert["number"].as_u64().unwrap();
        let has = |name: &str| {
            let host = alert[name].as_str().unwrap();
            let ends = ["sourceIPAddress", "destinationIPAddress"];
            !rows.is_empty() && rows.iter().all(|row| ends.iter().any(|end| row[end] == host))
        };
        let kind = alert["kind"].as_str().unwrap();
        let is_shown = match kind {
            "vertical_scan" | "horizontal_scan" | "udp_vertical_scan" | "udp_horizontal_scan" => {
                let attempts = ["destinationIPAddress", "destinationTransportPort"];
                let is_own = rows.iter().all(|row| row["sourceIPAddress"] == alert["source"]);
                let ports = distinct(&rows, &attempts[1..]);
                let targets = distinct(&rows, &attempts[..1]);
                let is_only = match kind.ends_with("vertical_scan") {
                    true => {
                        alert["targets"] != 1
                            || targets == BTreeSet::from([alert["target"].to_string()])
                    }
                    false => {
                        alert["ports"] != 1 || ports == BTreeSet::from([alert["port"].to_string()])
                    }
                };
                is_own && is_only && count(&attempts) >= number
            }
            "flood" => has("target"),
            "spread" => has("source") && count(&["destinationIPAddress"]) >= number,
            "new_device" | "volume_change" => has("host"),
            "new_server_port" => {
                let ports = ["protocolIdentifier", "destinationTransportPort"];
                let found = distinct(&rows, &ports);
                let services = alert["services"].as_array().unwrap().iter();
                has("host")
                    && services.map(|own| own.as_str().unwrap()).all(|own| {
                        let (port, protocol) = own.split_once('/').unwrap();
                        let protocol = if protocol == "tcp" { 6 } else { 17 };
                        found.contains(&format!("{protocol} {port}"))
                    })
            }
            "watched" if number == 1 => has("host"),
            "watched" => {
                let mut ends = distinct(&rows, &["sourceIPAddress"]);
                ends.extend(distinct(&rows, &["destinationIPAddress"]));
                alert["hosts"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .all(|host| ends.contains(&host.to_string()))
            }
            other => panic!("{other}"),
        };
        assert!(is_shown, "{}: {alert}: {} rows", capture.display(), rows.len());
        *kinds.entry(kind.to_owned()).or_default() += 1;
    }
    Some(kinds)
}

#[test]
fn the_question_of_an_alert_shows_its_evidence() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let profile = "packets = 30000\nflows = 500\n\
                   [[scans]]\nports = 60\nanswered = 5\n[[scans]]\ntargets = 60\nports = 1\nreset = true\n\
                   [[scans]]\nports = 60\nfirst_port = 3000\nudp = true\nanswered = 5\n\
                   [[scans]]\ntargets = 60\nports = 1\nfirst_port = 3000\nudp = true\nipv6 = true\n\
                   [[floods]]\nsources = 3000\n";
    fs::write(path("p.toml"), profile).unwrap();
    let generate = |profile: &str, name: &str| {
        let mut command = ringtap();
        command.current_dir(folder.path()).args(["generate", "--seed", "4", "--profile", profile]);
        let (_, errors, code) = output_of(command.args(["--packets", "30k", "-w", name]));
        assert_eq!(code, 0, "{errors}");
    };
    generate("p.toml", "scans.pcap");
    generate("applications", "names.pcap");
    let limits = ["--interval=10s", "--alert=dst-pps=40", "--alert=src-peers=9"];
    let Some(mut kinds) = evidence_of(&path("scans.pcap"), &limits) else { return };
    // Names, fingerprints, addresses and networks that are there.
    let mut command = ringtap();
    command.current_dir(folder.path()).args(["monitor", "-q", "-r", "names.pcap"]);
    let (_, errors, code) = output_of(command.args(["--write", "json:flows.json"]));
    assert_eq!(code, 0, "{errors}");
    let flows = rows(&fs::read_to_string(path("flows.json")).unwrap());
    let first = |name: &str| {
        let mut values = flows.iter().filter_map(|flow| flow.get(name));
        values.next().map(|value| value.as_str().or(value[0].as_str()).unwrap().to_owned())
    };
    let mut list = String::new();
    for name in [
        "tlsServerName",
        "httpHost",
        "dnsQueryName",
        "dnsAnswers",
        "ja3",
        "ja4",
        "sourceIPv4Address",
    ] {
        list += &format!("{}\n", first(name).unwrap_or_else(|| panic!("no {name}")));
    }
    fs::write(path("list"), list + "10.0.0.0/8\n192.0.0.0/9\n").unwrap();
    let watch = format!("--watch={}", path("list").display());
    for (kind, alerts) in evidence_of(&path("names.pcap"), &[&watch]).unwrap() {
        *kinds.entry(kind).or_default() += alerts;
    }
    for (kind, alerts) in evidence_of(&office(), &[&watch, "--cut=2s"]).unwrap() {
        *kinds.entry(kind).or_default() += alerts;
    }
    fs::write(path("own"), "10.20.0.0/24 office\n").unwrap();
    let networks = format!("--networks={}", path("own").display());
    let flags = [
        &*networks,
        "--alert=new-device=1s",
        "--alert=new-server-port=1s",
        "--alert=volume-change=20",
        "--alert=volume-floor=2000",
        "--interval=200ms",
    ];
    for (kind, alerts) in evidence_of(&office(), &flags).unwrap() {
        *kinds.entry(kind).or_default() += alerts;
    }
    for (kind, least) in [
        ("new_device", 1),
        ("new_server_port", 1),
        ("volume_change", 1),
        ("vertical_scan", 2),
        ("horizontal_scan", 2),
        ("udp_vertical_scan", 1),
        ("udp_horizontal_scan", 1),
        ("flood", 1),
        ("spread", 1),
        ("watched", 6),
    ] {
        assert!(kinds.get(kind) >= Some(&least), "{kind}: {kinds:?}");
    }
}
