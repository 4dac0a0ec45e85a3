//! Names from packets, files and users in all outputs: none acts on the terminal of the person who reads them.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::common::{output_of, ringtap};
use crate::net;

/// C1 controls, a line separator, an override of the writing direction, a tag and a format character.
const NAME: &str = "a\u{9b}2J\u{85}\u{2028}\u{202e}moc\u{e0041}\u{ad}.example";
/// C0 and C1 controls, an override of the writing direction and a tag, for file names and labels.
const FILE: &str = "a\u{1b}[2J\u{7}\u{7f}\u{9b}\u{202e}\u{e0041}";

/// Fails if a letter of the text acts. Line feeds, and tabs of Zeek's columns, are the format's own.
fn check(what: &str, text: &str) {
    let acts = |letter: char| match letter {
        '\n' => false,
        '\t' => !what.contains("zeek"),
        '\u{ad}' | '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            true
        }
        '\u{e0000}'..='\u{e007f}' => true,
        other => other.is_control(),
    };
    let found = text.find(acts).map(|at| text[at..].chars().take(9).collect::<String>());
    assert_eq!(found, None, "{what}: {text}");
}

/// A request with this host, of TCP.
fn request(host: &str) -> Vec<u8> {
    let payload = format!("GET /{NAME} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: {NAME}\r\n\r\n");
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0];
    frame.extend((40 + payload.len() as u16).to_be_bytes());
    frame.extend([0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame.extend([0x9c, 0x40, 0, 80, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x18, 16, 0, 0, 0, 0, 0]);
    frame.extend(payload.bytes());
    frame
}

/// A folder with a capture of hostile names, which is cut, under a hostile name; and a list that watches its server.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(format!("{FILE}\n.pcap"));
    net::capture(&file, &[request(NAME), request(NAME)]);
    let bytes = fs::read(&file).unwrap();
    fs::write(&file, &bytes[..bytes.len() - 9]).unwrap();
    fs::write(folder.path().join("list"), format!("10.0.0.2 {FILE}\n")).unwrap();
    folder
}

/// Runs `monitor` over the capture; returns stdout and stderr.
fn monitor(folder: &Path, flags: &[&str]) -> (String, String) {
    let mut command = ringtap();
    command.current_dir(folder).args(["monitor", "-r"]).arg(format!("{FILE}\n.pcap"));
    let (out, errors, code) = output_of(command.args(flags));
    assert_eq!(code, 0, "{errors}");
    (out, errors)
}

#[test]
fn no_name_acts_on_a_terminal() {
    let folder = folder();
    let shown = "a\\u{9b}2J\\u{85}\\u{2028}\\u{202e}moc\\u{e0041}\\u{ad}.example";
    for (report, expected) in
        [("text", shown), ("html", shown), ("json", "a\\u009b2J\\u0085\\u2028\\u202emoc")]
    {
        let (out, errors) =
            monitor(folder.path(), &["--report", report, "--watch=list", "--stats=1ms"]);
        check(report, &out);
        assert!(out.contains(expected), "{out}");
        check("messages", &errors);
        // The file that is cut, and the watched entry.
        assert!(
            errors.contains("a\\u{1b}[2J\\u{7}\\u{7f}\\u{9b}\\u{202e}\\u{e0041}\\u{a}.pcap"),
            "{errors}"
        );
        assert!(errors.contains("10.0.0.2 (a\\u{1b}[2J"), "{errors}");
    }
    let (plan, _) = monitor(folder.path(), &["--dry-run"]);
    check("plan", &plan);
}

#[test]
fn formats_of_machines_escape_what_acts_and_decode_to_the_same() {
    let folder = folder();
    for (flag, format) in [
        ("write", "json"),
        ("write", "csv"),
        ("write", "eve"),
        ("write", "zeek"),
        ("events", "json"),
        ("events", "eve"),
    ] {
        let (out, _) = monitor(folder.path(), &["-q", &format!("--{flag}={format}:-")]);
        check(format, &out);
        let host = |fields: &[&str]| {
            let mut value: Value = serde_json::from_str(out.lines().next().unwrap()).unwrap();
            fields.iter().for_each(|field| value = value[field].take());
            value.as_str().or_else(|| value[0].as_str()).map(str::to_owned)
        };
        match (flag, format) {
            (_, "json") => assert_eq!(host(&["httpHost"]).as_deref(), Some(NAME), "{out}"),
            ("events", "eve") => {
                assert_eq!(host(&["http", "hostname"]).as_deref(), Some(NAME), "{out}")
            }
            (_, "csv") => assert!(
                out.contains("a\\xc2\\x9b2J\\xc2\\x85\\xe2\\x80\\xa8\\xe2\\x80\\xaemoc"),
                "{out}"
            ),
            _ => {}
        }
    }
    fs::create_dir(folder.path().join("logs")).unwrap();
    monitor(folder.path(), &["-q", "--watch=list", "--alert-to=json:alerts", "--events=zeek:logs"]);
    let log = fs::read_to_string(folder.path().join("logs/http.log")).unwrap();
    check("zeek", &log);
    assert!(log.contains("a\\xc2\\x9b2J\\xc2\\x85\\xe2\\x80\\xa8"), "{log}");
    let alerts = fs::read_to_string(folder.path().join("alerts")).unwrap();
    check("alerts", &alerts);
    let alert: Value = serde_json::from_str(alerts.lines().next().unwrap()).unwrap();
    assert_eq!(alert["label"], FILE);
}

#[test]
fn errors_show_names_on_one_line() {
    let folder = folder();
    let missing = format!("{FILE}\nerror: forged");
    fs::write(folder.path().join("bad.toml"), format!("a = 1\n{FILE} = = 2\n")).unwrap();
    let [flag, workers, rules] =
        [format!("--{FILE}"), format!("--workers={FILE}"), format!("--rules={missing}")];
    for (flags, expected) in [
        (&["monitor", "-r", &missing][..], "\\u{a}error: forged"),
        (&["monitor", "-r", "list", &flag], "\\u{9b}\\u{202e}"),
        (&["monitor", "-r", "list", &workers], "\\u{9b}\\u{202e}"),
        (&["monitor", "--config=bad.toml"], "bad.toml: line 2: "),
        (&["filter", &rules, "-r=list"], "\\u{a}error: forged"),
        (&["merge", &missing], "\\u{a}error: forged"),
        (&["check", "-i", FILE], "\\u{1b}"),
    ] {
        let (_, errors, code) = output_of(ringtap().current_dir(&folder).args(flags));
        assert!(code > 0, "{flags:?}: {errors}");
        check("errors", &errors);
        assert!(errors.contains(expected), "{flags:?}: {errors}");
    }
}
