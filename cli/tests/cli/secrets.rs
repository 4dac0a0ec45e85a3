//! Values of a configuration that are in the environment or in files.

use std::fs;
use std::path::Path;

use rustix::process::Signal;
use serde_json::Value;

use crate::common::{output_of, ringtap};
use crate::net::{Background, Net, NetCommands, Right};

const SECRET: &str = "s3cr3t-of-the-configuration";

/// Runs a command with the configuration; returns stdout, stderr and the exit code.
fn run(folder: &Path, text: &str, flags: &[&str]) -> (String, String, i32) {
    fs::write(folder.join("c.toml"), text).unwrap();
    let mut command = ringtap();
    command.current_dir(folder).env("SECRET", SECRET).env("CREDENTIALS_DIRECTORY", folder);
    command.env("LINES", format!("{SECRET}\n{SECRET}"));
    output_of(command.args(flags))
}

#[test]
fn references_are_replaced_and_never_shown() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("token"), format!("{SECRET}-2\n")).unwrap();
    let text = "interface = [\"lo\"]\nmemory = \"${file:${CREDENTIALS_DIRECTORY}/memory}\"\n";
    fs::write(folder.join("memory"), "512M\n").unwrap();
    let (out, errors, code) = run(folder, text, &["check-config", "c.toml"]);
    assert_eq!((out.as_str(), code), ("c.toml: valid\n", 0), "{errors}");
    let (out, errors, code) = run(
        folder,
        "write = [\"json:${SECRET}.json\"]\nexport = [\"ipfix+local:///${file:token}\"]\nread = [\"a\"]\n\
         filter = \"udp or len > ${file:length}\"\n",
        &["monitor", "--config", "c.toml", "--dry-run"],
    );
    assert!(code == 2 && out.is_empty(), "{out} {errors}");
    assert!(errors.contains("line 4: filter: ${file:length}: No such file"), "{errors}");
    fs::write(folder.join("length"), "1234567").unwrap();
    for report in ["text", "json"] {
        let flags = ["monitor", "--config", "c.toml", "--dry-run", "--report", report];
        let text = fs::read_to_string(folder.join("c.toml")).unwrap();
        let (out, errors, code) = run(folder, &text, &flags);
        assert_eq!(code, 0, "{errors}");
        assert!(out.contains("udp or len > ${file:length}"), "{out}");
        assert!(!(out + &errors).contains(SECRET), "{errors}");
    }
}

#[test]
fn faults_have_a_line_and_a_key_and_no_value() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let long = SECRET.repeat(1 << 12);
    for (name, bytes) in [
        ("long", long.as_bytes()),
        ("bytes", &[SECRET.as_bytes(), b"\xff"].concat()),
        ("nul", &[SECRET.as_bytes(), b"\0"].concat()),
        ("two", &[SECRET.as_bytes(), b"\n\n"].concat()),
    ] {
        fs::write(folder.join(name), bytes).unwrap();
    }
    for (value, words) in [
        ("${MISSING}", "line 2: export: ${MISSING}: this environment variable is not set"),
        ("${LINES}", "line 2: export: ${LINES}: it has a NUL or several lines"),
        ("${file:none}", "line 2: export: ${file:none}: No such file"),
        ("${file:long}", "line 2: export: ${file:long}: it has more than 64 KiB"),
        ("${file:bytes}", "line 2: export: ${file:bytes}: it is not UTF-8"),
        ("${file:nul}", "it has a NUL or several lines"),
        ("${file:two}", "it has a NUL or several lines"),
        ("${file:.}", "it is not a file"),
        ("${SECRET", "line 2: export: a ${ without its }"),
        ("${SEC RET}", "line 2: export: ${SEC RET}: use ${NAME} or ${file:PATH}"),
        // The value is what the parser refuses.
        ("${SECRET}", "line 2: invalid export: its value is invalid after its ${…} are replaced"),
        ("ipfix://h:${SECRET}", "line 2: invalid export: its value is invalid"),
    ] {
        let text = format!("shed = true\nexport = [\"{value}\"]\n");
        for flags in
            [&["check-config", "c.toml"][..], &["monitor", "-i", "lo", "--config", "c.toml"]]
        {
            let (out, errors, code) = run(folder, &text, flags);
            assert_eq!((out.as_str(), code), ("", 2), "{value}: {errors}");
            let has_all = errors.contains("c.toml") && errors.contains(words);
            assert!(has_all && !errors.contains(SECRET), "{value}: {errors}");
        }
    }
    // Two places that differ in the text alone.
    let text = format!("alert-to = [\"exec:/no/${{SECRET}}\", \"exec:/no/{SECRET}\"]\n");
    let (_, errors, code) = run(folder, &text, &["check-config", "c.toml"]);
    assert!(code == 2 && errors.contains("${SECRET}") && !errors.contains(SECRET), "{errors}");
}

#[test]
fn a_reload_reads_them_anew_and_shows_none() {
    let Some(net) = Net::new(1) else { return };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (config, token) = (folder.join("c.toml"), folder.join("token"));
    let text = "write = [\"json:${file:token}.json\"]\n";
    fs::write(&config, text).unwrap();
    fs::write(&token, format!("{SECRET}-1\n")).unwrap();
    let flags = ["monitor", "-i", "right", "--config", "c.toml", "--report", "json"];
    let mut command = net.ringtap(Right, &flags);
    command.current_dir(folder);
    let mut run = Background::start(command, "listening:");
    fs::write(&token, format!("{SECRET}-2\n")).unwrap();
    run.send(Signal::HUP);
    let line = run.wait_for("c.toml: changed:");
    assert!(line.ends_with("changed: write"), "{line}");
    for (text, words) in [
        (format!("{text}interval = \"${{file:token}}\"\n"), "line 2: invalid interval: "),
        (
            format!("{text}state = \"${{file:token}}\"\n"),
            "state needs a restart (now not set, in the file ${file:token})",
        ),
        (format!("{text}events = [\"json:${{missing}}\"]\n"), "line 2: events: ${missing}: "),
    ] {
        fs::write(&config, &text).unwrap();
        run.send(Signal::HUP);
        let line = run.wait_for("reload:");
        assert!(line.contains(words) && !line.contains(SECRET), "{text}: {line}");
    }
    run.interrupt();
    let (out, errors, code) = run.end();
    assert_eq!(code, 0, "{errors}");
    let out = String::from_utf8(out).unwrap();
    assert!(!out.contains(SECRET) && !errors.contains(SECRET), "{out} {errors}");
    let report: Value = serde_json::from_str(&out).unwrap();
    // Both have one name.
    let outputs: Vec<_> = report["write"].as_array().unwrap().iter().collect();
    assert_eq!(outputs.len(), 1, "{}", report["write"]);
    for number in [1, 2] {
        assert!(folder.join(format!("{SECRET}-{number}.json")).exists(), "{number}");
    }
}
